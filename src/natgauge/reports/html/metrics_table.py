# SPDX-License-Identifier: Apache-2.0
"""Results at a glance: a table for each metric, a row for each device, a column for each point of the series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis import conditions
from natgauge.analysis.scalability import varied_with
from natgauge.records.measurement import Result
from natgauge.reports import doubtful, labels, text
from natgauge.reports.rows import number, unit_of

#: A table of more columns is turned, if it has fewer devices.
_COLUMNS: Final = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """One result in the table.

    Attributes:
        column: number of the result on the page, from 1.
        spread: largest deviation of a repetition, or the search error, whichever is larger; empty where neither is
            known.
    """

    column: int
    median: str
    spread: str
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """The table of one metric.

    Attributes:
        rows: device or parameters, and the results of each column: none, one, or several that no shown parameter
            distinguishes.
        unlike: sentence on the conditions in which the results differ that no column shows; empty = none.
    """

    title: str
    corner: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Entry, ...], ...]], ...]
    unlike: str = ""


def metrics_tables(results: Sequence[Result]) -> list[MetricsTable]:
    """Return a table for each metric, in the order of the results."""
    by_title: dict[str, list[tuple[int, Result]]] = {}
    for column, result in enumerate(results, start=1):
        by_title.setdefault(f"{result.metric} ({unit_of(result)})", []).append((column, result))
    return [_table(title, group) for title, group in by_title.items()]


def _table(title: str, group: Sequence[tuple[int, Result]]) -> MetricsTable:
    # Parameters that differ within a device. Devices of different address families differ in frames, but share columns.
    gateways = dict.fromkeys(result.gateway for _, result in group)
    names = labels.differing_within([result for _, result in group])
    heads: dict[tuple[tuple[float, str], ...], str] = {}
    places: dict[tuple[str, tuple[tuple[float, str], ...]], list[Entry]] = {}
    for column, result in group:
        # Numbers are sorted as numbers, and words as words.
        point = tuple((result.number(name) or 0.0, str(result.parameter(name))) for name in names)
        heads[point] = labels.words(result, names) or "median"
        places.setdefault((result.gateway, point), []).append(_entry(column, result))
    points = sorted(heads)
    cells = [tuple(tuple(places.get((gateway, point), ())) for point in points) for gateway in gateways]
    words = tuple(heads[point] for point in points)
    shown = frozenset[str]().union(*map(varied_with, names))
    unlike = conditions.sentence([conditions.figure_of(result) for _, result in group], except_for=shown)
    if len(points) <= max(_COLUMNS, len(gateways)):
        return MetricsTable(title, "gateway", words, tuple(zip(gateways, cells, strict=True)), unlike)
    turned = tuple(zip(words, zip(*cells, strict=True), strict=True))
    return MetricsTable(title, "conditions", tuple(gateways), turned, unlike)


def _entry(column: int, result: Result) -> Entry:
    known = [text.spread_of(result)] if len(result.repetitions) > 1 else []
    known += [result.error / result.median] if result.error and result.median else []
    off = max((each for each in known if each is not None), default=None)
    grave = dict.fromkeys(doubt.word for doubt in result.doubts if doubt.grade == "answer")
    spread = "" if not off else f"±{max(off, text.LEAST_SPREAD):.1%}"
    return Entry(column, number(result.median), f"{spread}{doubtful.missing(result)}".strip(), tuple(grave))
