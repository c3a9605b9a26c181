# SPDX-License-Identifier: Apache-2.0
"""Counters of a network stack, by the names that nstat(8) and conntrack(8) print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from natgauge.labs.common.namespaces import inside
from natgauge.labs.common.queue_counters import read_queues

#: Columns of /proc/net/softnet_stat (net/core/net-procfs.c).
_SOFTNET: Final = ("processed", "dropped", "time_squeeze")
_Counts = Iterator[tuple[str, int]]


def read_counters(netns: str) -> Counter[str]:
    """Return the counters of a namespace, those of `softnet` of the whole machine; missing files are left out.

    Those of queueing disciplines and TUN interfaces are named as `read_queues` does.
    """

    def read() -> dict[str, list[str]]:
        texts = {}
        for name in FILES:
            # thread-self: /proc/net is /proc/self/net, the main thread's namespace.
            with suppress(OSError):
                texts[name] = Path("/proc/thread-self/net", name).read_text(encoding="ascii").splitlines()
        return texts

    texts, queues = inside(netns, lambda: (read(), read_queues()))
    counters = counters_of(texts)
    counters.update(queues)
    return counters


def counters_of(texts: Mapping[str, Sequence[str]]) -> Counter[str]:
    """Return the counters in the lines of some of `FILES`; rows of several CPUs are added up."""
    counters: Counter[str] = Counter()
    for name, lines in texts.items():
        for counter, count in FILES[name](lines):
            counters[counter] += count
    return counters


def _groups(lines: Sequence[str]) -> _Counts:
    """Yield the counters of snmp or netstat: for each group a line of names, and a line of values."""
    for names, values in pairwise(line.split() for line in lines):
        if names[0] == values[0]:
            yield from zip((names[0].rstrip(":") + name for name in names[1:]), map(int, values[1:]), strict=False)


def _pairs(lines: Sequence[str]) -> _Counts:
    """Yield the counters of snmp6: a name and a value in each line."""
    yield from ((name, int(value)) for name, value in map(str.split, lines))


def _softnet(rows: Sequence[str]) -> _Counts:
    """Yield the counters of softnet_stat, a row for each CPU."""
    yield from _rows("softnet", _SOFTNET, rows)


def _conntrack(lines: Sequence[str]) -> _Counts:
    """Yield the counters of stat/nf_conntrack: names, then a row for each CPU; `entries` is no counter."""
    rows = _rows("conntrack", lines[0].split(), lines[1:]) if lines else ()
    yield from (each for each in rows if each[0] != "conntrack entries")


def _rows(prefix: str, names: Sequence[str], rows: Sequence[str]) -> _Counts:
    for row in rows:
        yield from ((f"{prefix} {name}", int(value, 16)) for name, value in zip(names, row.split(), strict=False))


#: Files below /proc/net, and how they are read.
FILES: Final[Mapping[str, Callable[[Sequence[str]], _Counts]]] = {
    "snmp": _groups,
    "netstat": _groups,
    "snmp6": _pairs,
    "softnet_stat": _softnet,
    "stat/nf_conntrack": _conntrack,
}
