# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel and file system, built of Debian's packages once and kept: nothing has another source."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from natgauge.errors import HostError
from natgauge.host import capabilities
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.shell import last_words

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
#: Debian's keys, by which `debootstrap` verifies every package. Without them it would install whatever a mirror, or
#: anybody on the way to it, sends.
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Octets that building takes, for a short time.
_ROOM: Final = 2 * 1024**3
_HERE: Final = Path(__file__).parent
_PACK_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Image:
    """A guest that can be booted."""

    kernel: Path
    initrd: Path
    release: str


def modules() -> frozenset[str]:
    """Return the modules of a guest, without the modules that these depend on."""
    listed = re.search(r"^modules='([^']*)'", (_HERE / "pack.sh").read_text(), re.MULTILINE)
    return frozenset(listed[1].split()) if listed else frozenset()


def folder() -> Path:
    """Return the folder of this natgauge's guest; its name is a hash of packages and packing scripts."""
    digest = hashlib.sha256(repr((RELEASE, PACKAGES)).encode())
    for name in ("pack.sh", "init.sh"):
        digest.update((_HERE / name).read_bytes())
    return Path(os.environ.get(VARIABLE) or CACHE) / digest.hexdigest()[:16]


def find() -> Image:
    """The guest that was built.

    Raises:
        HostError: there is none.
    """
    place = folder()
    try:
        release = (place / "kernel").read_text().strip()
    except OSError:
        raise HostError("guest: none was built yet; run: natgauge lab guest (once; some minutes)") from None
    return Image(place / "vmlinuz", place / "initrd", release)


def build(notify: Callable[[str], None]) -> Image:
    """Build the guest, unless it exists.

    Raises:
        HostError: a program or space is missing here, a package is not available, or another process builds a guest.
    """
    with suppress(HostError):
        return find()
    capabilities.require("building a guest", "CAP_SYS_ADMIN")
    for package, found in (
        ("debootstrap", shutil.which("debootstrap") is not None),
        ("gpgv", shutil.which("gpgv") is not None),
        ("debian-archive-keyring", KEYRING.is_file()),
    ):
        if not found:
            raise HostError(f"{package}: is not installed here; run: apt-get install {package}")
    place = folder()
    place.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place.parent).free
    if free < _ROOM:
        raise HostError(f"guest: {_ROOM >> 20} MiB are needed in {place.parent}, {free >> 20} are free; set {VARIABLE}")
    lock = Lock("guest-image", "building a guest")
    lock.take()
    try:
        for left in place.parent.glob("building-*"):
            _remove(left)
        work = Path(tempfile.mkdtemp(prefix="building-", dir=place.parent))
        try:
            _build(work, place, notify)
        finally:
            _remove(work)
    finally:
        lock.release()
    return find()


def _build(work: Path, place: Path, notify: Callable[[str], None]) -> None:
    root = work / "root"
    notify(f"installing {len(PACKAGES)} packages of {DISTRIBUTION} and what they need into {root}")
    mirror = os.environ.get("DEBIAN_MIRROR")
    trusted = ["--force-check-gpg", f"--keyring={KEYRING}"]
    wanted = ["--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, str(root), *([mirror] if mirror else [])]
    with (work / "log").open("w+b") as log:
        _run(["debootstrap", *trusted, *wanted], log, None)
        notify("packing kernel, modules and programs")
        for name in ("pack", "init"):
            shutil.copy(_HERE / f"{name}.sh", root / f"natgauge-{name}")
        _run(["chroot", str(root), "/bin/sh", "/natgauge-pack"], log, _PACK_SECONDS)
    place.mkdir(exist_ok=True)
    # The last file shows that all are complete.
    for name in ("vmlinuz", "initrd", "kernel"):
        shutil.move(root / "out" / name, place / name)


def _run(command: list[str], log: object, seconds: int | None) -> None:
    """Run a program; in a mount and PID namespace of its own, so nothing it mounts or starts stays."""
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *command]
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
        **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
    }
    try:
        ended = subprocess.run(
            isolated,
            stdin=subprocess.DEVNULL,
            stdout=log,  # type: ignore[call-overload] # an open file
            stderr=log,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"{command[0]}: did not end within {seconds} s") from None
    if ended.returncode:
        log.seek(0)  # type: ignore[attr-defined]
        output: str = log.read().decode(errors="replace")  # type: ignore[attr-defined]
        raise HostError(f"guest: {command[0]} failed: {last_words(output) or 'nothing was said'}")


def _remove(path: Path) -> None:
    """Delete a folder in which nothing of this machine is mounted."""
    # Debootstrap's mounts went with its mount namespace.
    shutil.rmtree(path)
