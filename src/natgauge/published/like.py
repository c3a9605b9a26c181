# SPDX-License-Identifier: Apache-2.0
"""Results of natgauge in the shape of a published table: its rows, columns, units and order.

The file of the table says what each row contains (`natgauge.published.model`). Figures come from records, and ratios
from `natgauge.analysis`, as in all other reports.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from natgauge.analysis import derived
from natgauge.analysis.contrast import better, bounds, is_searched, search_error, unfailed
from natgauge.analysis.scalability import CORES, SESSIONS, Bound, Comparison, of_forwarding, scale_up, to_previous
from natgauge.figure_text import in_full, number
from natgauge.interval_text import Way, Written, decimals, significant
from natgauge.published.like_columns import Absent, Columns
from natgauge.published.load import sources, table
from natgauge.published.model import NOTHING, Kind, PublishedRow, Quantity
from natgauge.published.printed import THEIRS, slips
from natgauge.records.measurement import Result
from natgauge.records.parameters import RAISED_TIMEOUT
from natgauge.reports.graded_doubts import MARKS, columns, mark, of_columns
from natgauge.reports.rows import experiments
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.words import OF_PORTS, OF_SPEED

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
        self._columns = Columns(self._table, tuple(results))
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
        return _unit(self._table.quantities[row.quantity]) if row.quantity is not None and in_unit else ""

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
                described.setdefault(f"{', '.join(devices)}; 1 = {_unit(quantity)}{added}.", []).append(name)
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


def _unit(quantity: Quantity) -> str:
    return quantity.unit if quantity.times == 1 else f"{quantity.times:,} {quantity.unit}"


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
