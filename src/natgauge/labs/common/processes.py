# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine: listed, ended, and never ended; functions called in a thread of their own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from natgauge.errors import BrokenError, EndedBySignal, HostError
from natgauge.host import process_files
from natgauge.host.process_files import ended
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


def all_processes() -> Iterable[int]:
    """List all processes but our own."""
    return (
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != str(os.getpid())
    )


def end_processes(pids: Sequence[int], patience: float = 1.0) -> tuple[int, ...]:
    """End processes: ask, and after `patience` seconds make them."""
    handles: dict[int, int] = {}
    never = ancestry()
    try:
        for pid in pids:
            if pid not in never:
                with suppress(ProcessLookupError):
                    handles[pid] = _opened(pid)
        running = alive = [pid for pid, handle in handles.items() if not ended(handle, 0.0)]
        for signal_number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
            alive = [pid for pid in alive if not ended(handles[pid], 0.0)]
            for pid in alive:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handles[pid], signal_number)
            until = time.monotonic() + seconds
            alive = [pid for pid in alive if not ended(handles[pid], until - time.monotonic())]
        if alive:
            raise BrokenError(f"process {alive[0]}: did not end after SIGKILL; end it, then run: natgauge lab clean")
        return tuple(running)
    finally:
        for handle in handles.values():
            os.close(handle)


def _opened(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError as error:
        raise BrokenError(f"process {pid}: cannot be ended ({error.strerror}); then run: natgauge lab clean") from error


_INTERRUPTED_SECONDS: Final = 5.0
_T = TypeVar("_T")


class NoThreadError(HostError):
    """No further thread can be started."""


def in_thread(function: Callable[[], _T], name: str = "natgauge") -> _T:
    """Call `function` in a thread of its own and return what it returns, or raise what it raises."""
    outcome: Future[_T] = Future()

    def work() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller, who sees it unchanged
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        try:
            thread.start()
        except RuntimeError as error:
            raise NoThreadError(
                "no further thread can be started; allow more processes (ulimit -u, pids.max of the control group)"
            ) from error
        return outcome.result()
    except (KeyboardInterrupt, EndedBySignal):
        # What the thread is making is about to be undone: let it finish first. It may not have said yet that it runs.
        wait([outcome], _INTERRUPTED_SECONDS)
        raise
