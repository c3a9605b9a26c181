# SPDX-License-Identifier: Apache-2.0
"""Results of natgauge in the columns of a published table.

A result belongs in a column by its metric, its device, and the parameter that varies from column to column. Directions,
orders and the like are matched by value. Numbers of cores and connections are matched by value too, where all of them
are those of the publication or of one of its smaller plans; otherwise by their position in the series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from natgauge.analysis.loads import by_load
from natgauge.errors import UsageError
from natgauge.published import plans
from natgauge.published.cells import NOTHING, read
from natgauge.published.load import sources
from natgauge.published.model import OwnFigure, Quantity, Table
from natgauge.records.measurement import FigureSummary, Result
from natgauge.records.parameters import shown

#: The plan of the table that has the own values; "position": none has them, and they are in the columns by rank.
Matched = plans.Size | Literal["position"]

#: The parameter of a result that an axis varies.
_PARAMETER: Final[Mapping[plans.AxisOfTable, str]] = {
    "cores": "device_cores",
    "connections": "connections",
    "draws": "draws",
}
#: Keys of columns that are not parameters of results.
_METRIC: Final = "metric"
_DEVICE: Final = "device"
_FIGURE: Final = "figure"
#: Ranges decide the connections, by which results find their columns.
_NO_PARAMETERS: Final = frozenset(
    {_METRIC, _DEVICE, _FIGURE, "source_addresses", "source_ports", "destination_addresses", "destination_ports"}
)


@dataclass(frozen=True, slots=True)
class Absent:
    """A result that does not exist.

    Attributes:
        reason: reason, the same for all columns without a result for it; where there is a value, the value follows it.
        value: value of the parameter that varies, at this column; empty where no parameter varies.
    """

    reason: str
    value: str = ""


@dataclass(frozen=True)
class Columns:
    """The columns of a published table, filled with results."""

    table: Table
    results: tuple[Result, ...]

    def __post_init__(self) -> None:
        """Refuse results that do not fit the table."""
        table = self.table
        if table.axis == "none" and table.width > 1 and not self._keys:
            raise UsageError(f"report: --like {table.name}: {plans.needs(table)}")
        if not self.placed:
            ours = ", ".join(sorted({result.metric for result in self.results}))
            theirs = ", ".join(sorted(self._metrics))
            raise UsageError(
                f"report: --like {table.name}: no result belongs in this table: it is of {theirs}, the results are of "
                f"{ours} with other parameters or of other devices; name other folders or another table"
                if self._metrics & {result.metric for result in self.results}
                else f"report: --like {table.name}: is of {theirs}, the results are of {ours}; "
                '"natgauge published" lists other tables'
            )

    @cached_property
    def placed(self) -> list[Result]:
        """The results that belong in the table, by column."""
        return [result for column in range(self.table.width) for result in self.at(column)]

    @cached_property
    def left_out(self) -> list[Result]:
        """The results that belong in no column."""
        return [result for result in self.results if all(result is not other for other in self.placed)]

    def at(self, column: int) -> list[Result]:
        """Return the results of a column, counted from 0, each once."""
        results: list[Result] = []
        for name in self.table.quantities:
            result = self.find(name, column)
            if isinstance(result, Result) and all(result is not other for other in results):
                results.append(result)
        return results

    def find(self, name: str, column: int) -> Result | Absent:
        """Return the result of a quantity at a column, or the reason for its absence."""
        table, quantity = self.table, self.table.quantities[name]
        if any(cells[column] == NOTHING for key, cells in self._keys.items() if key not in table.shape.columns):
            return Absent("the plan of the table leaves this column out")
        metric, device = self._metric(quantity, column), self._device(quantity, column)
        wanted: dict[str, object] = {**self._keys_at(column)}
        if self.axis is not None and self._theirs(size="full")[column] is not None:
            if self.values[column] is None:
                return Absent(f"no result: the results have fewer numbers of {self.axis} than the table has columns")
            wanted[self.axis] = self.values[column]
        matching = [
            result
            for result in self._of(metric, device)
            if all(
                self._value(result) == value if key == self.axis else _has(result, key, value)
                for key, value in wanted.items()
            )
        ]
        if len(matching) > 1:
            # The same metric may have been measured in other ways, too.
            matching = [result for result in matching if self._as_planned(result)] or matching
        if len(matching) > 1:
            raise UsageError(
                f"report: --like {table.name}: two results of {metric} of {matching[0].gateway} belong in one cell of "
                f"column {column + 1}; name folders of one measurement series"
            )
        if matching:
            return matching[0]
        missing = f"no result of {metric}" + (f" of {device}" if device else "")
        *others, (last, value) = wanted.items() if wanted else [("", "")]
        conditions = [*(f"{_words(key)} = {_printed(each)}" for key, each in others)]
        conditions += [f"{_words(last)} ="] if last else []
        return Absent(missing + (f" with {' and '.join(conditions)}" if last else ""), _printed(value))

    def summary(self, name: str, column: int) -> FigureSummary | Result | Absent:
        """Return the summary of a quantity's figure at a column, or the reason for its absence."""
        result, own = self.find(name, column), self._own(self.table.quantities[name])
        if isinstance(result, Absent):
            return result
        if own is not None and own.load is not None:
            series = by_load(result)
            at_load = {} if series is None else series.at.get(own.load, {})
            missing = Absent(f"{result.metric} of {result.gateway} has no value at a load of", f"{own.load} %")
            return at_load.get(own.figure, missing)
        figure = NOTHING if own is None else own.figure
        if _FIGURE in self._keys:
            figure = str(self._keys[_FIGURE][column])
        missing = Absent(f"the result of {result.metric} of {result.gateway} has no figure {figure}")
        return result if figure == NOTHING else result.figures.get(figure, missing)

    def _as_planned(self, result: Result) -> bool:
        """Whether a result has the settings that the plan of the table has for its metric."""
        own = plans.settings_of(self.table, result.metric)
        return all(result.parameter(key) is None or _has(result, key, value) for key, value in own.items())

    @property
    def axis(self) -> plans.AxisOfTable | None:
        """The table's axis, along which columns grow; None without one."""
        return plans.axis_of(self.table)

    @cached_property
    def values(self) -> list[int | None]:
        """Own value of the axis at each column; None where there is none."""
        return self._matching[1]

    @property
    def matched(self) -> Matched:
        """Rule that matches own values of the axis with the published values."""
        return self._matching[0]

    def _theirs(self, *, size: plans.Size) -> list[int | None]:
        """The value of the axis at each column of a plan; None where a column has none."""
        return [None] * self.table.width if self.axis is None else plans.axis_values(self.table, size=size)

    @cached_property
    def _matching(self) -> tuple[Matched, list[int | None]]:
        places = [column for column, value in enumerate(self._theirs(size="full")) if value is not None]
        own = sorted({self._position(result) for result in self.results if self._may_belong(result, places)})
        for size in plans.SIZES:
            if {*own} <= {*(theirs := self._theirs(size=size))}:
                return size, theirs
        if len(own) > len(places):
            raise UsageError(
                f"report: --like {self.table.name}: has {len(places)} columns for numbers of {self.axis}, the results "
                f"have {len(own)}: {', '.join(f'{value:,}' for value in own)}; name folders of fewer"
            )
        ranked: list[int | None] = [None] * self.table.width
        for column, value in zip(places, own, strict=False):
            ranked[column] = value
        return "position", ranked

    def _position(self, result: Result) -> int:
        value = self._value(result)
        if not value:
            raise UsageError(
                f"report: --like {self.table.name}: the number of {self.axis} of a result of {result.metric} of "
                f"{result.gateway} is not known; leave it out"
            )
        return int(value)

    def _value(self, result: Result) -> float | None:
        """The value of the axis; phase 1 has as many draws as connections unless their number was set."""
        value = None if self.axis is None else result.number(_PARAMETER[self.axis])
        return result.number("connections") if value is None and self.axis == "draws" else value

    def _may_belong(self, result: Result, columns: Sequence[int]) -> bool:
        """Whether a result belongs in one of these columns, whatever its value of the axis."""
        table = self.table
        return any(
            result.metric == self._metric(quantity, column)
            and result.gateway == self._device(quantity, column)
            and all(_has(result, key, value) for key, value in self._keys_at(column).items())
            for quantity in table.quantities.values()
            for column in columns
        )

    @cached_property
    def _keys(self) -> Mapping[str, tuple[str | int, ...]]:
        """Values by column, of what varies from column to column."""
        every = {**self.table.plan.columns, **self.table.shape.columns}
        return {key: cells for key, cells in every.items() if len({*cells}) > 1}

    def _keys_at(self, column: int) -> dict[str, str | int]:
        """The parameters that results of a column must have."""
        return {
            key: cells[column]
            for key, cells in self._keys.items()
            if key not in _NO_PARAMETERS and cells[column] != NOTHING
        }

    @property
    def _metrics(self) -> set[str]:
        return {
            self._metric(quantity, column)
            for quantity in self.table.quantities.values()
            for column in range(self.table.width)
        }

    def _metric(self, quantity: Quantity, column: int) -> str:
        if _METRIC in self._keys:
            return str(self._keys[_METRIC][column])
        own = self._own(quantity)
        return quantity.metric if own is None else own.metric

    def _own(self, quantity: Quantity) -> OwnFigure | None:
        """The figure of natgauge that a quantity corresponds to; None for the value of a result."""
        return quantity.own or sources().figures.get(quantity.metric)

    def _device(self, quantity: Quantity, column: int) -> str | None:
        """The device of a quantity: a recipe of the published device, or else the one other device of the results."""
        metric = self._metric(quantity, column)
        measured = dict.fromkeys(result.gateway for result in self.results if result.metric == metric)
        if _DEVICE in self._keys:
            return str(self._keys[_DEVICE][column])
        recipes = sources().recipes
        if same := [gateway for gateway in measured if gateway in recipes.get(quantity.device, ())]:
            return same[0]
        taken = {gateway for each in self.table.quantities.values() for gateway in recipes.get(each.device, ())}
        others = [gateway for gateway in measured if gateway not in taken]
        if len(others) > 1:
            raise UsageError(
                f"report: --like {self.table.name}: {metric} has results of {', '.join(others)}; name folders of one "
                "device"
            )
        return others[0] if others else next(iter(recipes.get(quantity.device, ())), None)

    def _of(self, metric: str, device: str | None) -> Sequence[Result]:
        return [result for result in self.results if (result.metric, result.gateway) == (metric, device)]


def _words(key: str) -> str:
    return key.replace("_", " ")


def _printed(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _has(result: Result, parameter: str, wanted: object) -> bool:
    """Whether a parameter of a result has a value; a text is a printed number or a word."""
    value = result.parameter(parameter)
    if isinstance(wanted, str):
        try:
            number = read(wanted)
        except ValueError:
            return shown(value) == wanted
        return number is not None and value == number.value
    return value == wanted
