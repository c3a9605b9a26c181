# SPDX-License-Identifier: Apache-2.0
"""Processes and namespaces that are never taken away, whichever register or name asks for it."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge.host import process_files
from natgauge.labs.common import locks

_INIT: Final = 1
#: Files whose network namespaces are never taken: of this process, of the calling thread, and of the first process.
_OWN: Final = ("/proc/self/ns/net", "/proc/thread-self/ns/net", f"/proc/{_INIT}/ns/net")


def ancestry() -> frozenset[int]:
    """Return this process, the processes that started it, and the first process of all."""
    found = {_INIT, os.getpid()}
    pid = os.getppid()
    while pid > _INIT and pid not in found:
        found.add(pid)
        pid = parent_of(pid) or _INIT
    return frozenset(found)


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; 0 = outside of this PID namespace, None = the process has ended."""
    with suppress(OSError, ValueError, IndexError):
        return int(process_files.fields_after_name(Path(f"/proc/{pid}"))[1])
    return None


def is_machines_own(namespace: os.stat_result) -> bool:
    """Whether a network namespace is that of this process, or of the first process of the machine or container."""
    for path in _OWN:
        with suppress(OSError):
            if os.path.samestat(Path(path).stat(), namespace):
                return True
    return False


def why_protected(pid: int, using: Collection[int]) -> str:
    """Return why a process is not ended, as a part of a sentence; empty = it may be."""
    if pid in ancestry():
        return f"natgauge was started from process {pid} ({name_of(pid)}), which is in it; leave it first"
    if pid in using:
        return f"process {pid} is a natgauge that measures in it; wait until it has ended"
    return ""


def using() -> frozenset[int]:
    """Return the processes that hold a lock of natgauge, other than this one."""
    return locks.holders() - {os.getpid()}


def name_of(pid: int, ended: str = "?") -> str:
    """Return the name of a process's program; `ended` when it has ended."""
    with suppress(OSError):
        return process_files.name_of(Path(f"/proc/{pid}"))
    return ended
