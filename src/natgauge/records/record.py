# SPDX-License-Identifier: Apache-2.0
"""Base of all records: typed, with a schema name and version; other documents are refused with a one-line error.

They are read from files, which may come from strangers: sizes and depth are limited, and a fault names the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from natgauge import file_access
from natgauge.errors import UsageError

#: No error line repeats more of a value than this many characters.
_MOST_SHOWN: Final = 60


class RecordPart(BaseModel):
    """A part of a record: it has no unknown field, no number that is not finite, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Record(RecordPart):
    """The record of one outcome, as a results folder stores it and `--json` prints it.

    Attributes:
        schema_version: name of the schema with its version; the field `schema` of the document.
    """

    schema_version: ClassVar[str]

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str = "result") -> Self:
        """Read what `document` returned; UsageError names the first wrong field, and where the document was found."""
        try:
            return cls.model_validate_json(json.dumps(document), strict=True)
        except ValidationError as error:
            raise UsageError(
                f"results: {where}: {first_fault(error)}; it is damaged or of another version, measure again"
            ) from None

    def document(self) -> dict[str, Any]:
        """Return plain JSON values, as `--json` prints them."""
        return self.model_dump(mode="json", by_alias=True)


def first_fault(error: ValidationError | RecursionError) -> str:
    """Return field, value and rule of the first thing that is wrong."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"])) or "the whole"
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] in {"missing", "value_error"}:
        return f"{field}: {rule}"
    shown = repr(first["input"])
    return f"{field}: {shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + '...'}: {rule}"


RecordT = TypeVar("RecordT", bound=Record)

#: Levels of nesting of a document; natgauge writes fewer than twenty.
_DEEPEST = 64


class StoredPart(BaseModel):
    """A part of a line of a results folder: of strict types, with further fields that nobody reads."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore")


def read_lines(path: Path, schema: str, *, whole: bool = False) -> Iterator[dict[str, Any]]:
    """Read one of the folder's `.jsonl` files, whose lines have this schema.

    A last line cut off by a crash is left out; with `whole` it is refused: a measurement that has ended has none.
    """
    for number, line in enumerate(file_access.read_lines(path, file_access.LINES, whole=whole), start=1):
        yield _read_object(line, schema, f"{path}:{number}")


def read_document(path: Path, schema: str) -> dict[str, Any]:
    """Read one of the folder's `.json` files; UsageError: it is missing, not JSON, or of another schema."""
    document = _read_object(file_access.read_text(path, file_access.DOCUMENT), schema, str(path))
    if _is_deep(document):
        raise UsageError(f"results: {path} is nested deeper than {_DEEPEST} levels: it is damaged; measure again")
    return document


def read_record(path: Path, kind: type[RecordT]) -> RecordT:
    """Read the record that one of the folder's `.json` files contains; UsageError also where a field is wrong."""
    return kind.from_document(read_document(path, kind.schema_version), str(path))


def _read_object(text: str, schema: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UsageError(f"results: {where} is not JSON: cut off or damaged; measure again") from None
    stored = document.get("schema") if isinstance(document, dict) else None
    if stored != schema:
        raise UsageError(
            f"results: {where} is of schema {stored!r}, this natgauge reads {schema!r}; measure again, or read it with "
            "the natgauge that wrote it"
        )
    result: dict[str, Any] = document
    return result


def _is_deep(document: object) -> bool:
    """Whether values are nested deeper than natgauge writes them, so that views could not follow."""
    level = [document]
    for _ in range(_DEEPEST):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
