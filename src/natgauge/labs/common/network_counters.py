# SPDX-License-Identifier: Apache-2.0
"""Counters of a namespace's network stack, by the names that nstat(8) and conntrack(8) print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from natgauge.labs.common.namespaces import inside

#: Columns of /proc/net/softnet_stat (net/core/net-procfs.c).
_SOFTNET: Final = ("processed", "dropped", "time_squeeze")
_Counts = Iterator[tuple[str, int]]


def read_counters(netns: str) -> Mapping[str, int]:
    """Return the counters of a namespace, those of `softnet` of the whole machine; missing files are left out.

    Raises:
        BrokenError: the namespace is gone.
    """

    def read() -> Counter[str]:
        counters: Counter[str] = Counter()
        for name, parse in _FILES.items():
            # thread-self: /proc/net is /proc/self/net, the main thread's namespace.
            with suppress(OSError):
                for counter, count in parse(Path("/proc/thread-self/net", name).read_text(encoding="ascii")):
                    counters[counter] += count
        return counters

    return inside(netns, read)


def groups(text: str) -> _Counts:
    """Yield the counters of snmp or netstat: for each group a line of names, and a line of values."""
    for names, values in pairwise(line.split() for line in text.splitlines()):
        if names[0] == values[0]:
            yield from zip((names[0].rstrip(":") + name for name in names[1:]), map(int, values[1:]), strict=False)


def pairs(text: str) -> _Counts:
    """Yield the counters of snmp6: a name and a value in each line."""
    yield from ((name, int(value)) for name, value in map(str.split, text.splitlines()))


def softnet(text: str) -> _Counts:
    """Yield the counters of softnet_stat, a row for each CPU."""
    yield from _rows("softnet", _SOFTNET, text.splitlines())


def conntrack(text: str) -> _Counts:
    """Yield the counters of stat/nf_conntrack: names, then a row for each CPU; `entries` is no counter."""
    names, *rows = text.splitlines()
    yield from (each for each in _rows("conntrack", names.split(), rows) if each[0] != "conntrack entries")


def _rows(prefix: str, names: Sequence[str], rows: Sequence[str]) -> _Counts:
    for row in rows:
        yield from ((f"{prefix} {name}", int(value, 16)) for name, value in zip(names, row.split(), strict=False))


_FILES: Final[Mapping[str, Callable[[str], _Counts]]] = {
    "snmp": groups,
    "netstat": groups,
    "snmp6": pairs,
    "softnet_stat": softnet,
    "stat/nf_conntrack": conntrack,
}
