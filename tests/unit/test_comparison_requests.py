# SPDX-License-Identifier: Apache-2.0
"""Requests for comparisons: engine and schema judge them alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.engine_check import ABSENT, EXAMPLE, TRIAL, changed, check
from tests.unit.golden import Golden

SCHEMA = json.loads((TRIAL / "comparison-1.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
ONE = changed(EXAMPLE, ("senders", {"cpus": [0]}), ("connections", 100_000), ("watch_cpus", []))
COMPARISON = {
    "version": 1,
    "seed": 1,
    "cpu": 0,
    "contestants": [{"name": "a", "trial": ONE}, {"name": "b", "trial": ONE}],
    "slices": {"frames": 512, "new": 90, "up": 100, "down": 100, "both": 0},
}


def refusal(request: Any) -> str | None:
    """What the engine says; None where it accepts it."""
    status, _, said = check(json.dumps(request), "--check-comparison")
    assert status == (2 if said else 0)
    return said or None


def contestants(*trials: Any) -> Any:
    return changed(COMPARISON, ("contestants", [{"name": f"n{at}", "trial": one} for at, one in enumerate(trials)]))


def test_a_right_one_is_accepted_by_schema_and_engine_alike() -> None:
    assert VALIDATOR.is_valid(COMPARISON)
    assert refusal(COMPARISON) is None
    assert refusal(changed(COMPARISON, ("floor", 1))) is None


@pytest.mark.parametrize(
    "wrong",
    [
        changed(COMPARISON, ("version", 2)),
        changed(COMPARISON, ("slices.frames", 0)),
        changed(COMPARISON, ("slices.lead", -1)),
        changed(COMPARISON, ("slices.up", -1)),
        changed(COMPARISON, ("slices.new", ABSENT)),
        changed(COMPARISON, ("cpu", -1)),
        changed(COMPARISON, ("floor", -1)),
        changed(COMPARISON, ("nonsense", 1)),
        contestants(),
        contestants(*[ONE] * 17),
        contestants(ONE, changed(ONE, ("connections", 0))),
        contestants(ONE, changed(ONE, ("phase1", ABSENT))),
        contestants(ONE, changed(ONE, ("frame", [64, "initiator"]))),
    ],
)
def test_wrong_ones_are_refused_by_schema_and_engine_alike(wrong: Any, golden: Golden) -> None:
    said = refusal(wrong)
    assert said is not None
    golden(said)
    assert len(said.splitlines()) == 1
    assert not VALIDATOR.is_valid(wrong)


#: By the rule's text in the schema: what the schema accepts and the engine refuses by it.
ENGINE_ALONE = {
    "too few for the blocks of new ones": changed(COMPARISON, ("slices.new", 98)),
    "must be the comparison's cpu alone": contestants(ONE, changed(ONE, ("senders.cpus", [1]))),
    "must be a contestant's position": changed(COMPARISON, ("floor", 2)),
    "slices are of plain frames: leave it out": contestants(
        ONE, changed(ONE, ("frame", {"size": 114, "side": "initiator", "query": "a"}), ("phase2.responder", ABSENT))
    ),
}


@pytest.mark.parametrize(("rule", "request_"), ENGINE_ALONE.items(), ids=list(ENGINE_ALONE))
def test_what_the_schema_cannot_say_is_named_in_it(rule: str, request_: Any) -> None:
    assert VALIDATOR.is_valid(request_)
    assert rule in (refusal(request_) or "")
    assert rule in SCHEMA["x-beyond-schema"]


def test_every_rule_of_its_own_has_been_tried() -> None:
    of_trials = json.loads((TRIAL / "request-1.schema.json").read_text())["x-beyond-schema"]
    assert SCHEMA["x-beyond-schema"] == [*of_trials, *ENGINE_ALONE]


def test_frames_that_lead_a_slice_open_connections_too(golden: Golden) -> None:
    assert refusal(changed(COMPARISON, ("slices.lead", 43))) is None
    golden(refusal(changed(COMPARISON, ("slices.lead", 44))) or "")
