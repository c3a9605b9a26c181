# SPDX-License-Identifier: Apache-2.0
"""The derived rows of published tables, computed again by our own formulas from what the same table prints.

The medians were rounded when they were printed, so a derived figure agrees when a number that rounds to it can be had
from numbers that round to the printed ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from operator import sub, truediv
from pathlib import Path
from typing import Final, Literal

from natgauge.analysis import derived
from natgauge.published import model
from natgauge.published.model import Figure, Kind, Printed, PublishedRow, Slip, Table

#: "same": to the last printed digit; "rounding": the roundings of what it follows from explain the last digit; "slip":
#: differs as printed, but not once the known printing errors are corrected; "differs": the reason is unknown.
Agreement = Literal["same", "rounding", "slip", "differs"]

#: All published tables, by name.
TABLES: Final[Mapping[str, Table]] = {name: model.table(name) for name in model.names()}
#: Names of quantities that have a meaning in a formula.
_FORWARDING: Final = "forwarding"
_FILLED: Final = "filled"
_EMPTY: Final = "empty"
_NET: Final = "net"
#: Figures between the extremes; then the extremes, each with the direction towards these figures.
_MIDDLES: Final[tuple[Figure, ...]] = ("median", "mean")
_EXTREMES: Final[tuple[tuple[Figure, int], ...]] = (("minimum", 1), ("maximum", -1))
#: Share of a number by which floating point may miss it.
_FLOAT: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Check:
    """A printed figure and its recomputed value.

    Attributes:
        column: column number, from 1.
        recomputed: value of our formula for the other printed figures, in the printed unit.
    """

    table: str
    row: str
    column: int
    rule: str
    printed: str
    recomputed: float
    agreement: Agreement

    @property
    def is_derived(self) -> bool:
        """Whether a formula gave the figure, not only the range between its extremes."""
        return self.rule in _FORMULAS


@dataclass(frozen=True, slots=True)
class _Formula:
    """A function of printed figures; it grows or falls steadily with each of them."""

    compute: Callable[..., float]
    inputs: tuple[Printed, ...]
    per: float = 1.0

    def value(self) -> float:
        return self.compute(*(each.value for each in self.inputs)) / self.per

    def bounds(self) -> tuple[float, float]:
        corners = [self.compute(*corner) / self.per for corner in product(*(each.bounds for each in self.inputs))]
        return min(corners), max(corners)


def with_cell(table: Table, row: str, column: int, cell: str) -> Table:
    """The table with one cell, columns from 1, that says something else."""
    there = next(each for each in table.rows if each.label == row).cells[column - 1]
    return table.corrected(Slip(row=row, columns=(column,), printed=(there,), right=(cell,), why="for a test"))


def checks(table: Table) -> list[Check]:
    """Every derived figure of a table computed again, then the order of medians and extremes."""
    checks_of_rows = [check for row in table.rows if row.kind in _FORMULAS for check in _derived(table, row)]
    return [*checks_of_rows, *_ordered(table)]


def judged(table: Table) -> list[Check]:
    """Return the checks of a table, with its known printing errors taken into account."""
    right = checks(table.corrected(*table.slips))
    return [
        replace(corrected, printed=printed.printed, agreement="slip")
        if printed.agreement == "differs" and corrected.agreement != "differs"
        else corrected
        for printed, corrected in zip(checks(table), right, strict=True)
    ]


def _derived(table: Table, row: PublishedRow) -> Iterator[Check]:
    for column, printed in enumerate(row.numbers()):
        formula = None if printed is None else _FORMULAS[row.kind](table, row.quantity, column)
        if printed is not None and formula is not None:
            agreement = _agreement(printed, formula)
            yield Check(table.name, row.label, column + 1, row.kind, row.cells[column], formula.value(), agreement)


def _agreement(printed: Printed, formula: _Formula) -> Agreement:
    value, (lowest, highest), (lower, upper) = formula.value(), formula.bounds(), printed.bounds
    slack = _FLOAT * abs(value)
    if lower - slack <= value <= upper + slack:
        return "same"
    return "rounding" if lowest - slack <= upper and lower <= highest + slack else "differs"


def _ordered(table: Table) -> Iterator[Check]:
    """No minimum lies above its median or mean, no maximum below."""
    for quantity, middle in product(table.quantities, _MIDDLES):
        for kind, sign in _EXTREMES:
            row = table.row(kind, quantity)
            middles = _numbers(table, middle, quantity)
            if row is None or not middles:
                continue
            for column, (extreme, between) in enumerate(zip(row.numbers(), middles, strict=True)):
                if extreme is not None and between is not None:
                    agreement: Agreement = "same" if sign * (between.value - extreme.value) >= 0 else "differs"
                    rule = f"{kind} and {middle} in order"
                    yield Check(table.name, row.label, column + 1, rule, row.cells[column], between.value, agreement)


def _numbers(table: Table, kind: Kind, quantity: str | None = None) -> Sequence[Printed | None]:
    row = table.row(kind, quantity)
    return () if row is None else row.numbers()


def _number(table: Table, column: int, kind: Kind, quantity: str | None = None) -> Printed | None:
    numbers = _numbers(table, kind, quantity)
    return numbers[column] if numbers else None


def _setting(table: Table, column: int, kind: Kind) -> Printed | None:
    number = _number(table, column, kind)
    return None if number is None else Printed(number.value)


def _formula(compute: Callable[..., float], *inputs: Printed | None, per: float = 1.0) -> _Formula | None:
    present = tuple(each for each in inputs if each is not None)
    return _Formula(compute, present, per) if len(present) == len(inputs) else None


def _tuples(table: Table, column: int) -> Printed | None:
    ports = _setting(table, column, "source-ports"), _setting(table, column, "destination-ports")
    formula = _formula(derived.four_tuples, *ports)
    return None if formula is None else Printed(formula.value())


def _is_drawn(table: Table, column: int) -> bool:
    return column + 1 in table.drawn


def _connections(table: Table, column: int) -> Printed | None:
    """Return the number of connections: the number of four tuples, which column headings round."""
    tuples = None if _is_drawn(table, column) else _tuples(table, column)
    return tuples or _setting(table, column, "connections")


def _four_tuples(table: Table, _quantity: str | None, column: int) -> _Formula | None:
    if _is_drawn(table, column):
        return None
    return _formula(
        derived.four_tuples, _setting(table, column, "source-ports"), _setting(table, column, "destination-ports")
    )


def _table_per_connection(table: Table, _quantity: str | None, column: int) -> _Formula | None:
    return _formula(derived.table_per_connection, _setting(table, column, "table-size"), _connections(table, column))


def _connections_per_bucket(table: Table, _quantity: str | None, column: int) -> _Formula | None:
    return _formula(derived.connections_per_bucket, _connections(table, column), _setting(table, column, "hash-size"))


def _relative_scale_up(table: Table, quantity: str | None, column: int) -> _Formula | None:
    cores = [None if each is None else each.value for each in _numbers(table, "cores")]
    if 1.0 not in cores:
        return None
    on_one_core = _number(table, cores.index(1.0), "median", quantity)
    return _formula(
        derived.relative_scale_up,
        _number(table, column, "median", quantity),
        _setting(table, column, "cores"),
        on_one_core,
    )


def _percent_of_forwarding(table: Table, quantity: str | None, column: int) -> _Formula | None:
    most = _number(table, column, "median", _FORWARDING)
    if most is None or quantity is None:
        return None
    per = table.quantities[quantity].times / table.quantities[_FORWARDING].times
    return _formula(derived.percent_of_forwarding, _number(table, column, "median", quantity), most.times(1 / per))


def _to_previous(table: Table, quantity: str | None, column: int) -> _Formula | None:
    if column == 0:
        return None
    medians = (_number(table, at, "median", quantity) for at in (column, column - 1))
    return _formula(derived.times_previous, *medians)


def _deletion_time(table: Table, _quantity: str | None, column: int) -> _Formula | None:
    """What a full table takes without what an empty one takes (section 2.5 of the draft, 8.6 of the paper)."""
    return _formula(sub, *(_number(table, column, "median", each) for each in (_FILLED, _EMPTY)))


def _tear_down_rate(table: Table, quantity: str | None, column: int) -> _Formula | None:
    """N / T (RFC 9693 section 4.8): T is the time for deleting all connections."""
    per = 1.0 if quantity is None else float(table.quantities[quantity].times)
    seconds = _number(table, column, "deletion-time", _NET)
    return _formula(truediv, _connections(table, column), seconds, per=per)


def _new_connection_share(table: Table, _quantity: str | None, column: int) -> _Formula | None:
    tuples = _tuples(table, column)
    # Enumerated four tuples are all new; of four tuples drawn at random, only the share not drawn before is new.
    opened = _connections(table, column) if _is_drawn(table, column) else Printed(0)
    return _formula(derived.new_connection_share, opened, tuples)


_FORMULAS: Final[Mapping[str, Callable[[Table, str | None, int], _Formula | None]]] = {
    "connections": _four_tuples,
    "table-per-connection": _table_per_connection,
    "connections-per-bucket": _connections_per_bucket,
    "relative-scale-up": _relative_scale_up,
    "percent-of-forwarding": _percent_of_forwarding,
    "to-previous": _to_previous,
    "deletion-time": _deletion_time,
    "tear-down-rate": _tear_down_rate,
    "new-connection-share": _new_connection_share,
}


if __name__ == "__main__":
    every = [json.dumps(asdict(check)) for table in TABLES.values() for check in judged(table)]
    Path(model.__file__).with_name("checks.json").write_text("[\n" + ",\n".join(every) + "\n]\n", encoding="utf-8")
