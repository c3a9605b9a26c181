# SPDX-License-Identifier: Apache-2.0
"""The published tables, their sources, and the plans that measure them again: files of `tables/` and `plans/`.

A full plan has the table's numbers and needs a machine of many cores. A small plan has the same series with smaller
numbers: for two cores and at most 20 minutes. A guest plan has still smaller numbers, for a guest with a kernel of its
own (`--lab vm`) whose processors may be emulated: it shows that the device works, not how fast it is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from natgauge import foreign, toml_text
from natgauge.errors import HostError, UsageError, listed_by
from natgauge.published.model import Document, MachineDescription, OwnFigure, Table

Model = TypeVar("Model", bound=BaseModel)

_HERE: Final = Path(__file__).parent
_SOURCES: Final = _HERE / "sources.toml"


class Sources(BaseModel):
    """The documents, machines and recipes of the tables.

    Attributes:
        documents: by name.
        machines: by name.
        recipes: names of natgauge's recipes, by the device of a quantity; a device without a recipe is not listed.
        figures: figures of natgauge, by the metric of a quantity, where a result's value is not the published figure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    """Return a published table.

    Raises:
        UsageError: there is no table of this name.
    """
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


def _read(path: Path, model: type[Model], added: dict[str, Any]) -> Model:
    try:
        document = toml_text.parse(foreign.read_text(path, foreign.TABLE))
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
_PLANS: Final = _HERE / "plans"


def plan_text(table: Table, *, size: Size) -> str:
    """The plan of a table as TOML, with its commands in comments."""
    if table.missing:
        kind = UsageError if any(each.lacks == "natgauge" for each in table.missing) else HostError
        raise kind(f"published: --plan {table.name}: {needs(table)}")
    # The first line is the licence of the file.
    return foreign.read_text(_PLANS / plan_file(table, size=size), foreign.TABLE).partition("\n")[2]


def plan_file(table: Table, *, size: Size) -> str:
    """Return the name of the file of a table's plan."""
    return f"{table.name}{'' if size == 'full' else f'-{size}'}.toml"


def plan_command(table: Table, *, size: Size) -> str:
    """Return the command line that prints the table's plan."""
    return f"natgauge published --plan{_OPTIONS[size]} {table.name}"


def needs(table: Table) -> str:
    """The requirements of a table that are not met, each with its row; empty for a table with a plan."""
    return "; ".join(f'row "{each.row}" needs {each.needs}' for each in table.missing)
