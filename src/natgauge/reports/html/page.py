# SPDX-License-Identifier: Apache-2.0
"""The page: verdict first, then figures, tables, parameters, disturbed and invalid trials, environment, the commands.

The page is complete, sends no requests, and works without a script: its script only shows values under a pointer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.measurer import Verdict
from natgauge.records.measurement import Result
from natgauge.records.parameters import GROUPS, Parameters, describe, shown
from natgauge.records.store import TRIALS
from natgauge.reports import comparison, text
from natgauge.reports.find_results import Stored, StoredComparison, StoredResults
from natgauge.reports.html import charts, evidence, metrics_table
from natgauge.reports.html.evidence import Trials
from natgauge.reports.html.figure import Figure
from natgauge.reports.html.figures import figures
from natgauge.reports.html.forest import forests
from natgauge.reports.optional_deps import need
from natgauge.reports.rows import IN_ALL, number, unit_of
from natgauge.reports.sheet import SheetRow, below, lines_of

#: Columns of a table next to each other; more would not fit on paper and phones.
_COLUMNS: Final = 6
_HERE: Final = "natgauge.reports.html"


@dataclass(frozen=True, slots=True)
class _Part:
    """Some columns of a table: numbers of the first and the last one, and the rows that say something of them."""

    first: int
    last: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def write(collected: StoredResults, path: Path) -> None:
    """Write the page, replacing a file that is there.

    Raises:
        UsageError: a results folder is damaged, or the file cannot be written.
        HostError: jinja2 or vl-convert is not installed.
    """
    _refuse(path)
    html = page(collected)
    try:
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"report: cannot write {path}: {error.strerror}; name a file in a folder of yours") from error


def _refuse(path: Path) -> None:
    """Refuse a path that cannot be written, before the work is done."""
    why = "it is a folder" if path.is_dir() else "" if path.parent.is_dir() else f"there is no folder {path.parent}"
    if why:
        raise UsageError(f"report: cannot write {path}: {why}; name a file in a folder of yours")


def page(collected: StoredResults) -> str:
    """The whole page as HTML.

    Raises:
        UsageError: a results folder is damaged.
        HostError: jinja2 or vl-convert is not installed.
    """
    jinja2 = need("jinja2", "report", "the page")
    need("vl_convert", "report", "the page")
    results = collected.results
    most = evidence.listed_of_each(len(results) or 1)
    trials = [evidence.trials_of(stored, most) for stored in collected.stored]
    shown_figures = [*figures(results, [each.timed for each in trials]), *forests(collected.records)]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_resource("page.html.j2"))
    html: str = template.render(
        title=_title(collected),
        version=_versions(collected),
        style=_resource("page.css"),
        script=_resource("page.js"),
        metrics_tables=metrics_table.metrics_tables(results),
        verdicts=[_verdict(number, stored) for number, stored in enumerate(collected.stored, start=1)],
        comparisons=[_comparison(at, stored) for at, stored in enumerate(collected.comparisons, start=1)],
        figures=[_figure(at, drawn) for at, drawn in enumerate(shown_figures, start=1)],
        tables=_parts(_numbered(lines_of(results))) if results else (),
        below=below(results) if results else (),
        series=[series for at, result in enumerate(results, start=1) for series in _series(at, result)],
        parameters=_parts(_parameters([(result.dut, result.parameters) for result in results])),
        trials=[
            _trials(number, *pair) for number, pair in enumerate(zip(collected.stored, trials, strict=True), start=1)
        ],
        unended=[str(folder) for folder in collected.unended],
        environments=evidence.environments_of(collected.stored),
        commands=[
            (at, result.dut, str(result.parameter("command") or "")) for at, result in enumerate(results, start=1)
        ],
    )
    return html


def _resource(name: str) -> str:
    return resources.files(_HERE).joinpath(name).read_text(encoding="utf-8")


def _title(collected: StoredResults) -> str:
    results = collected.results
    if not results:
        labels = [gateway.label for gateway in collected.records[0].gateways[:-1]]
        more = f", and {len(collected.records) - 1} more" if len(collected.records) > 1 else ""
        return f"Costs of {', '.join(labels)} compared{more}"
    duts = list(dict.fromkeys(result.dut for result in results))
    metrics = list(dict.fromkeys(result.metric for result in results))
    more = f" and {len(duts) - 3} more" if len(duts) > 3 else ""
    what = metrics[0] if len(metrics) == 1 else f"{len(metrics)} metrics"
    return f"{', '.join(duts[:3])}{more}: {what}"


def _versions(collected: StoredResults) -> str:
    """Return the versions of natgauge that measured; the present version may be another."""
    every = [
        *(result.parameters for result in collected.results),
        *(record.baseline.parameters for record in collected.records),
    ]
    return " and ".join(
        dict.fromkeys(str(environment.get("natgauge") or "of unknown version") for environment in every)
    )


def _comparison(at: int, stored: StoredComparison) -> dict[str, Any]:
    record, shown_as = stored.record, comparison.sheet(stored.record)
    head, *rows = [(line.heading, *line.cells) for line in shown_as.lines]
    return {
        "at": at,
        "title": f"{', '.join(each.label for each in record.compared)} compared with {record.baseline.label}",
        "sentences": [f"{each.text}." for each in record.estimates],
        "answer": "" if record.fail_above is None else f"{comparison.answer(record)}.",
        "head": head,
        "rows": rows,
        "below": shown_as.below,
        "parameters": _parts(_parameters([(each.label, each.parameters) for each in record.gateways])),
        "folder": str(stored.folder),
    }


def _verdict(column: int, stored: Stored) -> dict[str, Any]:
    result = stored.result
    return {
        "column": column,
        "dut": result.dut,
        "metric": result.metric,
        "median": number(result.median),
        "unit": unit_of(result),
        "total": number(result.figures[IN_ALL].median) if IN_ALL in result.figures else None,
        "sentences": text.sentences(result),
        "doubts": result.doubts,
        "notes": text.notes_of(result),
        "folder": str(stored.folder),
    }


def _figure(at: int, figure: Figure) -> dict[str, Any]:
    return {
        "at": at,
        "figure": figure,
        "wide": charts.drawn(figure.draw(charts.WIDE), f"f{at}w"),
        "narrow": charts.drawn(figure.draw(charts.NARROW), f"f{at}n"),
    }


def _numbered(lines: Sequence[SheetRow]) -> list[SheetRow]:
    """Devices with the numbers that figures and sentences call their columns by."""
    head, *rest = lines
    return [SheetRow(head.heading, tuple(f"{at}. {dut}" for at, dut in enumerate(head.cells, start=1))), *rest]


def _parts(lines: Sequence[SheetRow]) -> list[_Part]:
    """Tables of a few columns each, none where there are no columns; rows that say nothing for these are left out."""
    parts: list[_Part] = []
    number_of = len(lines[0].cells)
    if not number_of:
        return parts
    # Equally many in each, as far as that goes.
    width = math.ceil(number_of / math.ceil(number_of / _COLUMNS))
    for first in range(0, number_of, width):
        last = min(first + width, number_of)
        cut = [(line.heading, *line.cells[first:last]) for line in lines]
        kept = tuple(row for row in cut[1:] if any(cell != "-" for cell in row[1:]))
        parts.append(_Part(first + 1, last, cut[0], kept))
    return parts


def _parameters(columns: Sequence[tuple[str, Parameters]]) -> list[SheetRow]:
    """Every parameter, group by group, with a column for each device."""
    lines = [SheetRow("column", tuple(f"{at}. {name}" for at, (name, _) in enumerate(columns, start=1)))]
    for group in GROUPS:
        values = [getattr(parameters, group) for _, parameters in columns]
        names = dict.fromkeys(name for each in values for name in each)
        for name in names:
            cells = tuple(shown(each[name]) if name in each else "-" for each in values)
            lines.append(SheetRow(f"{group}: {describe(name).heading}", cells))
    return lines


def _series(at: int, result: Result) -> list[dict[str, Any]]:
    """The rows of every repetition that has some."""
    series = []
    for repetition, measured in enumerate(result.repetitions, start=1):
        if measured.series:
            names = text.series_names(measured.series)
            rows = [[text.series_cell(row.get(name)) for name in names] for row in measured.series]
            head = [name.replace("_", " ") for name in names]
            title = (
                f"{at}. {result.dut}, {result.metric}, repetition {repetition}{text.rates_of(measured.series, result)}"
            )
            series.append({"title": title, "head": head, "rows": rows})
    return series


def _trials(at: int, stored: Stored, trials: Trials) -> dict[str, Any]:
    total = sum(trials.verdicts.values())
    counted = ", ".join(f"{trials.verdicts[name]:,} {name}" for name in Verdict if trials.verdicts[name]) or "none"
    return {
        "title": f"{at}. {stored.result.dut}, {stored.result.metric}",
        "counts": f"{total:,} trials: {counted}; {trials.disturbed:,} disturbed.",
        "trials": trials,
        "file": str(stored.folder / TRIALS),
    }
