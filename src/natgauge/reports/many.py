# SPDX-License-Identifier: Apache-2.0
"""The table of many gateways for people: a line for each, by the work that they do, and a column for each metric.

Next to the figures are the words of the doubts that could change the answer, and why there is no result.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from natgauge.analysis import conditions
from natgauge.metrics import declared
from natgauge.records.measurement import Result
from natgauge.reports import doubtful
from natgauge.reports.failures import BrokenMeasurement
from natgauge.reports.graded_doubts import graded
from natgauge.reports.heading import SAID_ROWS
from natgauge.reports.labels import names_of
from natgauge.reports.main_figure import in_cell
from natgauge.reports.pivot import alike, heading_of, matrix, unlike
from natgauge.reports.sheet import Sheet, SheetRow, of_runs
from natgauge.words import listed

#: So many results can be read next to each other.
_FEW: Final = 8
#: The most characters of the reason why there is no result; `natgauge status` prints all.
_REASON: Final = 60
#: Heading of the gateways of which nothing is known.
_NONE: Final = "without any result"


def is_wanted(results: Sequence[Result]) -> bool:
    """Return whether results are too many to be read next to each other, and differ by gateway: one for each metric."""
    gateways, metrics = ({getattr(result, name) for result in results} for name in ("gateway", "metric"))
    own = {(result.gateway, result.metric) for result in results}
    return len(results) > _FEW and len(own) == len(results) and len(gateways) >= len(metrics)


def sheet(results: Sequence[Result], broken: Sequence[BrokenMeasurement] = ()) -> Sheet:
    """Return a line for each gateway, also for those without a result; the best of the first metric lead each work.

    Args:
        results: at least one, at most one for each gateway and metric.
    """
    columns, by_gateway = matrix(results)
    metrics = {heading_of(result): result.metric for result in results}
    failed: dict[str, list[BrokenMeasurement]] = {}
    for one in broken:
        failed.setdefault(one.gateway, []).append(one)

    def row(gateway: str) -> SheetRow:
        own, none = by_gateway.get(gateway, {}), failed.get(gateway, [])
        lacking = {one.measurement for one in none}
        cells = (
            in_cell(own[column]) if column in own else "no result" if metrics[column] in lacking else "-"
            for column in columns
        )
        return SheetRow(gateway, (*cells, _words(own, none)))

    groups = _by_work(by_gateway, columns)
    lines = [SheetRow("gateway", (*columns, "doubts"))]
    for title, gateways in groups.items():
        lines += [SheetRow(title, ())] if len(groups) > 1 or failed.keys() - by_gateway.keys() else []
        lines += map(row, gateways)
    if without := [gateway for gateway in failed if gateway not in by_gateway]:
        lines += [SheetRow(_NONE, ()), *map(row, without)]
    notes = [*alike(results, except_for=SAID_ROWS), *_unlike(groups, by_gateway, columns)]
    return Sheet(tuple(lines), tuple(notes), doubts_of(results), None, of_runs(results), ends_in_words=True)


def doubts_of(results: Sequence[Result], *, each: bool = False, informing: bool = True) -> tuple[str, ...]:
    """Return the doubts of results, with at most four names.

    Args:
        each: whether each text of a doubt has a line, otherwise each word that could change an answer.
        informing: whether those are among them that are for information, and that no cell has a mark of.
    """

    def having(found: Sequence[int]) -> str:
        if len(found) == 1:
            return f" ({called(found[0])})" if len(results) > 1 else ""
        return f" ({len(found)} results: {listed(list(dict.fromkeys(names[at] for at in found)))})"

    def called(at: int) -> str:
        return f"{results[at].metric} of {names[at]}"

    names = [result.gateway for result in results] if is_wanted(results) else names_of(results)

    every = [
        (at, [doubt for doubt in result.doubts if informing or doubt.grade != "information"])
        for at, result in enumerate(results)
    ]
    return tuple(graded(every, having, called=called, brief=not each, each=each, marked=True))


def _words(own: Mapping[str, Result], failed: Sequence[BrokenMeasurement]) -> str:
    """The words of the doubts that could change an answer, and why there is no result or nothing passed."""
    found: dict[str, list[str]] = {}
    for result in own.values():
        words: list[str] = [doubt.word for doubt in result.doubts if doubt.grade == "answer"]
        if not words and not result.median and declared(result.metric).better == "higher":
            words = [doubtful.bottleneck(result)]
        if words:
            found.setdefault(", ".join(dict.fromkeys(words)), []).append(result.metric)
    texts = [f"{'' if len(of) == len(own) else f'{listed(of)}: '}{words}" for words, of in found.items()]
    return "; ".join([*texts, *(_reason(one) for one in failed)])


def _reason(failed: BrokenMeasurement) -> str:
    cause = textwrap.shorten(failed.cause, _REASON, placeholder=" ...")
    return f"{failed.measurement}{failed.where}: {cause}" if failed.where else cause


def _by_work(by_gateway: Mapping[str, Mapping[str, Result]], columns: Sequence[str]) -> Mapping[str, list[str]]:
    """Names of the gateways by their work, in each the best of the first metric first; other metrics break ties."""
    works = {
        name: conditions.work_of(conditions.figure_of(next(iter(own.values())))) for name, own in by_gateway.items()
    }
    named = conditions.named_works(works.values())
    groups: dict[str, list[str]] = {}
    for gateway, work in works.items():
        groups.setdefault(named[work], []).append(gateway)
    return {
        title: sorted(names, key=lambda name: [_place(by_gateway[name].get(column)) for column in columns])
        for title, names in groups.items()
    }


def _place(result: Result | None) -> tuple[bool, float]:
    if result is None:
        return True, 0.0
    return False, -result.median if declared(result.metric).better == "higher" else result.median


def _unlike(
    groups: Mapping[str, Sequence[str]], by_gateway: Mapping[str, Mapping[str, Result]], columns: Sequence[str]
) -> list[str]:
    """Sentences on the conditions in which gateways of one work differ, each with its columns."""
    found: dict[tuple[str, str], list[str]] = {}
    for title, names in groups.items():
        for column in columns:
            own = [by_gateway[name][column] for name in names if column in by_gateway[name]]
            if said := unlike(own):
                found.setdefault((title, said), []).append(column)
    return [
        f"{f'{title}, ' if len(groups) > 1 else ''}{', '.join(own)}: {said}" for (title, said), own in found.items()
    ]
