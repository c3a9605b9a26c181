# SPDX-License-Identifier: Apache-2.0
"""Requests for comparisons: engine and schema judge them alike; what the engine says of a round is weighed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.engine_check import ABSENT, EXAMPLE, TRIAL, changed
from tests.unit.fake_engine import CLEAN
from tests.unit.golden import Golden

from natgauge.agreement import generated
from natgauge.agreement.process import compare
from natgauge.errors import BrokenError, UsageError
from natgauge.host import programs
from natgauge.trial.rounds import fault_of

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
    command = [str(programs.find("natgauge-engine")), "--check-comparison"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode == (2 if done.stderr else 0)
    return done.stderr or None


def contestants(*trials: Any) -> Any:
    return changed(COMPARISON, ("contestants", [{"name": f"n{at}", "trial": one} for at, one in enumerate(trials)]))


def test_a_right_one_is_accepted_by_schema_engine_and_python_alike() -> None:
    assert VALIDATOR.is_valid(COMPARISON)
    assert refusal(COMPARISON) is None
    written = json.loads(generated.ComparisonRequest.model_validate(COMPARISON).to_json())
    assert VALIDATOR.is_valid(written)
    assert refusal(written) is None
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


def counts(**changes: Any) -> generated.ContestantCounts:
    """Of a contestant that forwarded 1,000 new frames and 500 of each direction."""
    stream = {name: {"made_frames": n, "received_frames": n, **CLEAN} for name, n in STREAMS.items()}
    rest = dict.fromkeys(("remapped", "damaged_unmarked", "foreign", "refused_frames"), 0)
    whole = {**stream, **rest, "name": "a", "mark": 1, "stored": 1000, "offered_frames": 2002}
    document = changed({**whole, "gateway_macs": ["", ""]}, *((key, value) for key, value in changes.items()))
    return generated.ContestantCounts.model_validate(document)


STREAMS = {"new": 1000, "initiator": 500, "responder": 500}


@pytest.mark.parametrize(
    ("change", "standing", "words"),
    [
        ({}, 1000, ""),
        ({}, None, ""),
        ({"new.received_frames": 999}, 1000, "new: 999 of 1000"),
        (
            {"responder.received_frames": 499, "responder.mistranslated": 1},
            1000,
            "499 of 500 frames came back, 1 mistr",
        ),
        ({"initiator.duplicates": 1}, 1000, "1 duplicated"),
        ({"initiator.received_frames": 498, "initiator.untagged": 2}, 1000, "2 with too few VLAN tags"),
        ({"new.fragments": 1}, 1000, "1 fragmented"),
        ({"refused_frames": 1}, 1000, "1 frame refused"),
        ({"stored": 999}, 1000, "999 of 1000 connections were learned"),
        ({"remapped": 1}, 1000, "another outside source"),
        ({}, 999, "it counts 999 connections"),
    ],
)
def test_slices_count_only_where_every_frame_came_and_came_right(
    change: Any, standing: int | None, words: str, golden: Golden
) -> None:
    said = fault_of(counts(**change), 1000, standing)
    assert (said == "") == (words == "")
    golden(said)


def engine(tmp_path: Path, script: str) -> Path:
    """A program in place of the engine."""
    program = tmp_path / "engine"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def asked() -> generated.ComparisonRequest:
    return generated.ComparisonRequest.model_validate(COMPARISON)


def test_what_the_engine_refuses_is_told_in_its_words(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(UsageError):
        compare(asked(), engine=engine(tmp_path, "echo 'cpu: 99: no such CPU' >&2; exit 2"), seconds=10)


@pytest.mark.parametrize("answer", ["", "nonsense", '{"version": 2}'])
def test_an_answer_outside_of_the_agreement_is_broken(tmp_path: Path, answer: str) -> None:
    with pytest.raises(BrokenError, match="comparison"):
        compare(asked(), engine=engine(tmp_path, f"cat > /dev/null; echo '{answer}'"), seconds=10)


def test_the_engine_is_called_to_compare(tmp_path: Path) -> None:
    program = engine(
        tmp_path, 'cat > /dev/null; [ "$1" = --compare ] || exit 3; echo "not asked to compare" >&2; exit 4'
    )
    with pytest.raises(BrokenError, match="not asked"):
        compare(asked(), engine=program, seconds=10)


def test_the_engine_has_a_session_of_its_own_so_that_its_priority_counts_in_the_whole_machine(tmp_path: Path) -> None:
    program = engine(tmp_path, 'cat > /dev/null; echo "session $(ps -o sid= -p $$) of $$" >&2; exit 4')
    with pytest.raises(BrokenError, match=r"session +(\d+) of \1$"):
        compare(asked(), engine=program, seconds=10)
