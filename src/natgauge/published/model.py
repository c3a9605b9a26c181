# SPDX-License-Identifier: Apache-2.0
"""A published table: typed; an invalid table is refused in one line."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from natgauge.published.cells import Printed, read

#: Parameters of the published experiment.
Parameter = Literal[
    "cores", "connections", "source-ports", "destination-ports", "table-size", "hash-size", "experiments", "error",
    "timeout", "phase-1-frames",
]  # fmt: skip
Divided = Literal["source-ports", "destination-ports", "connections"]
#: Measured figures.
Figure = Literal["median", "minimum", "maximum", "mean", "standard-deviation"]
#: What follows from other rows; so do `connections` where the numbers of ports are printed, too.
Derived = Literal[
    "table-per-connection", "connections-per-bucket", "relative-scale-up", "percent-of-forwarding", "to-previous",
    "deletion-time", "tear-down-rate", "new-connection-share",
]  # fmt: skip
#: What columns are called, and what is no number.
Words = Literal["heading", "text"]
Kind = Parameter | Figure | Derived | Words

_WORDS: Final = frozenset({"heading", "text"})
#: Rows that belong to a quantity of the table.
_OF_QUANTITY: Final = frozenset(
    {
        "error", "median", "minimum", "maximum", "mean", "standard-deviation", "relative-scale-up",
        "percent-of-forwarding", "to-previous", "deletion-time", "tear-down-rate",
    }
)  # fmt: skip
_IN_UNIT: Final = frozenset(
    {"median", "minimum", "maximum", "mean", "standard-deviation", "deletion-time", "tear-down-rate"}
)

Text = Annotated[str, Field(min_length=1)]
Column = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Document(_Model):
    """The document in which tables were printed."""

    title: Text
    authors: Text
    date: date
    url: Annotated[str, Field(pattern=r"^https://")]


class MachineDescription(_Model):
    """Hardware and software of the measurements of tables."""

    hardware: Text
    device: Text
    tester: Text


class OwnFigure(_Model):
    """The figure of natgauge's results that a published figure corresponds to.

    Attributes:
        figure: name of the figure in its results, or of a column of their series over loads.
        load: load in percent, where the figure is one of a series over loads.
    """

    metric: Text
    figure: Text
    load: Annotated[int, Field(ge=1, le=100)] | None = None


class Quantity(_Model):
    """Figures of one metric of one device.

    Attributes:
        times: factor of the printed figures; a printed 1 is `times` of the unit.
        own: the figure of natgauge, where `sources.toml` has none for the metric and a result's value is not that
            figure.
        at_least: whether natgauge counts by a stricter rule, so that its value is a lower bound of such a figure.
    """

    device: Text
    metric: Text
    unit: Text
    times: Annotated[int, Field(ge=1)]
    directions: Text | None = None
    own: OwnFigure | None = None
    at_least: bool = False


class PublishedRow(_Model):
    """One printed row.

    Attributes:
        label: as printed; a label that a table prints twice has an addition that distinguishes the two.
        cells: as printed, "-" for an empty cell, "2^23" for a power, "drawn" for a value of a diagram without numbers.
    """

    label: Text
    kind: Kind = Field(alias="is")
    quantity: str | None = None
    cells: Annotated[tuple[Text, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _of_numbers(self) -> Self:
        if self.kind not in _WORDS:
            for cell in self.cells:
                read(cell)
        if self.kind in _OF_QUANTITY and self.quantity is None:
            raise ValueError(f"row {self.label!r}: a row that is {self.kind!r} names its quantity")
        return self

    @property
    def is_in_unit(self) -> bool:
        """Whether the cells are figures in the unit of their quantity, neither ratios nor search errors."""
        return self.kind in _IN_UNIT

    def numbers(self) -> tuple[Printed | None, ...]:
        """The cells as numbers; empty for words."""
        return () if self.kind in _WORDS else tuple(map(read, self.cells))


class Slip(_Model):
    """A misprint.

    Attributes:
        columns: numbers of the columns, from 1.
    """

    row: Text
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    printed: tuple[Text, ...]
    right: tuple[Text, ...]
    why: Text


class UnmetRequirement(_Model):
    """A requirement of a table that is not met."""

    row: Text
    needs: Text
    lacks: Literal["natgauge", "host"]


class SmallPlan(_Model):
    """Differences of the plan for a laptop from the full one, or of the plan for a guest from that for a laptop.

    Attributes:
        divide: divisors of the numbers of ports, or of the connections where no numbers of ports are printed; sizes of
            tables shrink with the connections.
        settings: settings by metric that differ from those of the larger plan; "-" leaves a setting out.
    """

    divide: dict[Divided, Annotated[int, Field(ge=1)]] = {}
    differs: tuple[Text, ...] = ()
    settings: dict[str, dict[str, Any]] = {}


class TablePlan(_Model):
    """Keys that a plan of the same measurements needs in addition to the table's rows.

    Attributes:
        columns: values of plan keys for each column, "-" for a column that the plan leaves out.
        own_cores: number of devices of the chain, each of which has the printed number of cores for itself; None = a
            single device, or all devices share the cores. The devices of a small plan share the cores.
        entries_per_bucket: size of the connection tracking table / size of its hash table, where one row gives both.
        guest: further differences of the plan for a guest, whose emulated processors forward a few thousand frames/s.
    """

    missing: tuple[UnmetRequirement, ...] = ()
    differs: tuple[Text, ...] = ()
    parameters: dict[Parameter, Text] = {}
    columns: dict[str, Annotated[tuple[Text | int, ...], Field(min_length=1)]] = {}
    own_cores: Annotated[int, Field(ge=2)] | None = None
    entries_per_bucket: Annotated[int, Field(ge=1)] | None = None
    settings: dict[str, dict[str, Any]] = {}
    measure: tuple[dict[str, Any], ...] = ()
    small: SmallPlan = SmallPlan()
    guest: SmallPlan = SmallPlan(divide={"source-ports": 20})

    @model_validator(mode="after")
    def _possible(self) -> Self:
        given = self.model_fields_set - {"missing"}
        if self.missing and given:
            raise ValueError(f"missing: a table without a plan has no {min(given)}; leave one out")
        for cell in self.parameters.values():
            if read(cell) is None:
                raise ValueError(f"parameters: {cell!r} is no value; leave it out")
        return self


class TableShape(_Model):
    """Rules by which results of natgauge fill the table, in addition to its rows, quantities and plan.

    Attributes:
        columns: values for each column, "-" where the column has no such requirement. The keys are "metric", "device"
            (a recipe) and "figure" of a result, and names of its parameters.
    """

    columns: dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]] = {}
    rows: dict[str, Parameter] = {}


class Table(_Model):
    """One published table.

    Attributes:
        drawn: columns, from 1, whose four tuples were drawn at random, so that some occurred twice.
        plan: additions to the rows for a plan of the same measurements, or the reason why there is no such plan.
        shape: additions to the rows for a table of natgauge's results in the same shape.
    """

    name: Text
    source: Text
    place: Text
    title: Text
    machine: Text
    axis: Literal["cores", "connections", "none"]
    conditions: tuple[Text, ...] = ()
    also_in: tuple[Text, ...] = ()
    drawn: tuple[Column, ...] = ()
    rows: Annotated[tuple[PublishedRow, ...], Field(min_length=1)]
    quantities: dict[str, Quantity]
    slips: tuple[Slip, ...] = ()
    plan: TablePlan
    shape: TableShape = TableShape()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        width = self.width
        for row in self.rows:
            if len(row.cells) != width:
                raise ValueError(f"row {row.label!r}: has {len(row.cells)} cells where the first row has {width}")
            if row.quantity is not None and row.quantity not in self.quantities:
                raise ValueError(f"row {row.label!r}: quantity {row.quantity!r} is not described")
        kinds = [f"{row.kind} {row.quantity or ''}".strip() for row in self.rows if row.kind != "text"]
        for what, named in (("label", [row.label for row in self.rows]), ("kind", kinds)):
            twice = [name for name, count in Counter(named).items() if count > 1]
            if twice:
                raise ValueError(f"{what} {twice[0]!r} is in two rows")
        for slip in self.slips:
            self._refuse_absent(slip)
        return self

    @model_validator(mode="after")
    def _planned(self) -> Self:
        """Check the plan against the rows and quantities."""
        for missing in self.plan.missing:
            if missing.row not in {row.label for row in self.rows}:
                raise ValueError(f"plan: missing: there is no row {missing.row!r}")
        for name in self.plan.parameters:
            if self.row(name) is not None:
                raise ValueError(f"plan: parameters: {name}: the table has a row of it; leave it out")
        metrics = {quantity.metric for quantity in self.quantities.values()}
        for metric in (*self.plan.settings, *self.plan.small.settings, *self.plan.guest.settings):
            if metric not in metrics:
                raise ValueError(f"plan: settings: {metric}: no quantity has this metric; leave it out")
        return self

    @model_validator(mode="after")
    def _columns_and_rows_exist(self) -> Self:
        for part, columns in (("plan", self.plan.columns), ("shape", self.shape.columns)):
            for key, cells in columns.items():
                if len(cells) != self.width:
                    counted = f"has {len(cells)} cells where the first row has {self.width}"
                    raise ValueError(f"{part}: columns: {key}: {counted}")
        for label in self.shape.rows:
            if label not in {row.label for row in self.rows if row.kind == "text"}:
                raise ValueError(f"shape: rows: {label!r}: is no row of words")
        return self

    def _refuse_absent(self, slip: Slip) -> None:
        row = next((row for row in self.rows if row.label == slip.row), None)
        if row is None:
            raise ValueError(f"slip of row {slip.row!r}: there is no such row")
        if not len(slip.columns) == len(slip.printed) == len(slip.right):
            raise ValueError(f"slip of row {slip.row!r}: columns, printed and right are not equally many")
        for column, printed in zip(slip.columns, slip.printed, strict=True):
            if column > self.width or row.cells[column - 1] != printed:
                raise ValueError(f"slip of row {slip.row!r}: {printed!r} is not in column {column}")

    @property
    def width(self) -> int:
        """Number of columns of figures."""
        return len(self.rows[0].cells)

    def row(self, kind: Kind, quantity: str | None = None) -> PublishedRow | None:
        """Return the row of this kind and quantity; None where it was not printed."""
        return next((row for row in self.rows if row.kind == kind and row.quantity == quantity), None)

    def corrected(self, *slips: Slip) -> Table:
        """Return the table with its misprints corrected."""
        rows = {row.label: list(row.cells) for row in self.rows}
        for slip in slips:
            for column, right in zip(slip.columns, slip.right, strict=True):
                rows[slip.row][column - 1] = right
        return self.model_copy(
            update={"rows": tuple(row.model_copy(update={"cells": tuple(rows[row.label])}) for row in self.rows)}
        )
