# SPDX-License-Identifier: Apache-2.0
"""Marks of the namespaces that natgauge made: a name alone is no proof, because other programs may use it, too.

A mark is a file named like the namespace. It contains the namespace's cookie, a number that the kernel gives to no
other network namespace until the next boot (SO_NETNS_COOKIE, socket(7)); numbers of inodes are reused. The mark is
written while the namespace has no name yet, so a kill in between leaves a mark without a namespace, never the reverse.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge import files
from natgauge.host.private_folder import FILE_MODE, unwritable
from natgauge.labs.common import locks

#: include/uapi/asm-generic/socket.h
_SO_NETNS_COOKIE: Final = 71
_COOKIE_OCTETS: Final = 8


def cookie() -> str:
    """Return the cookie of the calling thread's namespace.

    Raises:
        OSError: no socket can be opened.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
        number = int.from_bytes(opened.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, _COOKIE_OCTETS), "little")
    # A folder that outlives a boot would have marks of other namespaces.
    return f"{number} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def write(name: str, of: str) -> None:
    """Mark a namespace that is about to get its name.

    Args:
        name: name of the namespace.
        of: its cookie.

    Raises:
        HostError: the mark cannot be written.
    """
    path = locks.made_folder("namespaces") / name
    try:
        files.replace(path, of, mode=FILE_MODE)
    except OSError as error:
        raise unwritable(path, error) from error


def read(name: str) -> str | None:
    """Return the cookie in the mark of this name; None = there is no mark.

    Raises:
        OSError: it cannot be read.
    """
    with suppress(FileNotFoundError):
        return (locks.folder("namespaces") / name).read_text()
    return None


def remove(name: str) -> None:
    """Remove a mark; do nothing where there is none."""
    with suppress(OSError):
        files.remove(locks.folder("namespaces") / name)


def names() -> tuple[str, ...]:
    """Return the names of all marked namespaces, whether these still exist or not."""
    folder = locks.folder("namespaces")
    with suppress(OSError):
        return tuple(sorted(path.name for path in folder.iterdir()))
    return ()
