# SPDX-License-Identifier: Apache-2.0
"""Reading of the files of results folders, which may come from strangers: with limits, and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from natgauge import foreign
from natgauge.errors import UsageError
from natgauge.records.record import Record

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
    for number, line in enumerate(foreign.read_lines(path, foreign.LINES, whole=whole), start=1):
        yield _read_object(line, schema, f"{path}:{number}")


def read_document(path: Path, schema: str) -> dict[str, Any]:
    """Read one of the folder's `.json` files; UsageError: it is missing, not JSON, or of another schema."""
    document = _read_object(foreign.read_text(path, foreign.DOCUMENT), schema, str(path))
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
