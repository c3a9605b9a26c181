# SPDX-License-Identifier: Apache-2.0
"""Many results at a glance: a table for each metric, a row for each device, a column for each point of the series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.records.measurement import Result
from natgauge.reports import labels, text
from natgauge.reports.rows import number, unit_of

#: Number of results that a reader can survey without a table.
FEW: Final = 6
#: Distinguishes a column from others: for each parameter its number and its words.
_Point = tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One result in the table.

    Attributes:
        column: number of its column in the tables, from 1.
        median: printed.
        spread: largest deviation of a repetition, or the search error, whichever is larger; empty where neither is
            known.
        doubts: number of its doubts.
    """

    column: int
    median: str
    spread: str
    doubts: int


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """The table of one metric.

    Attributes:
        title: metric and unit.
        head: parameters of each column.
        rows: device, and the results of each column: none, one, or several that no shown parameter distinguishes.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Entry, ...], ...]], ...]


def metrics_tables(results: Sequence[Result]) -> list[MetricsTable]:
    """Return a table for each metric, in the order of the results; none where there are few results."""
    return list(_tables(results)) if len(results) > FEW else []


def _tables(results: Sequence[Result]) -> Iterator[MetricsTable]:
    by_title: dict[str, list[tuple[int, Result]]] = {}
    for column, result in enumerate(results, start=1):
        by_title.setdefault(f"{result.metric} ({unit_of(result)})", []).append((column, result))
    for title, group in by_title.items():
        yield _table(title, group)


def _table(title: str, group: Sequence[tuple[int, Result]]) -> MetricsTable:
    by_device: dict[str, list[Result]] = {}
    for _, result in group:
        by_device.setdefault(result.dut, []).append(result)
    # Parameters that differ within a device. Devices of different address families differ in frames, but share columns.
    names = list(dict.fromkeys(name for own in by_device.values() for name in labels.differing(own)))
    heads: dict[_Point, str] = {}
    places: dict[tuple[str, _Point], list[Entry]] = {}
    for column, result in group:
        point = _point(result, names)
        heads[point] = labels.words(result, names) or "median"
        places.setdefault((result.dut, point), []).append(_entry(column, result))
    points = sorted(heads)
    rows = tuple((dut, tuple(tuple(places.get((dut, point), ())) for point in points)) for dut in by_device)
    return MetricsTable(title, tuple(heads[point] for point in points), rows)


def _point(result: Result, names: Sequence[str]) -> _Point:
    """Sorts numbers as numbers, and words as words."""
    return tuple((result.number(name) or 0.0, str(result.parameter(name))) for name in names)


def _entry(column: int, result: Result) -> Entry:
    known = [text.spread_of(result)] if len(result.repetitions) > 1 else []
    known += [result.error / result.median] if result.error and result.median else []
    off = max((each for each in known if each is not None), default=None)
    return Entry(column, number(result.median), "" if off is None else f"±{off:.1%}", len(result.doubts))
