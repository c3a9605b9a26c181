# SPDX-License-Identifier: Apache-2.0
"""What /proc says of a process. Any user can give a process a name that is no UTF-8, so nothing here expects text.

A process is given by its folder in /proc.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The same number on all architectures (asm-generic/unistd.h).
_PIDFD_GETFD: Final = 438
#: linux/if_tun.h: a file of the interface's namespace.
_TUNGETDEVNETNS: Final = 0x54E3
#: Characters of a command line in messages.
_MOST_SHOWN: Final = 100
_INTERFACE: Final = re.compile(r"^iff:\t(\S+)$", re.MULTILINE)


def name_of(process: Path) -> str:
    """Return the name of a process, with "\N{REPLACEMENT CHARACTER}" for octets that are no UTF-8."""
    return _text(process / "comm").strip()


def command_of(process: Path) -> str:
    """Return the command line of a process, a natgauge without its interpreter; empty where it cannot be read."""
    with suppress(OSError):
        words = _text(process / "cmdline").strip("\0").split("\0")
        names = [Path(word).name for word in words]
        first = names.index("natgauge") if "natgauge" in names else 0
        line = " ".join(" ".join([names[first], *words[first + 1 :]]).split())
        return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."
    return ""


def has_variable(process: Path, name: str, value: str) -> bool:
    """Whether a process was started with a variable of this value; False where it may not be looked into."""
    with suppress(OSError):
        return os.fsencode(f"{name}={value}") in (process / "environ").read_bytes().split(b"\0")
    return False


def fields_after_name(process: Path) -> list[str]:
    """Return the fields of `stat` from the state on (proc_pid_stat(5) counts it as the third)."""
    # The name in parentheses may hold anything, so what follows is counted from the last one.
    return _text(process / "stat").rpartition(")")[2].split()


def began(process: Path) -> str:
    """Return when a process began, which distinguishes it from an earlier one of its number; empty = there is none."""
    try:
        return fields_after_name(process)[19]
    except (OSError, IndexError):
        return ""


def ends(pid: int, seconds: float) -> bool:
    """Whether a process ends in so many seconds, also where its parent leaves it on the list; OSError without one."""
    handle = os.pidfd_open(pid)
    try:
        return ended(handle, seconds)
    finally:
        os.close(handle)


def ended(handle: int, seconds: float) -> bool:
    """Whether the process behind a pidfd ends within `seconds`."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def open_files(process: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each open file of a process, in its folder `fd`, with its target; what cannot be read is left out."""
    with suppress(OSError):
        for file in (process / "fd").iterdir():
            with suppress(OSError):
                yield file, file.readlink()


@contextmanager
def borrowed(file: Path) -> Iterator[int]:
    """Have an open file of another process as an open file of ours (pidfd_getfd(2))."""
    process = os.pidfd_open(int(file.parents[1].name))
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        ours = int(libc.syscall(_PIDFD_GETFD, process, int(file.name), 0))
        if ours < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(process)
    try:
        yield ours
    finally:
        os.close(ours)


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
    """Yield the TUN and TAP interfaces that a process has open.

    A name says little: every namespace may have an interface of that name, and an interface may be moved to another
    namespace than that of the process which made it.
    """
    for file, target in open_files(process):
        with suppress(OSError):
            name = tun_of(file, target)
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


def tun_of(file: Path, target: Path) -> str | None:
    """Return the TUN or TAP interface of an open file; None = it has none.

    Args:
        target: its target, whatever its name: a container may have the device node elsewhere.
    """
    # Of sockets, pipes and what else has no place in a file system there are many.
    if not target.is_absolute():
        return None
    found = _INTERFACE.search(_text(file.parents[1] / "fdinfo" / file.name))
    return None if found is None else found[1]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
