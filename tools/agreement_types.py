# SPDX-License-Identifier: Apache-2.0
"""Python's types of the engine's requests and results, generated from the schemas in `trial/`.

    python -m tools.agreement_types    writes src/natgauge/agreement/generated.py

The file is not committed: every build of the package writes it (tools/build_hook.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from datamodel_code_generator import InputFileType, LiteralType, PythonVersion, generate
from datamodel_code_generator.enums import DataModelType
from datamodel_code_generator.format import Formatter

ROOT: Final = Path(__file__).parents[1]
#: Where the types are written, below the root of the repository.
OUTPUT: Final = Path("src", "natgauge", "agreement", "generated.py")
#: Types with a base of their own, which derives numbers from them.
_BASES: Final = {
    "StreamCounts": "natgauge.agreement.stream.StreamFigures",
    "StreamTally": "natgauge.agreement.stream.WrongFigures",
}
_HEADER: Final = '''\
# SPDX-License-Identifier: Apache-2.0
"""Requests and results of the engine. Generated from trial/*.schema.json by tools/agreement_types.py: do not edit."""
'''
#: What the base of all types says, and rules between fields, which only the engine checks.
_SAID_ELSEWHERE: Final = {"additionalProperties", "allOf"}
#: Bounds. The engine refuses a wrong request by itself, in words for the user.
_BOUNDS: Final = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems",
    "maxItems", "uniqueItems",
}  # fmt: skip
#: What stands around a type in a document.
_AROUND: Final = {"$schema", "$id", "title", "$defs", "x-beyond-schema"}

Schema = dict[str, Any]


def definitions(folder: Path) -> dict[str, Schema]:
    """Return the schema of every type of the four documents by its name.

    Args:
        folder: with the schemas.

    Raises:
        ValueError: two documents describe different types of the same name.
    """
    request, comparison, result, comparison_result = (
        json.loads((folder / f"{name}-1.schema.json").read_text(encoding="utf-8"))
        for name in ("request", "comparison", "result", "comparison-result")
    )
    sent = _joined({"TrialRequest": request, "ComparisonRequest": comparison}, request["$defs"], comparison["$defs"])
    received = _joined({"ComparisonResult": comparison_result}, result["$defs"], comparison_result["$defs"])
    # The result of a period is in a line of progress, and so does not name its event.
    lines = {"TrialResult": "result", "Progress": "progress", "Failed": "failed"}
    received |= {name: _line(result, event) for name, event in lines.items()}
    types = _joined(
        {name: _given(_without(schema, _SAID_ELSEWHERE | _BOUNDS), "version") for name, schema in sent.items()},
        {name: _given(_without(schema, _SAID_ELSEWHERE | {"maximum"}), "event") for name, schema in received.items()},
    )
    return types | {name: types[name] | {"customBasePath": base} for name, base in _BASES.items()}


def module(folder: Path) -> str:
    """Return the text of the module with the types of the schemas in a folder.

    Raises:
        ValueError: two documents describe different types of the same name.
    """
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions(folder)}
    text = generate(
        json.dumps(document),
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        base_class="natgauge.agreement.stream.AgreementPart",
        skip_root_model=True,
        collapse_root_models=True,
        enum_field_as_literal=LiteralType.All,
        strict_nullable=True,
        use_generic_container_types=True,
        use_tuple_for_closed_arrays=True,
        use_non_positive_negative_number_constrained_types=True,
        use_schema_description=True,
        use_field_description=True,
        use_single_line_docstring=True,
        use_double_quotes=True,
        disable_timestamp=True,
        formatters=[Formatter.BUILTIN],
        custom_file_header=_HEADER,
    )
    if not isinstance(text, str):
        raise TypeError(f"{OUTPUT}: the types of one document became several modules")
    return text


def write(root: Path) -> Path:
    """Write the module below the root of the repository, if it changes; returns its path.

    Raises:
        ValueError: two documents describe different types of the same name.
    """
    path, text = root / OUTPUT, module(root / "trial")
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def _line(document: Schema, event: str) -> Schema:
    """Return the schema of the lines of one event."""
    line: Schema
    (line,) = (line for line in document["oneOf"] if line["properties"]["event"]["const"] == event)
    return line


def _joined(*parts: Mapping[str, Schema]) -> dict[str, Schema]:
    joined: dict[str, Schema] = {}
    for name, document in (pair for part in parts for pair in part.items()):
        schema = {key: value for key, value in document.items() if key not in _AROUND}
        if joined.setdefault(name, schema) != schema:
            raise ValueError(f"trial: {name} names two different types; give one of them another name in the engine")
    return joined


def _without(schema: Any, keywords: set[str]) -> Any:
    """Return a schema without these keywords, at any depth; names of properties are no keywords."""
    if isinstance(schema, list):
        return [_without(one, keywords) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in keywords}
    properties = {name: _without(one, keywords) for name, one in kept.pop("properties", {}).items()}
    return {key: _without(value, keywords) for key, value in kept.items()} | (
        {"properties": properties} if properties else {}
    )


def _given(schema: Schema, constant: str) -> Schema:
    """Return the schema with a default for this constant, where it has one."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if constant not in properties:
        return schema
    given = properties | {constant: properties[constant] | {"default": properties[constant]["const"]}}
    return schema | {"properties": given, "required": [name for name in required if name != constant]}


if __name__ == "__main__":
    print(write(ROOT))
