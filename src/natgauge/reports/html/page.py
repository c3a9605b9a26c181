# SPDX-License-Identifier: Apache-2.0
"""The page: answers in words, doubts by what they could change, figures, tables, and the evidence behind one click.

The page is complete, sends no requests, and works without a script: its script only shows values under a pointer, and
unfolds what is linked or printed.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from natgauge import file_access
from natgauge.analysis import conditions
from natgauge.analysis.conditions import Unlike
from natgauge.analysis.derived import varied_with
from natgauge.analysis.ratio_verdicts import doubts_of_all
from natgauge.metrics import declared
from natgauge.metrics.catalogue import SUBSCRIBERS
from natgauge.plain_text import capital, visible
from natgauge.records.audit import AuditedRequirement
from natgauge.records.comparison import FRAME_OF
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, describe, shown
from natgauge.records.store import TRIALS
from natgauge.reports import answers, audit, comparison, graded_doubts, labels, main_figure, text
from natgauge.reports.answers import Sentence
from natgauge.reports.collected import Stored, StoredAudit, StoredComparison, StoredResults
from natgauge.reports.failures import CommandAgain, failures_of, lacks_of, shell_options, without_result_yet
from natgauge.reports.heading import NO_WORDS, Heading, OwnWords, heading
from natgauge.reports.html import charts, evidence, figures
from natgauge.reports.html.evidence import Trials
from natgauge.reports.html.figures import FigureGroup, Looks
from natgauge.reports.labels import grouped
from natgauge.reports.main_figure import in_summary
from natgauge.reports.optional_deps import need
from natgauge.reports.sheet import Sheet, SheetRow, lines_of, notes
from natgauge.reports.sizing.answer import SizeAnswer
from natgauge.words import Verdict, enumerated, listed

#: Columns of a table next to each other; more would not fit on paper and phones.
_COLUMNS: Final = 6
#: The most figures on the first screen.
_MOST_FIRST: Final = 4
#: Beginning and end of the error of a page that cannot be written.
_WHAT, _REMEDY = "report", "name a file in a folder of yours"
#: Blanks within a figure.
_IN_FIGURE: Final = re.compile(r"(?<=[\dkMGT]) (?=±)|(?<=±) (?=\d)|(?<=\d) (?=%|[kMGT]\b|[kMGT]?bit/s|[num]?s\b)")
#: What is no prose, such as a command; and names with hyphens. A longer one may break: it would not fit a phone.
_NAME: Final = re.compile(
    r"(<(style|script|svg|pre|code|title)\b.*?</\2>|<[^>]*>)|(?<![\w-])(?:--)?\w+(?:-\w+)+(?![\w-])", re.DOTALL
)
_LONGEST_NAME: Final = 24
#: Parameter with the command as it was stored, which is shown only where it can be made again.
_COMMAND: Final = "command"
#: Parts of a page that has none of them.
_NOTHING: Final[dict[str, Any]] = {
    **dict.fromkeys(("version", "not_sure", "marks"), ""),
    **dict.fromkeys(("doubts", "failures", "groups", "metrics_tables", "results", "records", "tables"), ()),
    **dict.fromkeys(("audits", "ratios", "size")),
    "certainties": {},
}


def write(
    collected: StoredResults,
    path: Path,
    again: CommandAgain,
    own: OwnWords = NO_WORDS,
    size: SizeAnswer | None = None,
) -> None:
    """Write the page, replacing a file that is there; the answer on subscribers comes first."""
    file_access.refuse_unwritable(path, what=_WHAT, remedy=_REMEDY)
    file_access.write(path, page(collected, again, path.parent, own, size), what=_WHAT, remedy=_REMEDY)


def page(
    collected: StoredResults,
    again: CommandAgain,
    at: Path = Path(),
    own: OwnWords = NO_WORDS,
    size: SizeAnswer | None = None,
) -> str:
    """The whole page as HTML, with links to captures from the folder of the page, `at`."""
    results, records = collected.results, collected.records
    names = labels.names_of(results)
    trials = _trials(collected)
    looks = figures.looks_of(results, records)
    questions = _questions(collected, trials, looks, size.metric if size else None)
    lacks = lacks_of(collected)
    failures = failures_of(collected, lacks, again)
    sentences = [
        *(one for record in records for one in comparison.sentences(record)),
        *answers.answers(results),
        *(audit.answers([each.record for each in collected.audits]) if collected.audits else ()),
    ]
    tabled = _tabled_of(sentences)
    groups, repetitions = _first_screen(questions), figures.evidence_figures(results, looks)
    metrics_tables = _tables_of_metrics(results)
    doubts = _doubts(collected, names)
    views = [
        *(view for one in sentences for view in one.unlike),
        *(one.unlike for one in (*questions, *repetitions)),
        *(one.unlike for one in metrics_tables),
    ]
    said = [
        *(one for one in sentences if not one.unlike and one not in tabled),
        *comparison.beside_rates(records, results),
        *_conditions(collected, [view for view in views if view is not None]),
        *map(Sentence, without_result_yet(lacks)),
    ]
    common, parameters = _parameters([result.parameters for result in results], names)
    return _rendered(
        heading=heading(collected, failures, own),
        version=_versions(collected),
        size=size,
        answers=said,
        certainties=answers.meanings(sentences, [one.level for record in records for one in record.estimates]),
        ratios=_ratio_table(tabled),
        not_sure=answers.not_sure(sentences, listed=bool(doubts)),
        doubts=doubts,
        failures=failures,
        groups=groups,
        headline=_headline(groups),
        repetitions=repetitions,
        metrics_tables=metrics_tables,
        marks=graded_doubts.explained(result.doubts for result in results),
        results=[
            _result(number, *each, again) | _evidence(each[1].folder, at)
            for number, each in enumerate(zip(names, collected.stored, trials, strict=True), start=1)
        ],
        records=[_comparison(number, stored, at) for number, stored in enumerate(collected.comparisons, start=1)],
        audits=_audits(collected.audits, at) if collected.audits else None,
        tables=list(_parts([SheetRow("result", tuple(names)), *lines_of(results)[1:]])) if results else [],
        below=notes(results, lambda at, result: f"{names[at - 1]}, {result.metric}") if results else (),
        common=common,
        parameters=list(_parts(parameters)),
        environments=evidence.environments_of(collected.stored, names),
    )


def history_page(title: str, sentences: Sequence[Sentence], groups: Sequence[FigureGroup], own: OwnWords) -> str:
    """The page of figures over dates and commits."""
    head = Heading(own.title or title, note=own.paragraphs)
    return _rendered(heading=head, answers=sentences, groups=groups, headline=len(groups))


def _rendered(**parts: Any) -> str:
    """The page with these parts; it has nothing of those that are not named."""
    jinja2 = need("jinja2", "report", "the page")
    need("vl_convert", "report", "the page")
    fixed = {
        "style": _resource("page.css"),
        "script": _resource("page.js"),
        "grade_titles": graded_doubts.GRADE_TITLES,
        "drawn": charts.drawn,
    }
    html: str = _template(jinja2).render(**{**_NOTHING, **fixed, **parts})
    return _NAME.sub(_whole, html)


def _whole(match: re.Match[str]) -> str:
    """Keep the end of a line out of a name, such as "docker-nat44"."""
    is_name = match[1] is None and len(match[0]) <= _LONGEST_NAME
    return f'<span class="name">{match[0]}</span>' if is_name else match[0]


@cache
def _template(jinja2: Any) -> Any:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_harmless
    )
    environment.filters |= {
        "unbroken": _unbroken,
        "capital": capital,
        "shell": lambda path: shlex.quote(str(path)),
        "shell_options": shell_options,
    }
    return environment.from_string(_resource("page.html.j2"))


def question_groups(collected: StoredResults) -> list[FigureGroup]:
    """The figures that answer questions, as the page has them."""
    looks = figures.looks_of(collected.results, collected.records)
    return _questions(collected, _trials(collected), looks)


def _trials(collected: StoredResults) -> list[Trials]:
    most = evidence.listed_of_each(len(collected.results) or 1)
    return [evidence.trials_of(stored, most) for stored in collected.stored]


def _questions(
    collected: StoredResults, trials: Sequence[Trials], looks: Looks, first: str | None = None
) -> list[FigureGroup]:
    distributions = [each.delays.distributions() for each in trials]
    records = collected.records
    forests = [
        figures.forest_figures(f"Comparison {at}: " if len(records) > 1 else "", record, looks)
        for at, record in enumerate(records, start=1)
    ]
    questions = figures.question_figures(collected.results, distributions, looks, first or SUBSCRIBERS.name)
    return [*(forest for forest in forests if forest.figures), *questions]


def _harmless(value: object) -> object:
    """Write out what a browser would obey or cannot show; parts of the page itself are as they are."""
    return visible(value) if type(value) is str else value


def _unbroken(text: str) -> str:
    """Keep the end of a line out of a figure: between its number, its sign and its unit."""
    return _IN_FIGURE.sub("\u00a0", visible(text))


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _versions(collected: StoredResults) -> str:
    """Return the versions of natgauge that measured; the present version may be another."""
    every = (str(parameters.get("natgauge") or "of unknown version") for parameters in collected.parameters)
    return " and ".join(dict.fromkeys(every))


def _conditions(collected: StoredResults, views: Sequence[Unlike]) -> Iterator[Sentence]:
    """Yield the conditions in which what the page shows together differs; with the metrics where others are there."""
    every = {result.metric for result in collected.results} | {conditions.COST for _ in collected.records}
    for sentence, metrics in conditions.said_once(views):
        names = enumerated([declared(metric).name_in_sentence for metric in metrics])
        yield Sentence(capital(sentence if every == {*metrics} else f"{names}: {sentence}"))


def _doubts(collected: StoredResults, names: Sequence[str]) -> list[dict[str, Any]]:
    """Doubts by grade, each word once with the names of its results; what only repeats others is with the evidence."""
    of_results = [
        (f"{name} ({result.metric})", in_summary(result)) for name, result in zip(names, collected.results, strict=True)
    ]
    of_rates = [
        (f"{gateway.label} ({FRAME_OF[quantity]})", doubts)
        for record in collected.records
        for gateway in record.gateways
        for quantity, doubts in gateway.doubts.items()
    ]
    of_costs = [("all costs", doubts_of_all(record)) for record in collected.records]
    return [
        {"grade": grade, "title": graded_doubts.GRADE_TITLES[grade], "doubts": every}
        for grade, every in graded_doubts.summed([*of_results, *of_rates, *of_costs]).items()
        if every
    ]


def _first_screen(groups: Sequence[FigureGroup]) -> list[FigureGroup]:
    """Split the first group where it has more figures than fit next to the answers."""
    if not groups or len(groups[0].figures) <= _MOST_FIRST:
        return list(groups)
    first, *others = groups
    parts = (first.figures[:_MOST_FIRST], first.figures[_MOST_FIRST:])
    return [*(replace(first, figures=figures) for figures in parts), *others]


def _headline(groups: Sequence[FigureGroup]) -> int:
    """The number of groups on the first screen: the first one, and those behind it as long as there is room."""
    figures = itertools.accumulate(len(group.figures) for group in groups)
    return max(1, sum(number <= _MOST_FIRST for number in figures))


def _result(number: int, name: str, stored: Stored, trials: Trials, again: CommandAgain) -> dict[str, Any]:
    result = stored.result
    total = sum(trials.verdicts.values())
    answer, *limits = text.answer(result)
    counted = ", ".join(f"{trials.verdicts[verdict]:,} {verdict}" for verdict in Verdict if trials.verdicts[verdict])
    return {
        "at": number,
        "name": f"{name}: {result.metric}",
        "answer": answer,
        "sentences": [*limits, *text.sentences(result)],
        "doubts": result.doubts,
        "notes": text.notes_of(result),
        "series": list(_series(result)),
        "trials": trials,
        "counts": f"{total:,} trials: {counted or 'none'}; {trials.disturbed:,} disturbed.",
        _COMMAND: _command(stored, again),
    }


def _command(stored: Stored, again: CommandAgain) -> str:
    """The command that repeats a measurement; empty where a stored one cannot be made again."""
    result = stored.result
    command = result.parameter(_COMMAND)
    if command is None:
        return "not stored"
    gateway = stored.recipe_name or result.gateway
    return again(command, result.metric, gateway, {**result.parameters.flat(), "gateway": gateway})


def _series(result: Result) -> Iterator[dict[str, Any]]:
    """The rows of every repetition that has some."""
    for repetition, measured in enumerate(result.repetitions, start=1):
        if measured.series:
            head, *rows = text.series_rows(measured.series)
            title = f"Series of repetition {repetition}{text.rates_of(measured.series, result)}"
            yield {"title": title, "head": head, "rows": rows}


def _comparison(number: int, stored: StoredComparison, at: Path) -> dict[str, Any]:
    record = stored.record
    every = [gateway.parameters for gateway in record.gateways]
    common, differing = _parameters(every, [gateway.label for gateway in record.gateways])
    compared = ", ".join(each.label for each in record.compared)
    title = f"Comparison {number}: {compared} compared with {record.baseline.label}"
    parameters = {"common": common, "parameters": list(_parts(differing))}
    return {**_table(title, comparison.sheet(record, placed=False), _place(stored.folder, at)), **parameters}


def _audits(stored: Sequence[StoredAudit], at: Path) -> dict[str, Any]:
    """A row for each requirement, a column for each gateway, and links to captures from the folder `at`."""
    records = [each.record for each in stored]
    names = audit.names_of(records)
    rows = [
        (heading, [_cell(one, each.folder, at) for one, each in zip(verdicts, stored, strict=True)])
        for heading, verdicts in audit.rows_of(records)
    ]
    return {
        "title": f"{'Audit' if len(records) == 1 else 'Audits'} of {listed(names)}",
        "head": ["requirement", *names],
        "rows": rows,
        "behaviour": [(line.heading, *line.cells) for line in audit.behaviour(records)],
        "below": audit.chart(records).notes,
        "folders": [_place(each.folder, at) for each in stored],
        "rfcs": enumerated(
            [f"RFC {rfc}" for rfc in sorted({one.rfc for each in records for one in each.requirements})]
        ),
    }


def _cell(one: AuditedRequirement | None, folder: Path, at: Path) -> dict[str, Any]:
    if one is None:
        return {"kind": "", "said": "-", "href": "", "measured": ""}
    return {
        "kind": one.verdict.replace(" ", "-"),
        "said": audit.said(one, marked=True),
        "href": _link(one, folder, at),
        "measured": one.measured,
    }


def _link(one: AuditedRequirement, folder: Path, at: Path) -> str:
    """The path of the capture from the folder of the page, as an address; empty where there is no capture."""
    capture = None if one.evidence.file is None else folder / one.evidence.file
    if capture is None or not file_access.is_there(capture):
        return ""
    return quote(os.path.relpath(capture, at))


def _evidence(folder: Path, at: Path) -> dict[str, str]:
    place = _place(folder, at)
    return {"folder": place, "file": f"{place}/{TRIALS}"}


def _place(folder: Path, at: Path) -> str:
    """A folder from that of the page, or its name: who gets the page does not have the other folders of its writer."""
    path = os.path.relpath(folder, at)
    return folder.resolve().name if path.startswith(os.curdir) else path


def _table(title: str, shown: Sheet, folder: str) -> dict[str, Any]:
    """The table of a sheet without its doubts, which are with the answers."""
    head, *rows = [(line.heading, *line.cells) for line in shown.lines]
    return {"title": title, "head": head, "rows": rows, "below": shown.notes, "folder": folder}


def _parts(lines: Sequence[SheetRow]) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Head and rows of tables of a few columns each; rows that say nothing for these columns are left out."""
    number_of = len(lines[0].cells) if len(lines) > 1 else 0
    # Equally many in each, as far as that goes.
    width = math.ceil(number_of / max(1, math.ceil(number_of / _COLUMNS)))
    for first in range(0, number_of, width or 1):
        head, *rows = [(line.heading, *line.cells[first : first + width]) for line in lines]
        yield head, [row for row in rows if any(cell != "-" for cell in row[1:])]


def _parameters(every: Sequence[Parameters], names: Sequence[str]) -> tuple[list[tuple[str, str]], list[SheetRow]]:
    """Parameters that all share, and a table of those in which they differ."""
    known = {name: group for parameters in every for group, name, _ in parameters.items() if name != _COMMAND}
    flat = [parameters.flat() for parameters in every]
    common, rows = [], [SheetRow("parameter", tuple(names))]
    for name, group in known.items():
        cells = tuple(shown(values[name]) if name in values else "-" for values in flat)
        heading = f"{group}: {describe(name).heading}"
        if len(set(cells)) == 1:
            common.append((heading, cells[0]))
        else:
            rows.append(SheetRow(heading, cells))
    return common, rows


# The tables of a page: one for each metric, a row for each device, a column for each point; and one of ratios.

#: A table of more columns is turned, if it has fewer devices.
_MOST_POINTS: Final = 6


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


def _tables_of_metrics(results: Sequence[Result]) -> list[MetricsTable]:
    """Return a table for each metric, in the order of the results."""
    by_title = grouped((figures.title_of(each), (column, each)) for column, each in enumerate(results, start=1))
    return [_metrics_table(title, group) for title, group in by_title.items()]


def _metrics_table(title: str, group: Sequence[tuple[int, Result]]) -> MetricsTable:
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
    drawn = [conditions.figure_of(result) for _, result in group]
    unlike = conditions.unlike(drawn, except_for=shown, so=conditions.NOT_RANKED_BY_TABLES)
    if len(points) <= max(_MOST_POINTS, len(gateways)):
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


def _tabled_of(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that a table says better; none where there are few ratios."""
    having = [one for one in sentences if len(one.ratios) > 1 and not one.leads]
    return having if sum(len(one.ratios) for one in having) > _FEW else []


def _ratio_table(sentences: Sequence[Sentence]) -> dict[str, Any] | None:
    """Return the table of the ratios, a row for each gateway, a column for each sentence; None without sentences."""
    if not sentences:
        return None
    gateways = dict.fromkeys(gateway for one in sentences for gateway, _ in one.ratios)
    columns = [dict(one.ratios) for one in sentences]
    rows = [(gateway, *(column.get(gateway, "-") for column in columns)) for gateway in gateways]
    return {"head": ("gateway", *(one.about for one in sentences)), "rows": rows}
