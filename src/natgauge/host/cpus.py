# SPDX-License-Identifier: Apache-2.0
"""Cores of this machine, and the check of a choice of cores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from natgauge.errors import UsageError
from natgauge.inputs.cores import format_cores, parse_cores

#: Seconds of observation to find the least busy core: 20 ticks of /proc/stat.
IDLE_WATCH_SECONDS: Final = 0.2

_ONLINE = Path("/sys/devices/system/cpu/online")
#: Cores that a plan for another machine assumes; None = the cores of this machine.
_assumed: ContextVar[tuple[int, ...] | None] = ContextVar("assumed cores", default=None)


def online_cpus() -> tuple[int, ...]:
    """Cores the kernel runs on now, ascending."""
    if (pretended := _assumed.get()) is not None:
        return pretended
    try:
        return parse_cores(_ONLINE.read_text())
    except OSError:
        return tuple(range(os.cpu_count() or 1))


def usable_cpus() -> tuple[int, ...]:
    """Online cores this process may be pinned to (cpusets and taskset narrow them), ascending."""
    if (pretended := _assumed.get()) is not None:
        return pretended
    return tuple(sorted(os.sched_getaffinity(0) & set(online_cpus())))


@contextmanager
def as_if(cores: int | Sequence[int] | None) -> Iterator[None]:
    """Plan as if this machine had these cores; a number N = 0 to N - 1, None = its own. Never for trials."""
    token = _assumed.set(None if cores is None else tuple(range(cores) if isinstance(cores, int) else cores))
    try:
        yield
    finally:
        _assumed.reset(token)


def check_cpus(cpus: Sequence[int], what: str, at: str = "") -> tuple[int, ...]:
    """Refuse a choice of cores that this process cannot use.

    Args:
        cpus: the choice, at least one core, each once.
    """
    if not cpus:
        raise UsageError(f"{what}: none chosen; name at least one of {format_cores(usable_cpus())}", at=at)
    if len(set(cpus)) != len(cpus):
        raise UsageError(f"{what} {format_cores(cpus)}: a core is named twice; name each once", at=at)
    usable = usable_cpus()
    for cpu in cpus:
        if cpu not in usable:
            raise UsageError(f"{what}: core {cpu} cannot be used here; choose from {format_cores(usable)}", at=at)
    return tuple(cpus)


def idlest_core(cpus: Sequence[int], seconds: float = IDLE_WATCH_SECONDS) -> int:
    """Return the core that idles most during `seconds`; the first of equals."""
    before = _idle_ticks()
    time.sleep(seconds)
    after = _idle_ticks()
    return max(cpus, key=lambda cpu: (after.get(cpu, 0) - before.get(cpu, 0), -cpu))


def _idle_ticks() -> dict[int, int]:
    """Return the idle ticks of each core since boot (proc_stat(5): the fourth and fifth figure of its line)."""
    lines = Path("/proc/stat").read_text().splitlines()
    cores = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
    return {int(words[0].removeprefix("cpu")): int(words[4]) + int(words[5]) for words in cores}
