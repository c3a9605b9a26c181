# SPDX-License-Identifier: Apache-2.0
"""What a measurement requests of the engine, as its results folder has it."""

from __future__ import annotations

import math

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.simulated import Gateway

N = 1000


def trials_of(metric: str, **others: object) -> Measured:
    truth = Gateway(establishes=3e5, forwards=3e5, refused={"insert_failed": 2})
    return simulated_lab.measure(metric, truth, connections=N, seed=42, **others)  # type: ignore[arg-type] # as a user


@pytest.mark.parametrize(
    ("directions", "sending"), [("both", {"initiator", "responder"}), ("up", {"initiator"}), ("down", {"responder"})]
)
def test_rates_and_seconds_become_whole_frames_of_each_direction_and_a_silent_one_is_left_out(
    directions: str, sending: set[str]
) -> None:
    found = trials_of("throughput", directions=directions, connection_rate=1e5, trial_seconds=2.0)
    for trial in found.trials:
        streams = {name: trial["request"]["phase2"].get(name) for name in ("initiator", "responder")}
        streams = {name: stream for name, stream in streams.items() if stream}
        planned = trial["plan"]["phase2"]
        assert {name: stream["frames"] for name, stream in streams.items()} == {
            name: math.floor(planned["seconds"] * planned[f"{name}_rate"] + 1e-6) for name in sending
        }
        assert set(trial["result"]["phase2"]) == sending
    assert 2.0 in found.plans("phase2.seconds")


def test_every_trial_has_its_own_mark_the_same_seed_an_emptied_table_and_what_the_device_refused() -> None:
    found = trials_of("connection-rate", grace_seconds=0.25)
    requests = [trial["request"] for trial in found.trials]
    assert len({request["mark"] for request in requests}) == len(requests) > 5
    assert {(request["seed"], request["connections"]) for request in requests} == {(42, N)}
    assert {request["phase1"]["grace_ms"] for request in requests} == {250}
    assert found.commands.count("empty") >= len(requests)
    assert {(trial["device_count_before"], trial["device_faults"]["insert_failed"]) for trial in found.trials} == {
        (0, 2)
    }
    assert {trial["device_count_after"] for trial in found.trials if trial["verdict"] == "PASS"} == {N}
    failed = [trial for trial in found.trials if trial["verdict"] == "FAIL"]
    assert failed
    for trial in failed:
        counts = trial["result"]["phase1"]
        assert counts["received_frames"] < counts["offered_frames"]
        assert f"{counts['offered_frames'] - counts['received_frames']:,}" in trial["reason"].replace("_", ",")


def test_tagged_frames_are_those_from_a_minute_on() -> None:
    asked = {"way": "rfc8219", "loads": "100%", "trial_seconds": 120.0, "connection_rate": 1e5, "throughput_rate": 1e5}
    (trial,) = trials_of("latency", **asked).trials
    assert trial["request"]["delay_samples"] == {"from_ms": 60_000, "frames": 500}
