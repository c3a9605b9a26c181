# SPDX-License-Identifier: Apache-2.0
"""Files in memory for the output of programs: however much a program prints, at most a limit of it is stored."""

from __future__ import annotations

import ctypes
import fcntl
import os
from contextlib import suppress
from typing import Final, Self

#: Octets of an output that are stored: its beginning.
MOST_OCTETS: Final = 4 * 1024 * 1024
#: New mounts of Linux 5.2 (fsopen(2), fsconfig(2), fsmount(2)); the numbers are the same for all processors.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_FSCONFIG_SET_STRING, _FSCONFIG_CREATE = 1, 6
_CLOSE_ON_EXEC: Final = 1


class BoundedOutput:
    """A file without a name for the output of a program and of all that it starts. Use it as a context manager.

    A program that prints more gets the error "no space left" for the rest, and is not ended by it. The limit holds for
    as long as any process has the file open. So a daemon that inherited it, and still prints when nobody reads any
    more, uses no more memory, either.

    It is no pipe: a daemon that a command started would hold a pipe open for ever, and would end by SIGPIPE when
    natgauge ends.
    """

    def __init__(self, most: int = MOST_OCTETS) -> None:
        """Make the file, which stores `most` octets, a multiple of 4096."""
        self.most = most
        handle = _of_own_file_system(most)
        #: Whether the file has a fixed size, and what was written is known by the common position alone.
        self._sealed = handle is None
        self._file = os.fdopen(_sealed(most) if handle is None else handle, "r+b", buffering=0)

    def fileno(self) -> int:
        """Return the descriptor, for `subprocess.Popen`."""
        return self._file.fileno()

    @property
    def is_full(self) -> bool:
        """Whether the program printed as much as is stored, or more."""
        if self._sealed:
            return os.lseek(self.fileno(), 0, os.SEEK_CUR) >= self.most
        return os.fstat(self.fileno()).st_blocks * 512 >= self.most

    def text(self) -> str:
        """Return what was printed so far; octets that are no UTF-8 are replaced."""
        most = os.lseek(self.fileno(), 0, os.SEEK_CUR) if self._sealed else self.most
        return os.pread(self.fileno(), min(most, self.most), 0).decode(errors="replace")

    def close(self) -> None:
        """Close the file; programs that have it open keep it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def size_in_words(octets: int) -> str:
    """Return a number of octets for a message, e.g. "4 MiB"."""
    return f"{octets >> 20} MiB" if octets >= 1 << 20 else f"{octets} octets"


def _of_own_file_system(most: int) -> int | None:
    """Return a file of a file system that has room for nothing else; None where this process may not make one.

    The file system is never mounted anywhere, and ends with the last descriptor of its file.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(_FSOPEN, b"tmpfs", _CLOSE_ON_EXEC)
    if context < 0:
        return None
    try:
        for key, value in ((b"size", b"%d" % most), (b"nr_inodes", b"2")):
            if libc.syscall(_FSCONFIG, context, _FSCONFIG_SET_STRING, key, value, 0):
                return None
        if libc.syscall(_FSCONFIG, context, _FSCONFIG_CREATE, None, None, 0):
            return None
        root = libc.syscall(_FSMOUNT, context, _CLOSE_ON_EXEC, 0)
    finally:
        os.close(context)
    if root < 0:
        return None
    try:
        with suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=root)
    finally:
        os.close(root)
    return None


def _sealed(most: int) -> int:
    """Return a file of a fixed size, which nobody can change; a program that writes beyond it gets an error."""
    handle = os.memfd_create("natgauge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(handle, most)
    fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return handle
