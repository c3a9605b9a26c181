# SPDX-License-Identifier: Apache-2.0
"""Reading the published tables and their sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from natgauge import foreign, toml_text
from natgauge.errors import UsageError
from natgauge.published.model import Document, MachineDescription, OwnFigure, Table
from natgauge.suggestions import listed_by

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
    """Read the table of a file.

    Raises:
        UsageError: the file is no valid table; the message has file, field, value and rule.
    """
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
