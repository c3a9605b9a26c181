# SPDX-License-Identifier: Apache-2.0
"""Results of natgauge in the columns of a published table.

A result of a table's plan says which of its cells it is for. Other results belong in the columns whose metric, device
and settings, as published, they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from pydantic import JsonValue

from natgauge.analysis.loads import LOST, by_load, loss_figure
from natgauge.errors import UsageError
from natgauge.published.load import needs, sources
from natgauge.published.model import NOTHING, OwnFigure, Quantity, Table, read
from natgauge.records.measurement import Result
from natgauge.records.parameters import describe, shown
from natgauge.reports import criterion
from natgauge.statistics.figure import FigureSummary

#: The parameter of a result that an axis varies.
_PARAMETER: Final[Mapping[str, str]] = {"cores": "device_cores", "connections": "connections"}
#: Keys of columns that are not parameters of results.
_METRIC: Final = "metric"
_DEVICE: Final = "device"
_FIGURE: Final = "figure"
#: Keys of columns that say what is otherwise as in all publications: no loss, the least frames, both directions.
_TOLERANCE: Final = "loss_tolerance"
_SIZE: Final = "frame_size"
_DIRECTIONS: Final = "directions"
#: What else all publications have, where no heading says another value.
_USUAL: Final[Mapping[str, JsonValue]] = {"order": "permutation", "down_share": 0.5, "modifiers": "none", "groups": 1}


@dataclass(eq=False)
class Absent(Exception):  # noqa: N818 - no error: there is no result or figure, and this is the reason
    """A result, or a figure of it, that does not exist.

    Attributes:
        reason: reason, the same for all columns without it; where there is a value, the value follows it.
        value: value that this column lacks, such as that of the parameter that varies; empty where the reason says all.
    """

    reason: str
    value: str = ""


class Columns:
    """The columns of a published table, filled with results."""

    def __init__(self, table: Table, results: tuple[Result, ...]) -> None:
        """Refuse results that do not fit the table."""
        self._table, self._results = table, results
        self.find = cache(self._find)
        width, metrics = range(table.width), {result.metric for result in results}
        if table.axis == "none" and table.width > 1 and not table.shape.columns:
            raise UsageError(f"report: --like {table.name}: {needs(table)}")
        #: The results that belong in the table, by column, and the others.
        self.placed = [result for column in width for result in self.at(column)]
        self.left_out = [result for result in results if all(result is not other for other in self.placed)]
        if self.placed:
            return
        theirs = {self._metric(quantity, column) for quantity in table.quantities.values() for column in width}
        named = f"is of {', '.join(sorted(theirs))}, the results are of {', '.join(sorted(metrics))}"
        raise UsageError(
            f"report: --like {table.name}: no result belongs in this table: it {named} with other parameters or of "
            "other devices; name other folders or another table"
            if theirs & metrics
            else f'report: --like {table.name}: {named}; "natgauge published" lists other tables'
        )

    def at(self, column: int) -> list[Result]:
        """Return the results of a column, counted from 0, each once."""
        results: list[Result] = []
        for name in self._table.quantities:
            result = self.find(name, column)
            if isinstance(result, Result) and all(result is not other for other in results):
                results.append(result)
        return results

    def _find(self, name: str, column: int) -> Result | Absent:
        """Return the result of a quantity at a column, or the reason for its absence."""
        quantity = self._table.quantities[name]
        metric, device = self._metric(quantity, column), self._device(quantity, column)
        wanted = dict(self._settings(column))
        matching = []
        for result in self._results:
            cells = [cell for cell in result.published if cell.table == self._table.name]
            if (
                any((cell.column, cell.quantity) == (column + 1, name) for cell in cells)
                if cells
                else (result.metric, result.gateway) == (metric, device)
                and all(_has(result, key, value) for key, value in wanted.items())
                and self._is_usual(result, quantity)
            ):
                matching.append(result)
        if len(matching) > 1:
            raise UsageError(
                f"report: --like {self._table.name}: two results of {metric} of {matching[0].gateway} belong in one "
                f"cell of column {column + 1}; name folders of one measurement series"
            )
        if matching:
            return matching[0]
        missing = f"no result of {metric}" + (f" of {device}" if device else "")
        *others, (last, value) = wanted.items() if wanted else [("", "")]
        conditions = [*(f"{_words(key)} = {_printed(each)}" for key, each in others)]
        conditions += [f"{_words(last)} ="] if last else []
        return Absent(missing + (f" with {' and '.join(conditions)}" if last else ""), _printed(value))

    def _is_usual(self, result: Result, quantity: Quantity) -> bool:
        """Whether a result has what all publications have, except for what the shape of this table says."""
        shape = self._table.shape.columns
        tolerated = _TOLERANCE not in shape and criterion.tolerance(result) is not None
        added = quantity.directions is not None and _DIRECTIONS not in shape
        one_way = added and result.parameter(_DIRECTIONS) != "both"
        frames = criterion.unusual_frames(result, sized=_SIZE not in shape)
        return not (tolerated or one_way or frames or criterion.goals(result) or self._others(result))

    def _others(self, result: Result) -> list[str]:
        """Other values of a result than those that all publications have, as words."""
        return [
            f"{describe(name).label} {_printed(value)}"
            for name, usual in _USUAL.items()
            if name not in self._table.shape.columns and (value := result.parameter(name)) not in (None, usual)
        ]

    def unusual(self, result: Result) -> str:
        """Return the conditions of a result that no heading says and most publications do not have, as words."""
        shape, way = self._table.shape.columns, result.parameter(_DIRECTIONS)
        directions = f" ({_DIRECTIONS} {way})" if way in ("up", "down") and _DIRECTIONS not in shape else ""
        lost = "" if criterion.tolerance(result) is None else f", {criterion.most_lost(result)}"
        passed = lost if criterion.goals(result) is None else criterion.condition(result)
        others = "".join(f", {words}" for words in self._others(result))
        return f"{directions}{criterion.unusual_frames(result, sized=_SIZE not in shape)}{others}{passed}"

    def summary(self, name: str, column: int) -> FigureSummary | Result | Absent:
        """Return the summary of a quantity's figure at a column, or the reason for its absence."""
        result, own = self.find(name, column), _own(self._table.quantities[name])
        if isinstance(result, Absent):
            return result
        if own is not None and own.load is not None:
            series = by_load(result)
            at_load = {} if series is None else series.at.get(own.load, {})
            figure = loss_figure(result) if own.figure == LOST else own.figure
            missing = Absent(f"{result.metric} of {result.gateway} has no value at a load of", f"{own.load} %")
            return at_load.get(figure, missing)
        figure = self._cell(_FIGURE, column) or (NOTHING if own is None else own.figure)
        missing = Absent(f"the result of {result.metric} of {result.gateway} has no figure {figure}")
        return result if figure == NOTHING else result.figures.get(figure, missing)

    @cached_property
    def values(self) -> list[float | None]:
        """Own value of the axis at each column; the published one where no result has another, and otherwise None."""
        return [
            (theirs if self.as_published else None) if own is None else own
            for own, theirs in zip(self._own_values, self._their_values, strict=True)
        ]

    @cached_property
    def as_published(self) -> bool:
        """Whether the axis of the results has the published values, or there is no axis."""
        pairs = zip(self._own_values, self._their_values, strict=True)
        return all(own in (None, theirs) for own, theirs in pairs)

    @cached_property
    def _own_values(self) -> list[float | None]:
        parameter = _PARAMETER.get(self._table.axis)
        results = [next(iter(self.at(column)), None) for column in range(self._table.width)]
        return [None if parameter is None or result is None else result.number(parameter) for result in results]

    @cached_property
    def _their_values(self) -> list[float | None]:
        """The value of the axis at each column; connections as the ports make them, which headings round."""
        table = self._table
        rows = [] if table.axis == "none" else [table.row(table.axis)]
        if table.axis == "connections" and (ports := [table.row("source-ports"), table.row("destination-ports")])[0]:
            rows = ports
        values: list[float | None] = [1.0 if rows else None] * table.width
        for row in rows:
            for column, number in enumerate(() if row is None else row.numbers()):
                value = values[column]
                values[column] = None if number is None or value is None else value * number.value
        return values

    def _settings(self, column: int) -> Iterator[tuple[str, str | int]]:
        """The parameters that results of a column must have; that of the axis is the last one."""
        for key, cells in self._table.shape.columns.items():
            if key not in {_METRIC, _DEVICE, _FIGURE} and cells[column] != NOTHING:
                yield key, cells[column]
        if (value := self._their_values[column]) is not None:
            yield self._table.axis, round(value)

    def _cell(self, key: str, column: int) -> str:
        cells = self._table.shape.columns.get(key)
        return "" if cells is None else cells[column]

    def _metric(self, quantity: Quantity, column: int) -> str:
        own = _own(quantity)
        return self._cell(_METRIC, column) or (quantity.metric if own is None else own.metric)

    def _device(self, quantity: Quantity, column: int) -> str | None:
        """The device of a quantity: a recipe of the published device, or else the one other device of the results."""
        if device := self._cell(_DEVICE, column):
            return device
        metric, recipes = self._metric(quantity, column), sources().recipes
        own = [result for result in self._results if result.metric == metric and not result.published]
        measured = dict.fromkeys(result.gateway for result in own)
        theirs = recipes.get(quantity.device, ())
        taken = {gateway for each in self._table.quantities.values() for gateway in recipes.get(each.device, ())}
        others = [gateway for gateway in measured if gateway not in taken]
        if {*theirs} & {*measured} or not others:
            return next((gateway for gateway in measured if gateway in theirs), next(iter(theirs), None))
        if len(others) > 1:
            raise UsageError(
                f"report: --like {self._table.name}: {metric} has results of {', '.join(others)}; name folders of one "
                "device"
            )
        return others[0]


def _own(quantity: Quantity) -> OwnFigure | None:
    """The figure of natgauge that a quantity corresponds to; None for the value of a result."""
    return quantity.own or sources().figures.get(quantity.metric)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _printed(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _has(result: Result, parameter: str, wanted: str | int) -> bool:
    """Whether a parameter of a result has a value; a text is a printed number or a word."""
    value = result.parameter(_PARAMETER.get(parameter, parameter))
    if value is None and parameter == "draws":
        # Phase 1 has as many draws as connections unless their number was set.
        value = result.parameter("connections")
    if isinstance(wanted, str):
        try:
            number = read(wanted)
        except ValueError:
            return shown(value) == wanted
        return number is not None and value == number.value
    return value == wanted
