# SPDX-License-Identifier: Apache-2.0
"""The pivoted table: a column for each number of cores or connections, and a block for each metric and device.

Publications print measurement series like this. Rows that all results of a column share are above the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from natgauge.errors import UsageError
from natgauge.records.measurement import Result
from natgauge.records.parameters import describe
from natgauge.reports.rows import Cell, ResultRow, rows, unit_of, whole
from natgauge.reports.sheet import Sheet, SheetRow, below

Against = Literal["cores", "connections"]

_READ: Final[Mapping[Against, Callable[[Result], int]]] = {
    "cores": lambda result: result.device_cores,
    "connections": lambda result: int(result.number("connections") or 0),
}
#: The row of the other table with the same content.
_ROW: Final[Mapping[Against, str]] = {"cores": "device cores", "connections": "number of sessions"}
#: What the heading of a block says.
_IN_HEADING: Final = frozenset({"device", "metric", "unit"})
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

#: Metric, device, and further values that distinguish the results of one column.
_Block = tuple[str, str, int, int]


def sheet(results: Sequence[Result], against: Against, *, narrow: bool = False) -> Sheet:
    """Return the table of results that form measurement series.

    Args:
        results: at least one.
        against: parameter of the columns.
        narrow: whether large rates are printed in thousands.

    Raises:
        UsageError: there are no results, one has no such number, or two belong in one cell.
    """
    found = rows(results)
    read = _READ[against]
    for result in results:
        if not read(result):
            raise UsageError(
                f"report: --against {against}: nobody knows how many a result of {result.metric} of {result.dut} had; "
                "leave it out"
            )
    values = sorted({read(result) for result in results})
    blocks = _blocks(results, against)
    cells = {block: [places.get(value) for value in values] for block, places in blocks.items()}
    columns = [[at for at, result in enumerate(results) if read(result) == value] for value in values]
    lines = [SheetRow(_ROW[against], tuple(map(whole, values)))]
    own = []
    for row in found:
        if row.label in _IN_HEADING | _LEFT_OUT | {_ROW[against]}:
            continue
        if not row.found and _is_common(row, columns):
            _add(lines, row, [_first(row, column) for column in columns])
        else:
            own.append(row)
    for block, places in cells.items():
        there = [results[at] for at in places if at is not None]
        many = narrow and min(one.median for one in there) >= _MANY
        lines.append(SheetRow(_heading(block, list(cells), there[0], against, many=many), ()))
        for row in own:
            _add(lines, _in_thousands(row) if many and row.label in _IN_UNIT else row, places)
    ordered = [results[at] for places in cells.values() for at in places if at is not None]
    return Sheet(tuple(lines), tuple(below(ordered, lambda _, result: _named(result, against))))


def _blocks(results: Sequence[Result], against: Against) -> dict[_Block, dict[int, int]]:
    """Return the index of the result of each column, by block."""
    other: Against = "connections" if against == "cores" else "cores"
    blocks: dict[_Block, dict[int, int]] = {}
    for at, result in enumerate(results):
        block = (result.metric, result.dut, _READ[other](result), int(result.number("frame_size") or 0))
        column = blocks.setdefault(block, {})
        value = _READ[against](result)
        if value in column:
            raise UsageError(
                f"report: --against {against}: two results of {result.metric} of {result.dut} have {value:,} "
                f"{against}; name folders of one measurement series, or leave out --against"
            )
        column[value] = at
    return blocks


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


def _heading(block: _Block, every: Sequence[_Block], result: Result, against: Against, *, many: bool) -> str:
    """Return a block's heading, with values that distinguish it from other blocks of its metric and device."""
    metric, dut, other, octets = block
    alike = [one for one in every if one[:2] == block[:2]]
    parts = []
    if len({one[2] for one in alike}) > 1:
        parts.append(_counted(other, "cores" if against == "connections" else "connections"))
    if len({one[3] for one in alike}) > 1:
        parts.append(f"{octets} octets")
    unit = f"{_THOUSAND:,} {unit_of(result)}" if many else unit_of(result)
    return f"{', '.join([f'{metric} of {dut}', *parts])} ({unit})"


def _named(result: Result, against: Against) -> str:
    return f"{result.metric} of {result.dut}, {_counted(_READ[against](result), against)}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what.removesuffix('s') if number == 1 else what}"
