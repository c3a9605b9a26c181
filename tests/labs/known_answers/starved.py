# SPDX-License-Identifier: Apache-2.0
"""Whether a device had its core: in `isolated` placement kernel threads work for it, beside all else on that core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

#: How the kernel calls the threads behind the rings (kernel/bpf/cpumap.c).
PREFIX = "cpumap/"
#: A device whose threads waited for a larger share of the time that they wanted to run had no core of its own.
MOST_WAITED = 0.2


def watch() -> Callable[[], float]:
    """Begin to watch the threads there are now; tells the share of the time they wanted a core that they waited for it.

    0.0 where none of them wanted one.
    """
    before = {thread: _times(thread) for thread in _threads()}

    def share() -> float:
        ran = waited = 0
        for thread, (ran_before, waited_before) in before.items():
            now = _times(thread)
            ran, waited = ran + max(0, now[0] - ran_before), waited + max(0, now[1] - waited_before)
        return waited / (ran + waited) if ran + waited else 0.0

    return share


def _threads() -> Iterator[Path]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().startswith(PREFIX):
                yield folder
        except OSError:  # it has ended
            continue


def _times(thread: Path) -> tuple[int, int]:
    """Nanoseconds it ran, and waited to run (Documentation/scheduler/sched-stats.rst)."""
    try:
        ran, waited, _ = map(int, (thread / "schedstat").read_text().split())
    except OSError:
        return 0, 0
    return ran, waited
