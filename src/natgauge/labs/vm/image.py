# SPDX-License-Identifier: Apache-2.0
"""What a guest consists of: its kernel and file system, and the files that the user adds to them.

`natgauge.guest_building` made the kernel and the file system of Debian's packages. The user's files are programs and
kernel modules of the user's own build.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from natgauge.errors import HostError
from natgauge.inputs.input import wrong

#: Where built guests are kept; $NATGAUGE_GUESTS names another folder.
CACHE: Final = Path("/var/cache/natgauge/guests")
VARIABLE: Final = "NATGAUGE_GUESTS"
RELEASE: Final = "bookworm"
#: Distribution of every guest.
DISTRIBUTION: Final = f"Debian {RELEASE}"
#: What a guest is built of; the modules of Jool are compiled for its kernel by DKMS.
PACKAGES: Final = (
    "linux-image-amd64", "linux-headers-amd64", "dkms", "jool-dkms", "jool-tools", "openssh-server", "iproute2", "kmod",
    "nftables", "iptables", "conntrack", "tayga", "ethtool", "busybox-static", "initramfs-tools", "cpio",
)  # fmt: skip
#: Folder of the scripts that pack the guest and begin it.
SCRIPTS: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Image:
    """A guest that can be booted."""

    kernel: Path
    initrd: Path
    release: str


def modules() -> frozenset[str]:
    """Return the modules of a guest, without the modules that these depend on."""
    listed = re.search(r"^modules='([^']*)'", (SCRIPTS / "pack.sh").read_text(), re.MULTILINE)
    return frozenset(listed[1].split()) if listed else frozenset()


def folder() -> Path:
    """Return the folder of this natgauge's guest; its name is a hash of packages and packing scripts."""
    digest = hashlib.sha256(repr((RELEASE, PACKAGES)).encode())
    for name in ("pack.sh", "init.sh"):
        digest.update((SCRIPTS / name).read_bytes())
    return Path(os.environ.get(VARIABLE) or CACHE) / digest.hexdigest()[:16]


def find() -> Image:
    """The guest that was built."""
    place = folder()
    try:
        release = (place / "kernel").read_text().strip()
    except OSError:
        raise HostError("guest: none was built yet; run: natgauge lab guest (once; some minutes)") from None
    return Image(place / "vmlinuz", place / "initrd", release)


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file, folder or symbolic link of an archive; the content of a link is its target, that of a folder empty."""

    name: str
    mode: int
    content: bytes = b""

    def packed(self) -> bytes:
        """Return the entry's octets: thirteen fields of eight hex digits; name and content padded to four octets."""
        name = os.fsencode(self.name)
        fields = [0, self.mode, 0, 0, 1, 0, len(self.content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"
        return head + b"\0" * (-len(head) % 4) + self.content + b"\0" * (-len(self.content) % 4)


def archive(entries: Iterable[ArchivedFile]) -> bytes:
    """Return an archive of these entries. A folder must come before what is in it."""
    return b"".join(entry.packed() for entry in (*entries, ArchivedFile("TRAILER!!!", 0)))


#: In a guest these are links to the folder of the same name in /usr.
_LINKED: Final = frozenset({"bin", "sbin", "lib", "lib64"})
#: File systems that the guest mounts at boot, and natgauge's own files: nothing of the user's would be seen there.
_HIDDEN: Final = frozenset({"dev", "natgauge", "proc", "run", "sys", "tmp"})
_FOLDER_MODE: Final = stat.S_IFDIR | 0o755


@dataclass(frozen=True, slots=True)
class UserFiles:
    """Files for a guest.

    Attributes:
        digest: first 16 hex digits of the SHA-256 of names, permissions and contents.
    """

    entries: tuple[ArchivedFile, ...] = ()
    digest: str = ""
    has_modules: bool = False


def read_user_files(folder: str, most_octets: int) -> UserFiles:
    """Read a folder whose content has the places of the guest's file system, such as usr/local/bin/PROGRAM."""
    # Of an unknown user the path stays as it is, and does not exist.
    place = Path(os.path.expanduser(folder))  # noqa: PTH111
    if not place.is_dir():
        raise wrong(
            "guest_files", f"{folder} is no folder; name one that has the guest's folders, such as usr/local/bin"
        )
    # The guest has links such as lib to usr/lib anyway.
    links = {place / name for name in _LINKED if (place / name).is_symlink()}
    paths = [path for path in _walked(place) if path not in links]
    if not paths:
        raise wrong("guest_files", f"{folder} is empty; put the files into it, or leave the option out")
    size = sum(found.st_size for found in (path.lstat() for path in paths) if stat.S_ISREG(found.st_mode))
    if size > most_octets:
        raise wrong(
            "guest_files",
            f"{folder} contains {size >> 20} MiB, and the guest keeps its files in memory; at most {most_octets >> 20} "
            "MiB are allowed, half of its memory: remove files, or raise --guest-memory",
        )
    entries = tuple(_entry(place, path) for path in paths)
    digest = hashlib.sha256(b"".join(entry.packed() for entry in entries)).hexdigest()[:16]
    # Modules may be compressed: NAME.ko.xz.
    return UserFiles(entries, digest, any(".ko" in path.suffixes for path in paths))


def _walked(place: Path) -> Iterator[Path]:
    """Yield all paths in a folder, sorted, each folder before what is in it; links are not followed."""
    for entry in sorted(os.scandir(place), key=lambda one: one.name):
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walked(Path(entry.path))


def _entry(place: Path, path: Path) -> ArchivedFile:
    parts = path.relative_to(place).parts
    if parts[0] in _HIDDEN:
        raise wrong("guest_files", f"{path}: the guest has its own /{parts[0]}; put the file into another folder")
    # A folder in place of the guest's link would replace the link.
    name = "/".join(("usr", *parts) if parts[0] in _LINKED else parts)
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return ArchivedFile(name, _FOLDER_MODE)
    if stat.S_ISLNK(mode):
        return ArchivedFile(name, mode, os.fsencode(path.readlink()))
    if not stat.S_ISREG(mode):
        raise wrong("guest_files", f"{path} is neither a file, nor a folder, nor a symbolic link; remove it")
    try:
        return ArchivedFile(name, mode, path.read_bytes())
    except OSError as error:
        raise wrong("guest_files", f"{path}: {error.strerror}; make it readable") from None
