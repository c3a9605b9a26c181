# SPDX-License-Identifier: Apache-2.0
"""Open files of other processes, borrowed to ask the kernel about them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: The same number on all architectures (asm-generic/unistd.h).
_PIDFD_GETFD: Final = 438


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
