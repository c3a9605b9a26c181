# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine: list them, and end them."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from natgauge.errors import BrokenError
from natgauge.labs.common import protected


def all_processes() -> Iterable[int]:
    """List all processes but our own."""
    return (
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != str(os.getpid())
    )


def end_processes(pids: Sequence[int], patience: float = 1.0) -> tuple[int, ...]:
    """End processes: ask, and after `patience` seconds make them."""
    handles: dict[int, int] = {}
    never = protected.ancestry()
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
    """Open a process."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError as error:
        raise BrokenError(f"process {pid}: cannot be ended ({error.strerror}); then run: natgauge lab clean") from error


def ended(handle: int, seconds: float) -> bool:
    """Whether the process behind a pidfd ends within `seconds`."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
