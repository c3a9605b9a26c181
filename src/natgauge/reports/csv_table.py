# SPDX-License-Identifier: Apache-2.0
"""Results as CSV (RFC 4180): the rows of the report as columns, one line per result, figures in full."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from natgauge.figure_text import whole
from natgauge.interval_text import Written
from natgauge.plain_text import one_line
from natgauge.records.measurement import Result
from natgauge.reports import main_figure
from natgauge.reports.collected import Unmeasured
from natgauge.reports.rows import Bounded, Ranged, ResultRow, rows
from natgauge.reports.sheet import Sheet

_NO_RESULT: Final = "no result"
#: First characters that make a spreadsheet compute a text: of ASCII, and those that Excel takes for them.
_FORMULA: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
#: A number with its sign, a unit or a range as tables show them, and the sign of an unknown value.
_NUMBER: Final = re.compile(r"-|[+-][0-9][0-9.,]*(?:e[+-]?[0-9]+)?(?: ?%)?(?: to [+-]?[0-9][0-9.,]*(?: ?%)?)?")


def table(results: Sequence[Result], missing: Sequence[Unmeasured] = ()) -> str:
    """Return a heading, then one line per result; unknown values are empty.

    Measurements without a result have a line each behind them, which says why in its last column.
    """
    shown = [column for row in rows(results) for column in _columns(row)]
    head = [*(row.column for row in shown), "bound", "doubts in full", _NO_RESULT]
    cells = zip(*(row.cells for row in shown), strict=True)
    lines = [
        (*own, _bound(result), "; ".join(map(str, result.doubts)) or None, None)
        for own, result in zip(cells, results, strict=True)
    ]
    lacking = [{"gateway": one.gateway, "metric": one.measurement, _NO_RESULT: one.reason} for one in missing]
    return written([head, *lines, *([one.get(name) for name in head] for one in lacking)])


def _bound(result: Result) -> str | None:
    """What is known of the device's true value where its median only bounds that; None = the median is the figure."""
    said = main_figure.statement_of(result)
    if said.is_median:
        return None
    if math.isinf(said.upper):
        return str(Bounded(">=", said.lower))
    return f"{said.lower!r} to {said.upper!r}" if said.lower else str(Bounded("<=", said.upper))


def render(shown: Sheet) -> str:
    """Return a sheet as CSV: its rows with their labels, then a line for each sentence below."""
    rows = [*((line.heading, *line.cells) for line in shown.lines), *(("note", note) for note in shown.below)]
    return written([(*row, *[""] * (1 + shown.columns - len(row))) for row in rows])


def written(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV; None is an empty cell. No text is a formula for the program that opens it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue().rstrip("\n")


def _cell(value: object) -> object:
    """A cell whose text spreadsheets show as it is; numbers stay numbers."""
    if isinstance(value, Written):
        if value.bound:
            return f"{value.bound} {value.value!r}"
        return whole(value.value) if float(value.value).is_integer() else value.value
    if not isinstance(value, str):
        return value
    text = one_line(value)
    is_formula = text.lstrip()[:1] in _FORMULA and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def _columns(row: ResultRow) -> Iterator[ResultRow]:
    """Yield the row, followed by rows of the minimum and the maximum where a cell has a range."""
    medians = tuple(cell.median if isinstance(cell, Ranged) else cell for cell in row.cells)
    yield replace(row, cells=medians)
    if any(isinstance(cell, Ranged) for cell in row.cells):
        for name in ("minimum", "maximum"):
            cells = tuple(getattr(cell, name) if isinstance(cell, Ranged) else cell for cell in row.cells)
            yield replace(row, head=f"{row.name}, {name}", cells=cells)
