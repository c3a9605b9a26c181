# SPDX-License-Identifier: Apache-2.0
"""Work of each processor of another Linux machine, from the kernel's own counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.core_work import CoreWork
from natgauge.host.sections import SECTION, sections_of

SCRIPT: Final = f"""echo '{SECTION}softnet'; cat /proc/net/softnet_stat
echo '{SECTION}stat'; grep '^cpu[0-9]' /proc/stat
"""
#: Column of the processor's number in /proc/net/softnet_stat (net/core/net-procfs.c), since Linux 5.10.
_NUMBER: Final = 12
#: Units of /proc/stat per second: USER_HZ, which is 100 on every architecture (proc(5)).
_TICKS: Final = 100
#: Columns of idle time in /proc/stat after the name: idle, iowait; the time of guests is part of the user time.
_IDLE: Final = (3, 4)
_COLUMNS: Final = 8


def read(text: str, online: Sequence[int]) -> dict[int, CoreWork]:
    """Parse the output of the script.

    Frames are those that the network stack of a processor processed, of all interfaces and namespaces.

    Args:
        online: processors that are online, ascending; an old kernel prints their lines in this order.
    """
    sections = sections_of(text)
    rows = [[int(word, 16) for word in line.split()] for line in sections.get("softnet", ())]
    numbered = rows and all(len(row) > _NUMBER for row in rows)
    numbers = [row[_NUMBER] for row in rows] if numbered else list(online)
    seconds = dict(_busy(sections.get("stat", ())))
    return {number: CoreWork(row[0], seconds.get(number)) for number, row in zip(numbers, rows, strict=True)}


def _busy(lines: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield the number of each processor and the seconds in which it was not idle."""
    for line in lines:
        name, *words = line.split()
        ticks = [int(word) for word in words[:_COLUMNS]]
        yield int(name.removeprefix("cpu")), (sum(ticks) - sum(ticks[at] for at in _IDLE)) / _TICKS
