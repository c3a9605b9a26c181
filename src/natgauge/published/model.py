# SPDX-License-Identifier: Apache-2.0
"""Published tables, typed: their files, their sources, and the plans that measure them again.

Tables are files of `tables/`, plans of `plans/`; an invalid table is refused in one line. A full plan has the table's
numbers and needs a machine of many cores. A small plan has the same series with smaller numbers: for two cores and at
most 20 minutes. A guest plan has still smaller numbers, for a guest with a kernel of its own (`--lab vm`) whose
processors may be emulated: it shows that the device works, not how fast it is.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from natgauge import file_access, toml_text
from natgauge.errors import HostError, UsageError, listed_by

#: A cell in which nothing was printed.
NOTHING: Final = "-"
#: A cell of a diagram, which shows a value without its number.
DRAWN: Final = "drawn"
_POWER: Final = re.compile(r"2\^(\d{1,2})")
_NUMBER: Final = re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<million>M?)")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as it was printed.

    Attributes:
        half: half a unit of the last digit, which is the largest error of rounding; 0 = exact.
    """

    value: float
    half: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest number that are rounded to the printed number."""
        return self.value - self.half, self.value + self.half

    def times(self, factor: float) -> Printed:
        """Return the number in another unit, `factor` times as large, with its rounding."""
        return Printed(self.value * factor, self.half * factor)


def read(cell: str) -> Printed | None:
    """Read a cell, such as "2^23", "1,341", "45.5", "1.56M" or "(2,758,621)"; None where no number was printed."""
    if cell in {NOTHING, DRAWN}:
        return None
    bare = cell.removeprefix("(").removesuffix(")")
    if power := _POWER.fullmatch(bare):
        return Printed(float(2 ** int(power[1])))
    number = _NUMBER.fullmatch(bare)
    if number is None:
        raise ValueError(f"{cell!r}: is no number; write it as in 1,341 or 45.5 or 1.56M or 2^23 or -")
    decimals, unit = number["decimals"] or "", 1e6 if number["million"] else 1.0
    value = float(f"{number['whole'].replace(',', '')}.{decimals or 0}")
    return Printed(value, 0.5 * 10 ** -len(decimals)).times(unit)


#: Parameters of the published experiment.
Parameter = Literal[
    "cores", "connections", "source-ports", "destination-ports", "table-size", "hash-size", "experiments", "error",
    "timeout", "phase-1-frames",
]  # fmt: skip
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

_WORDS: Final = frozenset(get_args(Words))
_IN_UNIT: Final = frozenset({*get_args(Figure), "deletion-time", "tear-down-rate"})
#: Rows that belong to a quantity of the table.
_OF_QUANTITY: Final = _IN_UNIT | {"error", "relative-scale-up", "percent-of-forwarding", "to-previous"}

Text = Annotated[str, Field(min_length=1)]
Column = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_Kind = TypeVar("_Kind", bound=_Model)


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
        figure: name of the figure in its results, or of a column of their series over loads; in shared placement what
            was not forwarded stands for lost frames.
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

    @property
    def counted(self) -> str:
        """What a printed 1 is."""
        return self.unit if self.times == 1 else f"{self.times:,} {self.unit}"


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


class TableShape(_Model):
    """Rules by which results of natgauge fill the table, in addition to its rows and quantities.

    Attributes:
        columns: values for each column, "-" where the column has no such requirement. The keys are "metric", "device"
            (a recipe) and "figure" of a result, and names of its parameters. Without a key of its own a result has no
            tolerated loss, frames of the least size, and both directions where the published figure adds them; it never
            has another transport, native IPv6 among its frames or goals of MLRsearch.
    """

    columns: dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]] = {}
    rows: dict[str, Parameter] = {}


class Table(_Model):
    """One published table.

    Attributes:
        drawn: columns, from 1, whose four tuples were drawn at random, so that some occurred twice.
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
    outside: tuple[Parameter, ...] = ()
    missing: tuple[UnmetRequirement, ...] = ()
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
    def _columns_and_rows_exist(self) -> Self:
        for key, cells in self.shape.columns.items():
            if len(cells) != self.width:
                counted = f"has {len(cells)} cells where the first row has {self.width}"
                raise ValueError(f"shape: columns: {key}: {counted}")
        kinds = {row.label: row.kind for row in self.rows}
        for label in self.shape.rows:
            if kinds.get(label) != "text":
                raise ValueError(f"shape: rows: {label!r}: is no row of words")
        for missing in self.missing:
            if missing.row not in kinds:
                raise ValueError(f"missing: there is no row {missing.row!r}")
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


_HERE: Final = Path(__file__).parent
_SOURCES: Final = _HERE / "sources.toml"


class Sources(_Model):
    """The documents, machines and recipes of the tables.

    Attributes:
        documents: by name.
        machines: by name.
        recipes: names of natgauge's recipes, by the device of a quantity; a device without a recipe is not listed.
        figures: figures of natgauge, by the metric of a quantity, where a result's value is not the published figure.
    """

    documents: dict[str, Document]
    machines: dict[str, MachineDescription]
    recipes: dict[str, tuple[str, ...]]
    figures: dict[str, OwnFigure]


@cache
def names() -> tuple[str, ...]:
    """Return the names of all tables; tables of one document in the order of their numbers."""
    return tuple(sorted((path.stem for path in (_HERE / "tables").glob("*.toml")), key=_numbered))


@cache
def sources() -> Sources:
    """Return all documents and machines."""
    return _read(_SOURCES, Sources, {})


@cache
def table(name: str) -> Table:
    """Return a published table."""
    if name not in names():
        raise UsageError(f'published table "{name}": unknown; {listed_by("natgauge published", name, names())}')
    return from_file(_HERE / "tables" / f"{name}.toml")


def from_file(path: Path) -> Table:
    """Read the table of a file; the error has file, field, value and rule."""
    loaded = _read(path, Table, {"name": path.stem})
    for what, name, known in (
        ("source", loaded.source, sources().documents),
        ("machine", loaded.machine, sources().machines),
    ):
        if name not in known:
            raise UsageError(f"{path}: {what}: {name!r}: is not described in {_SOURCES.name}; describe it there")
    return loaded


def _numbered(name: str) -> tuple[str, int, str]:
    front, _, last = name.rpartition("-")
    return (front, int(last), "") if last.isdecimal() else (front, 0, last)


def _read(path: Path, model: type[_Kind], added: dict[str, Any]) -> _Kind:
    try:
        document = toml_text.parse(file_access.read_text(path, file_access.TABLE))
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read as TOML: {error}") from error
    try:
        return model.model_validate(_frozen({**document, **added}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the whole"
        raise UsageError(f"{path}: {field}: {first['msg'].removeprefix('Value error, ')}") from None


def _frozen(value: Any) -> Any:
    """Convert lists to tuples, which strict models require."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


Size = Literal["full", "small", "guest"]
SIZES: Final[tuple[Size, ...]] = get_args(Size)
_OPTIONS: Final[dict[Size, str]] = {"full": "", "small": " --small", "guest": " --small --lab vm"}


def plan_text(table: Table, *, size: Size) -> str:
    """The plan of a table as TOML, with its commands in comments."""
    if table.missing:
        kind = UsageError if any(each.lacks == "natgauge" for each in table.missing) else HostError
        raise kind(f"published: --plan {table.name}: {needs(table)}")
    # The first line is the licence of the file.
    return file_access.read_text(_HERE / "plans" / plan_file(table, size=size), file_access.TABLE).partition("\n")[2]


def plan_file(table: Table, *, size: Size) -> str:
    """Return the name of the file of a table's plan."""
    return f"{table.name}{'' if size == 'full' else f'-{size}'}.toml"


def plan_command(table: Table, *, size: Size) -> str:
    """Return the command line that prints the table's plan."""
    return f"natgauge published --plan{_OPTIONS[size]} {table.name}"


def needs(table: Table) -> str:
    """The requirements of a table that are not met, each with its row; empty for a table with a plan."""
    return "; ".join(f'row "{each.row}" needs {each.needs}' for each in table.missing)
