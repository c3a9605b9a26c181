# SPDX-License-Identifier: Apache-2.0
"""Marks of the namespaces that natgauge made: a name alone is no proof, because other programs may use it, too.

A mark is a file named like the namespace. It contains the namespace's cookie, a number that the kernel gives to no
other network namespace until the next boot (SO_NETNS_COOKIE, socket(7)); numbers of inodes are reused. The mark is
written while the namespace has no name yet, so a kill in between leaves a mark without a namespace, never the reverse.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge import files
from natgauge.host.private_folder import FILE_MODE, boot, unwritable
from natgauge.labs.common import locks

#: include/uapi/asm-generic/socket.h
_SO_NETNS_COOKIE: Final = 71
_COOKIE_OCTETS: Final = 8
#: Content of a mark: a cookie, and the number of the boot.
_MARK: Final = re.compile(r"\d+ [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Longer than any mark.
_MOST_OCTETS: Final = 256


def cookie() -> str:
    """Return the cookie of the calling thread's namespace."""
    # A folder that outlives a boot would have marks of other namespaces.
    return f"{number()} {boot()}"


def number() -> int:
    """Return the kernel's number of the calling thread's namespace, which no other one gets before the next boot."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
        return number_of(opened)


def number_of(opened: socket.socket) -> int:
    """Return the kernel's number of the namespace of a socket."""
    return int.from_bytes(opened.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, _COOKIE_OCTETS), "little")


def write(name: str, of: str) -> None:
    """Mark a namespace that is about to get its name."""
    path = locks.made_folder("namespaces") / name
    try:
        files.replace(path, of, mode=FILE_MODE)
    except OSError as error:
        raise unwritable(path, error) from error


def read(name: str) -> str | None:
    """Return the cookie in the mark of this name; None = there is no mark."""
    with suppress(FileNotFoundError):
        # A FIFO in its place would wait for a writer.
        handle = os.open(locks.folder("namespaces") / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(handle, _MOST_OCTETS).decode(errors="replace")
        finally:
            os.close(handle)
    return None


def remove(name: str) -> None:
    """Remove a mark, and what killed processes wrote of it; do nothing where there is none.

    A file with other content is none, and neither is any file where the folder of the marks is a link to another one.
    """
    folder = locks.folder("namespaces")
    if not _is_link(folder):
        with suppress(OSError):
            files.remove_partial(folder / name)
            if is_one(name):
                path_of(name).unlink(missing_ok=True)


def path_of(name: str) -> Path:
    """Return the file of a mark."""
    return locks.folder("namespaces") / name


def is_one(name: str) -> bool:
    """Whether the file of this name has the content of a mark."""
    with suppress(OSError):
        return _MARK.fullmatch(read(name) or "") is not None
    return False


def names() -> tuple[str, ...]:
    """Return the names of all marked namespaces, whether these still exist or not."""
    folder = locks.folder("namespaces")
    if not _is_link(folder):
        with suppress(OSError):
            return tuple(sorted(path.name for path in folder.iterdir() if not files.whole_name(path.name)))
    return ()


def _is_link(folder: Path) -> bool:
    """Whether the folder, or the one it is in, is a link: what is there then was not made by natgauge."""
    return folder.is_symlink() or folder.parent.is_symlink()
