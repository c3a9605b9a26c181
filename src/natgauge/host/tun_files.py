# SPDX-License-Identifier: Apache-2.0
"""TUN and TAP interfaces that a process holds open, and the network namespace that each of them is in.

An interface's name says little: every namespace may have one of that name, and an interface may be moved to another
namespace than that of the process which made it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from natgauge.host import process_files
from natgauge.host.borrowed_files import borrowed

#: linux/if_tun.h: a file of the interface's namespace.
_TUNGETDEVNETNS: Final = 0x54E3


@dataclass(frozen=True, slots=True)
class HeldTun:
    """A TUN or TAP interface that a process has open.

    Attributes:
        namespace: inode of the network namespace that it is in. Where the kernel does not tell us, it is that of the
            process: most interfaces are made there and stay.
    """

    name: str
    namespace: int


def held_tuns(process: Path) -> Iterator[HeldTun]:
    """Yield the interfaces that a process has open."""
    for file, target in process_files.open_files(process):
        with suppress(OSError):
            name = process_files.tun_of(file, target)
            if name is not None:
                own = _namespace_of(file)
                yield HeldTun(name, (process / "ns" / "net").stat().st_ino if own is None else own)


def _namespace_of(file: Path) -> int | None:
    """Return the inode of the namespace of an interface; None = this user or this kernel has no way to it."""
    with suppress(OSError), borrowed(file) as ours:
        namespace = fcntl.ioctl(ours, _TUNGETDEVNETNS)
        try:
            return os.fstat(namespace).st_ino
        finally:
            os.close(namespace)
    return None
