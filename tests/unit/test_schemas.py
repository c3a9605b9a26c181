# SPDX-License-Identifier: Apache-2.0
"""The agreement between engine and Python: the schemas are sound, the examples keep them, bad requests do not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from natgauge import trials

TRIAL = Path(__file__).parents[2] / "trial"
SCHEMAS = sorted(TRIAL.glob("*.schema.json"))
EXAMPLES = sorted((TRIAL / "examples").glob("*.json"))


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(load(TRIAL / name))


def test_schemas_and_examples_are_there() -> None:
    assert [path.name for path in SCHEMAS] == ["request-1.schema.json", "result-1.schema.json"]
    assert EXAMPLES


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_is_a_valid_schema(path: Path) -> None:
    Draft202012Validator.check_schema(load(path))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_closes_every_object(path: Path) -> None:
    """An unknown field must be refused, so a misspelt one is never silently ignored."""

    def open_objects(node: Any, where: str) -> list[str]:
        if isinstance(node, list):
            return [found for index, item in enumerate(node) for found in open_objects(item, f"{where}[{index}]")]
        if not isinstance(node, dict):
            return []
        here = [where] if "properties" in node and node.get("additionalProperties") is not False else []
        return here + [found for key, value in node.items() for found in open_objects(value, f"{where}.{key}")]

    assert open_objects(load(path), path.name) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_keeps_the_request_schema(path: Path) -> None:
    assert [error.message for error in schema("request-1.schema.json").iter_errors(load(path))] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_python_writes_the_example_as_the_schema_wants_it(path: Path) -> None:
    """The typed request reads an example and writes something the schema still accepts, with nothing changed."""
    written = json.loads(trials.TrialRequest.model_validate(load(path)).to_json())
    assert [error.message for error in schema("request-1.schema.json").iter_errors(written)] == []
    for key, value in load(path).items():
        assert written[key] == value, key


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("version",), 2),
        (("connections",), 0),
        (("connections",), 2**31 + 1),
        (("order",), "random"),
        (("mark",), 0),
        (("frame", "size"), 63),
        (("frame", "size"), 3413),
        (("phase1", "rate"), 0),
        (("phase1", "rate"), -1.0),
        (("initiator", "source_ports", "first"), 0),
        (("initiator", "destination_ports", "last"), 65536),
        (("initiator", "interface"), "sixteen-letters!"),
        (("responder", "family"), "ipx"),
        (("senders", "cpus"), []),
        (("senders", "batch"), 129),
        (("unheard-of",), 1),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else str(value),
)
def test_wrong_request_is_refused_by_schema_and_python_alike(where: tuple[str, ...], value: object) -> None:
    request = copy.deepcopy(load(TRIAL / "examples" / "nat44-both-phases.json"))
    part = request
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    assert list(schema("request-1.schema.json").iter_errors(request))
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's error is a ValueError
        trials.TrialRequest.model_validate(request)


def test_required_fields_of_schema_and_python_agree() -> None:
    required = {name for name, field in trials.TrialRequest.model_fields.items() if field.is_required()}
    # `version`, `order` and the like have defaults in Python but are always written.
    assert required <= set(load(TRIAL / "request-1.schema.json")["required"])
    assert set(trials.TrialRequest.model_fields) == set(load(TRIAL / "request-1.schema.json")["properties"])
