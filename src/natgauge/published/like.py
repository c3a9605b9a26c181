# SPDX-License-Identifier: Apache-2.0
"""Results of natgauge in the shape of a published table: its rows, columns, units and order.

A result of a table's plan says which of its cells it is for. Other results belong in the columns whose metric, device
and settings, as published, they have. The file of the table says what each row contains (`natgauge.published.model`).
Figures come from records, and ratios from `natgauge.analysis`, as in all other reports.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from pydantic import JsonValue

from natgauge.analysis import derived
from natgauge.analysis.contrast import better, bounds, is_searched, search_error, unfailed
from natgauge.analysis.derived import (
    CORES,
    LOST,
    SESSIONS,
    Bound,
    Comparison,
    by_load,
    loss_figure,
    of_forwarding,
    scale_up,
    to_previous,
)
from natgauge.errors import UsageError
from natgauge.figure_text import in_full, number
from natgauge.interval_text import Way, Written, decimals, significant
from natgauge.published.model import (
    NOTHING,
    Kind,
    OwnFigure,
    PublishedRow,
    Quantity,
    Table,
    needs,
    read,
    sources,
    table,
)
from natgauge.published.printed import THEIRS, slips
from natgauge.records.measurement import Result
from natgauge.records.parameters import RAISED_TIMEOUT, describe, shown
from natgauge.reports import main_figure
from natgauge.reports.graded_doubts import MARKS, columns, mark, of_columns
from natgauge.reports.rows import experiments
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.statistics.summary import FigureSummary
from natgauge.words import OF_PORTS, OF_SPEED

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


class _Columns:
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
        tolerated = _TOLERANCE not in shape and main_figure.tolerance(result) is not None
        added = quantity.directions is not None and _DIRECTIONS not in shape
        one_way = added and result.parameter(_DIRECTIONS) != "both"
        frames = main_figure.unusual_frames(result, sized=_SIZE not in shape)
        return not (tolerated or one_way or frames or main_figure.goals(result) or self._others(result))

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
        lost = "" if main_figure.tolerance(result) is None else f", {main_figure.most_lost(result)}"
        passed = lost if main_figure.goals(result) is None else main_figure.condition(result)
        others = "".join(f", {words}" for words in self._others(result))
        return f"{directions}{main_figure.unusual_frames(result, sized=_SIZE not in shape)}{others}{passed}"

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
            for column, printed in enumerate(() if row is None else row.numbers()):
                value = values[column]
                values[column] = None if printed is None or value is None else value * printed.value
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


#: A field of a summary, by the kind of its row.
_SUMMARY: Final[Mapping[Kind, str]] = {
    "median": "median",
    "minimum": "minimum",
    "maximum": "maximum",
    "mean": "mean",
    "standard-deviation": "standard_deviation",
    "deletion-time": "median",
    "tear-down-rate": "median",
}
#: Rows that a bound belongs to, where their figure is the value of a result.
_RATES: Final[frozenset[Kind]] = frozenset({"median", "minimum", "maximum", "mean", "tear-down-rate"})
#: A parameter of results, by the kind of its row.
_PARAMETERS: Final[Mapping[Kind, Callable[[Result], float | None]]] = {
    "cores": lambda result: result.device_cores or None,
    "connections": lambda result: result.number("connections"),
    "source-ports": lambda result: result.number("source_port_count"),
    "destination-ports": lambda result: result.number("destination_port_count"),
    "table-size": lambda result: result.number("table_size"),
    "hash-size": lambda result: result.number("hash_size"),
    "experiments": experiments,
    "timeout": lambda result: result.number(RAISED_TIMEOUT) or result.number("udp_timeout"),
    "phase-1-frames": lambda result: result.number("draws") or result.number("connections"),
}
_AXES: Final = {"cores": CORES, "connections": SESSIONS}
#: The quantity of a table whose four tuples were drawn at random: the connections that the draws created.
_OPENED: Final = "opened"
#: How a bound is rounded.
_OUTWARD: Final[Mapping[Bound, Way]] = {"": "near", "<=": "up", ">=": "down"}
#: What ends a search without a doubt about the device.
_OF_DEVICE: Final = OF_SPEED | OF_PORTS | {"table"}


def sheet(name: str, results: Sequence[Result], *, beside: bool = False) -> Sheet:
    """Return results, at least one, in the shape of a published table; those of no cell are named below it."""
    return _Shaped(name, results, beside=beside).sheet()


class _Shaped:
    """A sheet while it is filled."""

    def __init__(self, name: str, results: Sequence[Result], *, beside: bool) -> None:
        self._printed = table(name)
        self._table = self._printed.corrected(*self._printed.slips)
        self._columns = _Columns(self._table, tuple(results))
        self._beside = beside
        #: Reasons for missing figures, in the order of their letters, and what the columns lack.
        self._reasons: dict[str, dict[str, None]] = {}
        #: Remarks on comparisons, each once.
        self._remarks: dict[str, None] = {}

    def sheet(self) -> Sheet:
        lines = []
        for row, printed in zip(self._table.rows, self._printed.rows, strict=True):
            cells = tuple(self._cell(row, column) for column in range(self._table.width))
            lines.append(SheetRow(row.label, cells, self._unit(row)))
            if self._beside and row.kind != "heading":
                lines.append(SheetRow(f"{row.label}, published", printed.cells, self._unit(row)))
            elif row is self._table.rows[0] and not self._columns.as_published and printed.cells != cells:
                lines.append(SheetRow("in the column of", printed.cells))
        notes, limits = tuple(self._notes()), tuple(self._limits())
        named = [(block, column, result.doubts) for block, column, result in self._every()]
        doubts, of_paper = of_columns(named, "column")
        return Sheet(tuple(lines), notes, (*doubts, *limits), (*of_paper, *limits))

    def _unit(self, row: PublishedRow) -> str:
        """The unit of the cells; empty where they have none."""
        in_unit = self._table.shape.rows.get(row.label, row.kind) in {*_SUMMARY, "error"}
        return self._table.quantities[row.quantity].counted if row.quantity is not None and in_unit else ""

    # Cells

    def _cell(self, row: PublishedRow, column: int) -> str:
        """A cell as text; a letter in parentheses refers to the reason for a missing figure."""
        shape = self._table.shape.rows
        if row.kind == "heading" or (row.kind == "text" and row.label not in shape):
            return row.cells[column]
        if row.cells[column] == NOTHING:
            return NOTHING
        try:
            return self._filled(row, shape.get(row.label, row.kind), column)
        except Absent as missing:
            values = self._reasons.setdefault(missing.reason, {})
            if missing.value:
                values[missing.value] = None
            return f"({_letter(list(self._reasons).index(missing.reason))})"

    def _filled(self, row: PublishedRow, kind: Kind, column: int) -> str:
        if row.quantity is None:
            return self._parameter(row, kind, column)
        result = self._result(row.quantity, column)
        quantity = self._table.quantities[row.quantity]
        if kind == "error":
            error = search_error(result)
            if error is None:
                raise Absent(f"{_without_error(result)} has no error")
            added = quantity.directions is not None and result.parameter("directions") == "both"
            return _figure(number, error * (2 if added else 1))
        if kind in _SUMMARY:
            value = self._summary(row.quantity, column, kind) / quantity.times
            exact = quantity.times == 1 and value == int(value)
            is_value = quantity.directions is not None or self._columns.summary(row.quantity, column) is result
            is_bound = is_value and (quantity.at_least or _is_at_least(result))
            bound: Bound = ">=" if kind in _RATES and is_bound else ""
            text = in_full(value) if exact else significant(value, _OUTWARD[bound])
            return Written(f"{bound} {text}{self._mark(result)}".lstrip(), value, bound)
        return self._compared(row, kind, result, column)

    def _result(self, quantity: str, column: int) -> Result:
        result = self._columns.find(quantity, column)
        if isinstance(result, Absent):
            raise result
        return result

    def _summary(self, quantity: str, column: int, kind: Kind) -> float:
        """A field of the summary of a quantity's figure, in the unit of the result."""
        summary = self._columns.summary(quantity, column)
        if isinstance(summary, Absent):
            raise summary
        value: float | None = getattr(summary, _SUMMARY[kind])
        if value is None:
            raise Absent("a single repetition has no standard deviation")
        return value

    def _parameter(self, row: PublishedRow, kind: Kind, column: int) -> str:
        """A parameter of the results of a column, or a ratio of two."""
        if kind == self._table.axis and (value := self._columns.values[column]) is not None:
            return _figure(in_full, value)
        results = self._columns.at(column)
        if not results:
            # Each quantity has a reason; the first one is printed for all.
            self._result(next(iter(self._table.quantities)), column)
        drawn = column + 1 in self._table.drawn
        if kind == "connections" and drawn:
            return _figure(in_full, self._summary(_OPENED, column, "median"))
        if kind == "new-connection-share":
            return _decimals(row.cells[column], self._share_of_new(column, drawn=drawn))
        if kind in {"table-per-connection", "connections-per-bucket"}:
            return _decimals(row.cells[column], self._ratio(kind, column, drawn=drawn))
        return _joined(results, _PARAMETERS[kind])

    def _share_of_new(self, column: int, *, drawn: bool) -> float:
        """Enumerated four tuples are all new."""
        results = self._columns.at(column)
        ports = [_only(results, _PARAMETERS[kind]) for kind in ("source-ports", "destination-ports")]
        if ports[0] is None or ports[1] is None:
            raise Absent("the numbers of ports are not known, or differ between the results of the column")
        opened = self._summary(_OPENED, column, "median") if drawn else 0.0
        return derived.new_connection_share(opened, derived.four_tuples(ports[0], ports[1]))

    def _ratio(self, kind: Kind, column: int, *, drawn: bool) -> float:
        results = self._columns.at(column)
        size = _only(results, _PARAMETERS["table-size" if kind == "table-per-connection" else "hash-size"])
        connections = _only(results, _PARAMETERS["connections"])
        if drawn:
            connections = self._summary(_OPENED, column, "median")
        if size is None or connections is None:
            raise Absent("the size of the device's table is not known, or differs between the results of the column")
        if kind == "table-per-connection":
            return derived.table_per_connection(size, connections)
        return derived.connections_per_bucket(connections, size)

    def _compared(self, row: PublishedRow, kind: Kind, result: Result, column: int) -> str:
        placed = self._columns.placed
        if kind == "relative-scale-up":
            if result.device_cores == 1:
                return _decimals(row.cells[column], 1.0)
            comparison, other = scale_up(result, placed), "one core"
        elif kind == "percent-of-forwarding":
            comparison, other = of_forwarding(result, placed), "plain forwarding"
        elif self._table.axis not in _AXES:
            raise Absent("the columns are no series over cores or connections")
        else:
            comparison, other = to_previous(result, placed, _AXES[self._table.axis]), "the column before"
            before = self._result(str(row.quantity), column - 1)
            if comparison.reference is not None and comparison.reference is not before:
                raise Absent("the column before has another device")
        text = _ratio_text(row.cells[column], comparison, other)
        if comparison.note:
            self._remarks[f"{comparison.note}."] = None
        return Written(f"{text}{self._mark(result)}", text.value, text.bound)

    def _mark(self, result: Result) -> str:
        return mark(result.doubts) if result.limited_by in _OF_DEVICE else MARKS["answer"]

    # Below the table

    def _notes(self) -> Iterator[str]:
        published, columns = self._table, self._columns
        known = sources()
        printed = known.documents[published.source]
        place = f"{printed.authors}: {printed.title}, {printed.date}, {published.place}"
        yield f"Measured here, in the shape of {place}."
        if not columns.as_published:
            yield f"The numbers of {published.axis} are those of the plan of the results."
        yield from self._quantities()
        # Parameters that the publication gives outside of the table.
        values = ((kind.replace("-", " "), _joined(columns.placed, _PARAMETERS[kind])) for kind in published.outside)
        if measured := [f"{name} {value}" for name, value in values if value != NOTHING]:
            yield f"Measured with {', '.join(measured)}."
        for at, (reason, lacking_values) in enumerate(self._reasons.items()):
            *first, last = lacking_values or [""]
            lacking = f"{', '.join(first)} or {last}" if first else last
            yield f"({_letter(at)}) {f'{reason} {lacking}'.rstrip()}."
        yield from self._remarks
        names: dict[str, int] = {}
        for result in columns.left_out:
            named = f"{result.metric} of {result.gateway}{columns.unusual(result)}"
            names[named] = names.get(named, 0) + 1
        yield from (f"Not in the table: {count} of {named}." for named, count in names.items())
        if self._beside:
            yield f"{THEIRS}: {known.machines[published.machine].hardware}; {known.machines[published.machine].device}."
            yield from (f"Slip: {slip}." for slip in slips(self._printed))

    def _quantities(self) -> Iterator[str]:
        """Device and unit of each quantity."""
        described: dict[str, list[str]] = {}
        for name, quantity in self._table.quantities.items():
            results = (self._columns.find(name, column) for column in range(self._table.width))
            devices = dict.fromkeys(
                f"{each.metric} of {each.gateway}{self._columns.unusual(each)}"
                for each in results
                if isinstance(each, Result)
            )
            if devices:
                added = f", {quantity.directions}" if quantity.directions else ""
                described.setdefault(f"{', '.join(devices)}; 1 = {quantity.counted}{added}.", []).append(name)
        return (f"{', '.join(names)}: {what}" for what, names in described.items())

    def _every(self) -> list[tuple[str, str, Result]]:
        """The results, each with its block and its column."""
        return [
            (f"{result.metric} of {result.gateway}", str(column + 1), result)
            for column in range(self._table.width)
            for result in self._columns.at(column)
        ]

    def _limits(self) -> Iterator[str]:
        """Yield the limits of the results where these are not the device, with their columns."""
        limits: dict[str, list[tuple[str, str]]] = {}
        for block, column, result in self._every():
            if result.limited_by not in _OF_DEVICE:
                limits.setdefault(result.limited_by, []).append((block, column))
        for limit, places in limits.items():
            yield f"{MARKS['answer']} Bottleneck: the {limit} ({columns(places, 'column')})."


def _is_at_least(result: Result) -> bool:
    """Whether something other than the device ended the search, so that the value is a lower bound."""
    return better(result.metric) == "higher" and math.isinf(bounds(result)[1])


def _without_error(result: Result) -> str:
    """Why a result has no error of a search, as the beginning of a sentence that says so."""
    if unfailed(result):
        return "no rate failed, so the search"
    if is_searched(result):
        return "no load that was too high is known, so the search"
    return "no search found the value, so it"


def _only(results: Sequence[Result], read: Callable[[Result], float | None]) -> float | None:
    """The value that all results with one share; None where there is none, or several."""
    values = {read(result) for result in results} - {None}
    return next(iter(values)) if len(values) == 1 else None


def _joined(results: Sequence[Result], read: Callable[[Result], float | None]) -> str:
    values = dict.fromkeys(read(result) for result in results)
    return " / ".join(in_full(value) for value in values if value is not None) or NOTHING


def _ratio_text(printed: str, comparison: Comparison, other: str) -> Written:
    if comparison.value is None:
        raise Absent(f"not compared with {other}: {comparison.doubt or 'no such result'}")
    text = _decimals(printed, comparison.value, comparison.bound)
    return Written(f"{comparison.bound} {text}".lstrip(), comparison.value, comparison.bound)


def _decimals(printed: str, value: float, bound: Bound = "") -> str:
    """A ratio with as many decimals as the printed one."""
    return Written(decimals(value, len(printed.partition(".")[2]), _OUTWARD[bound]), value)


def _figure(text: Callable[[float], str], value: float) -> str:
    return Written(text(value), value)


def _letter(at: int) -> str:
    letters = string.ascii_lowercase
    return letters[at] if at < len(letters) else f"{letters[at // len(letters) - 1]}{letters[at % len(letters)]}"
