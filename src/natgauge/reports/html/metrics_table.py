# SPDX-License-Identifier: Apache-2.0
"""Tables of a page: one for each metric, a row for each device, a column for each point; and one of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from natgauge.analysis import conditions
from natgauge.analysis.scalability import varied_with
from natgauge.metrics import declared
from natgauge.records.measurement import Result
from natgauge.reports import graded_doubts, labels, main_figure
from natgauge.reports.answers import Sentence
from natgauge.reports.rows import unit_of

#: A table of more columns is turned, if it has fewer devices.
_COLUMNS: Final = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """One result in the table.

    Attributes:
        column: number of the result on the page, from 1.
        run: which of several results that no shown parameter distinguishes; empty = it is the only one.
    """

    column: int
    median: str
    mark: str
    spread: str
    doubts: tuple[str, ...]
    run: str = ""


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """The table of one metric.

    Attributes:
        rows: device or parameters, and the results of each column: none, one, or several that no shown parameter
            distinguishes.
        unlike: the conditions in which the results differ that no column shows, which the page says once; None = none.
    """

    title: str
    corner: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Entry, ...], ...]], ...]
    unlike: conditions.Unlike | None = None


def metrics_tables(results: Sequence[Result]) -> list[MetricsTable]:
    """Return a table for each metric, in the order of the results."""
    by_title: dict[str, list[tuple[int, Result]]] = {}
    for column, result in enumerate(results, start=1):
        by_title.setdefault(f"{declared(result.metric).plain_name} ({unit_of(result)})", []).append((column, result))
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
    cells = [tuple(_runs(places.get((gateway, point), ())) for point in points) for gateway in gateways]
    words = tuple(heads[point] for point in points)
    shown = frozenset[str]().union(*map(varied_with, names))
    figures = [conditions.figure_of(result) for _, result in group]
    unlike = conditions.unlike(figures, except_for=shown, so=conditions.NOT_RANKED_BY_TABLES)
    if len(points) <= max(_COLUMNS, len(gateways)):
        return MetricsTable(title, "gateway", words, tuple(zip(gateways, cells, strict=True)), unlike)
    turned = tuple(zip(words, zip(*cells, strict=True), strict=True))
    return MetricsTable(title, "conditions", tuple(gateways), turned, unlike)


def _runs(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Results of one place; several, which differ in nothing that is shown, are numbered."""
    if len(entries) < 2:
        return tuple(entries)
    return tuple(replace(entry, run=f"run {at}") for at, entry in enumerate(entries, start=1))


def _entry(column: int, result: Result) -> Entry:
    grave = dict.fromkeys(doubt.word for doubt in result.doubts if doubt.grade == "answer")
    spread = main_figure.spread(result, named=False)
    return Entry(column, main_figure.median(result), graded_doubts.mark(result.doubts), spread, tuple(grave))


#: A page with fewer ratios has them in sentences.
_FEW: Final = 2


@dataclass(frozen=True, slots=True)
class RatioTable:
    """Ratios: a row for each gateway, a column for each sentence."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tabled_of(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that a table says better; none where there are few ratios."""
    having = [one for one in sentences if len(one.ratios) > 1 and not one.leads]
    return having if sum(len(one.ratios) for one in having) > _FEW else []


def ratio_table(sentences: Sequence[Sentence]) -> RatioTable | None:
    """Return the table of the ratios of these sentences; None where there are none."""
    if not sentences:
        return None
    gateways = dict.fromkeys(gateway for one in sentences for gateway, _ in one.ratios)
    columns = [dict(one.ratios) for one in sentences]
    return RatioTable(
        ("gateway", *(one.about for one in sentences)),
        tuple((gateway, *(column.get(gateway, "-") for column in columns)) for gateway in gateways),
    )
