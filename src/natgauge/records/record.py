# SPDX-License-Identifier: Apache-2.0
"""Base of all records: typed, with a schema name and version; other documents are refused with a one-line error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

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
