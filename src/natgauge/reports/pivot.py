# SPDX-License-Identifier: Apache-2.0
"""The pivoted table: a column for each value of a parameter, such as cores, and a block for each metric and device.

Publications print measurement series like this. Rows that all results of a column share are above the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from natgauge.records.measurement import Result
from natgauge.records.parameters import describe
from natgauge.reports.blocks import blocks_of, columns_of, in_words, parameter_of
from natgauge.reports.graded_doubts import of_columns
from natgauge.reports.rows import Cell, ResultRow, row_of, rows, unit_of
from natgauge.reports.sheet import Sheet, SheetRow, notes

#: What the heading of a block says.
_IN_HEADING: Final = frozenset({"gateway", "metric", "unit"})
#: Rows that explain missing figures; they are below the table.
_LEFT_OUT: Final = frozenset({"not compared"})
#: Where one of these says nothing, there was none, which is another set-up; a device may well lack a knob.
_NONE_IS_A_VALUE: Final = frozenset({describe("frame_timeout_seconds").heading})
#: Rows in the unit of their block.
_IN_UNIT: Final = frozenset(
    {
        "error of the search", "median", "1st percentile", "99th percentile", "minimum", "maximum", "mean",
        "standard deviation",
    }
)  # fmt: skip
#: A narrow table prints rates from here on in thousands, with four digits that count.
_MANY: Final = 10_000
_THOUSAND: Final = 1000


def sheet(results: Sequence[Result], against: str, *, narrow: bool = False) -> Sheet:
    """Return the table of results that form measurement series.

    Args:
        results: at least one.
    """
    every_row, name = rows(results), parameter_of(against, results)
    heading = row_of(name)
    columns = columns_of(name, results)
    blocks = blocks_of(name, against, results)
    indices = [[at for block in blocks if (at := block.at.get(column)) is not None] for column in columns]
    lines = [SheetRow(heading, tuple(columns))]
    own = []
    for row in every_row:
        if row.heading in _IN_HEADING | _LEFT_OUT | {heading}:
            continue
        if not row.measured and _is_common(row, indices):
            _add(lines, row, [_first(row, column) for column in indices])
        else:
            own.append(row)
    for block in blocks:
        of_block = [results[at] for at in block.at.values()]
        many = narrow and min(result.median for result in of_block) >= _MANY
        lines.append(SheetRow(f"{block.name} ({_unit(of_block, many=many)})", ()))
        for row in own:
            places = [block.at.get(column) for column in columns]
            _add(lines, _in_thousands(row) if many and row.label in _IN_UNIT else row, places)
    placed = [
        (block.name, column, results[block.at[column]]) for block in blocks for column in columns if column in block.at
    ]
    doubts = of_columns([(block, column, result.doubts) for block, column, result in placed])
    names = [f"{block}, {in_words(name, result.parameter(name))}" for block, _, result in placed]
    below = notes([result for _, _, result in placed], lambda number, _: names[number - 1])
    return Sheet(tuple(lines), tuple(below), tuple(doubts))


def _unit(results: Sequence[Result], *, many: bool) -> str:
    """The unit of a block; directions that differ between its columns are not named."""
    units = {unit_of(result) for result in results}
    unit = units.pop() if len(units) == 1 else f"{results[0].unit} of each direction that sends"
    return f"{_THOUSAND:,} {unit}" if many else unit


def _is_common(row: ResultRow, columns: Sequence[Sequence[int]]) -> bool:
    """Whether all non-empty values of each column are equal."""
    counts = row.label in _NONE_IS_A_VALUE
    return all(len({row.cells[at] for at in column if counts or row.cells[at] is not None}) <= 1 for column in columns)


def _first(row: ResultRow, column: Sequence[int]) -> int | None:
    return next((at for at in column if row.cells[at] is not None), None)


def _add(lines: list[SheetRow], row: ResultRow, places: Sequence[int | None]) -> None:
    """Append the row of these results, unless all its cells are empty."""
    printed = row.printed
    cells = tuple("-" if at is None else printed[at] for at in places)
    if any(cell != "-" for cell in cells):
        lines.append(SheetRow(row.heading, cells))


def _in_thousands(row: ResultRow) -> ResultRow:
    cells = tuple(cell / _THOUSAND if isinstance(cell, int | float) else cell for cell in row.cells)
    return replace(row, cells=cells, text=_four_digits)


def _four_digits(value: Cell) -> str:
    """Return a number with four significant digits, or with all integer digits."""
    if not isinstance(value, int | float) or not value:
        return str(value)
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"
