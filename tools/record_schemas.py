# SPDX-License-Identifier: Apache-2.0
"""Write the JSON schema of each record that results folders contain; `make schemas` calls this."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from natgauge.records.audit import AuditRecord
from natgauge.records.campaign import CampaignRecord
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.records.record import Record

RECORDS: Final[tuple[type[Record], ...]] = (Result, ComparisonRecord, CampaignRecord, AuditRecord)
#: The section of a docstring that describes the fields.
_FIELDS: Final = "\n\nAttributes:\n"


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema (draft 2020-12) of each record, by name and version such as "comparison-3"."""
    return {record.schema_version.removeprefix("natgauge-"): _schema(record) for record in RECORDS}


def _schema(record: type[Record]) -> dict[str, Any]:
    schema = record.model_json_schema(by_alias=True)
    # The version is a constant with a default for Python alone: every document names it.
    schema["required"] = ["schema", *schema["required"]]
    for definition in (schema, *schema["$defs"].values()):
        _describe(definition)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": record.schema_version, **schema}


def _describe(schema: dict[str, Any]) -> None:
    """Give each field the description that its class's docstring has of it."""
    summary, _, fields = str(schema.get("description", "")).partition(_FIELDS)
    if not fields:
        return
    schema["description"] = summary
    for name, text in _fields(fields):
        if name in schema["properties"]:
            schema["properties"][name] = {**schema["properties"][name], "description": text}


def _fields(section: str) -> Iterator[tuple[str, str]]:
    """Name and description of each field in a docstring's section "Attributes"."""
    for match in re.finditer(r"^    (\w+): (.*(?:\n      +.*)*)", section, re.MULTILINE):
        yield ("schema" if match[1] == "schema_name" else match[1]), " ".join(match[2].split())


def main(folder: Path) -> None:
    """Write one file for each record into a folder that exists."""
    for name, schema in schemas().items():
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
