# SPDX-License-Identifier: Apache-2.0
"""The agreement between engine and Python: the schemas are sound, the examples keep them, bad requests do not."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from natgauge import trials

TRIAL = Path(__file__).parents[2] / "trial"
SCHEMAS = sorted(TRIAL.glob("*.schema.json"))
EXAMPLES = sorted((TRIAL / "examples").glob("*.json"))
EXAMPLE = TRIAL / "examples" / "nat44-both-phases.json"
#: Stands for a part that is left out.
ABSENT = "(absent)"


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
        # Conditions say more of an object that is closed already.
        inner = {key: value for key, value in node.items() if key not in {"if", "then", "else"}}
        return here + [found for key, value in inner.items() for found in open_objects(value, f"{where}.{key}")]

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


def changed(request: Any, where: tuple[str, ...], value: object) -> Any:
    """A copy of the request with one part replaced, or left out."""
    request = copy.deepcopy(request)
    part = request
    for key in where[:-1]:
        part = part[key]
    part.pop(where[-1], None)
    if value != ABSENT:
        part[where[-1]] = value
    return request


def stateless() -> Any:
    """A request without phase 1 that nothing is wrong with."""
    return {**changed(load(EXAMPLE), ("phase1",), ABSENT), "stateless": True}


def refused(request: Any, says: str = "validation error", *, by_schema: bool = False) -> None:
    assert bool(list(schema("request-1.schema.json").iter_errors(request))) == by_schema
    with pytest.raises(ValueError, match=re.escape(says)):
        trials.TrialRequest.model_validate(request)


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
        (("initiator", "gateway"), {}),
        (("responder", "gateway"), {}),
        (("stateless",), True),
        (("phase1",), ABSENT),
        (("phase2", "step"), {"share": 0, "seconds": 1}),
        (("phase2", "step"), {"share": 100.5, "seconds": 1}),
        (("phase2", "step"), {"share": 0.5, "seconds": 0}),
        (("phase2", "step"), {"share": 0.5, "seconds": 3601}),
        (("phase2", "step"), {"share": 0.5}),
        (("delay_samples",), {"from_ms": -1, "frames": 500}),
        (("delay_samples",), {"from_ms": 17_000_001, "frames": 500}),
        (("delay_samples",), {"from_ms": 0, "frames": 0}),
        (("delay_samples",), {"frames": 500}),
        (("record_variation",), "yes please"),
        (("record_loss_times",), None),
        (("responder", "destination_addresses"), {"first": "198.18.0.2"}),
    ],
    ids=str,
)
def test_wrong_request_is_refused_by_schema_and_python_alike(where: tuple[str, ...], value: object) -> None:
    refused(changed(load(EXAMPLE), where, value), by_schema=True)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("phase1",), {"rate": 1000.0}),
        (("phase2",), ABSENT),
        (("stateless",), ABSENT),
        (("stateless",), False),
    ],
    ids=str,
)
def test_wrong_stateless_request_is_refused_by_schema_and_python_alike(where: tuple[str, ...], value: object) -> None:
    right = stateless()
    assert list(schema("request-1.schema.json").iter_errors(right)) == []
    trials.TrialRequest.model_validate(right)
    refused(changed(right, where, value), by_schema=True)


def test_python_refuses_what_the_schema_only_says_in_words() -> None:
    samples = {"from_ms": 0, "frames": 5}
    mapped = {"first": "198.18.0.2", "last": "198.18.0.2"}
    untimed = {**load(EXAMPLE), "record_delays": False}
    refused({**untimed, "delay_samples": samples}, "delay_samples: needs record_delays")
    refused({**untimed, "record_variation": True}, "record_variation: needs record_delays")
    timed = {**load(EXAMPLE), "record_delays": True, "delay_samples": samples}
    trials.TrialRequest.model_validate(timed)
    refused({**timed, "record_variation": True}, "record_variation: samples have no neighbours")
    refused(changed(timed, ("phase2",), ABSENT), "delay_samples: these are frames of phase 2")
    where = ("responder", "destination_addresses")
    refused(changed(load(EXAMPLE), where, mapped), "responder.destination_addresses: only a stateless trial")
    trials.TrialRequest.model_validate(changed(stateless(), where, mapped))


def test_required_fields_of_schema_and_python_agree() -> None:
    required = {name for name, field in trials.TrialRequest.model_fields.items() if field.is_required()}
    # `version`, `order` and the like have defaults in Python but are always written.
    assert required <= set(load(TRIAL / "request-1.schema.json")["required"])
    assert set(trials.TrialRequest.model_fields) == set(load(TRIAL / "request-1.schema.json")["properties"])
