# SPDX-License-Identifier: Apache-2.0
"""How many frames leave together, and from when on a sender's gap is a stall."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_trial, make_counts, make_outcome

from natgauge.agreement.trial import LEAST_STALL_SECONDS
from natgauge.trial.requests import CATCH_UP_PERCENT, PREPARING_CATCH_UP_PERCENT, learned, pacing, watched_bound
from natgauge.trials import LONGEST_PHASE_SECONDS, Direction, Phase2Plan, RateStep
from natgauge.words import Placement, Verdict

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "trial" / "request-1.schema.json").read_text())


def opening(rate: float) -> PlanOfTrial:
    """Phase 1 alone."""
    return PlanOfTrial(connections=100_000, phase1_rate=rate)


def sending(up: float, down: float, **others: Any) -> PlanOfTrial:
    """A phase 2 behind a slow phase 1."""
    return replace(opening(1000.0), phase2=Phase2Plan(up, down, 2.0), **others)


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (sending(1e5, 1e5), 0.005),
        (replace(sending(1e5, 1e5, record_delays=True)), 0.002),
        (replace(opening(100_000 / 3.0), record_delays=True), 0.003),
        (replace(opening(1e6), record_delays=True), 0.002),
        (replace(opening(100_000 / 120.0), record_delays=True, delays_from_seconds=60.0), 0.005),
    ],
)
def test_of_timed_frames_a_stall_is_what_a_percentile_does_not_bear_within_2_to_5_ms(
    plan: PlanOfTrial, seconds: float
) -> None:
    assert watched_bound(plan) == pytest.approx(seconds)


def outcome(nominal: float, settled_lag: float, frames: int = 1000) -> OneTrial:
    counts = make_counts(frames, frames, frames, nominal_seconds=nominal, settled_lag_seconds=settled_lag)
    return make_outcome(Verdict.FAIL, "late", counts)


@pytest.mark.parametrize(
    ("plan", "batch"),
    [
        (opening(2_000_000.0), 64),
        (opening(640_000.0), 64),
        # 20 us a frame, which 64 frames make 1.3 ms of: five need 0.1 ms.
        (opening(50_000.0), 5),
        (opening(100.0), 1),
        (sending(300_000.0, 300_000.0), 60),
        (sending(0.0, 50_000.0), 5),
        (sending(2e6, 2e6, single_frames=True), 1),
    ],
)
def test_in_shared_placement_a_batch_is_what_falls_due_in_a_tenth_of_a_stall(plan: PlanOfTrial, batch: int) -> None:
    assert pacing(plan, "shared").batch == batch


def test_only_where_queues_are_a_sender_makes_up_for_a_stall_slowly() -> None:
    shared = pacing(sending(1e5, 1e5), "shared")
    assert (shared.phase1_catch_up_percent, shared.phase2_catch_up_percent) == (None, None)
    opened = pacing(opening(1e5), "isolated", 512)
    assert opened.phase1_catch_up_percent == CATCH_UP_PERCENT
    prepared = pacing(sending(1e5, 1e5), "external")
    assert prepared.phase2_catch_up_percent == CATCH_UP_PERCENT
    assert prepared.phase1_catch_up_percent == PREPARING_CATCH_UP_PERCENT


def test_an_overloaded_device_is_given_no_more_than_it_did_before() -> None:
    plan = opening(5e6)
    assert pacing(plan, "shared").batch == 64
    known = learned(None, outcome(0.0002, 0.0198))
    assert known == pytest.approx(50_000)
    assert pacing(plan, "shared", known_rate=known).batch == 5


def test_of_a_device_that_keeps_up_nothing_is_learned_and_a_disturbance_is_outdone() -> None:
    assert learned(None, outcome(1.0, 0.4)) is None
    slow = learned(None, outcome(1.0, 9.0))
    assert slow == pytest.approx(100)
    assert learned(slow, outcome(1.0, 3.0)) == pytest.approx(250)
    assert learned(250.0, outcome(1.0, 9.0)) == 250


def test_both_directions_are_one_sender_s_work() -> None:
    counts = make_counts(500, 500, 500, nominal_seconds=0.1, settled_lag_seconds=0.9)
    both = make_outcome(Verdict.FAIL, "late", counts, phase2={Direction.INITIATOR: counts, Direction.RESPONDER: counts})
    assert learned(None, change_trial(both, plan=sending(5000.0, 5000.0))) == pytest.approx(1000)


@pytest.mark.parametrize(("rate", "seconds"), [(1e6, 0.001), (10_000.0, 0.001), (2000.0, 0.005), (10.0, 0.01)])
def test_a_device_that_needs_long_for_one_frame_is_no_stall(rate: float, seconds: float) -> None:
    assert pacing(opening(rate), "shared").stall_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("plan", "ring", "seconds"),
    [
        # 900 frames in 0.9 ms, and room for 448 beside a batch.
        (opening(1e6), 512, 448e-6),
        (opening(100_000.0), 512, 0.001),
        (opening(1e6), 16_384, 0.001),
        (opening(1e6), 64, 32e-6),
        (opening(1e6), 1, 10e-6),
        (opening(1e6), None, 0.001),
        (sending(1e6, 0.0), 512, 448e-6),
        # Each direction has its own ring.
        (sending(1e6, 1e6), 512, 448e-6),
        (replace(sending(1e6, 0.0), phase2=Phase2Plan(1e6, 0.0, 1.0, step=RateStep(2.0, 1.0))), 512, 224e-6),
        (replace(sending(100.0, 0.0), phase1_rate=1e6), 512, 448e-6),
        (replace(sending(100.0, 0.0), phase1_rate=1e6, stateless=True), 512, 0.001),
    ],
)
def test_a_gap_that_fills_the_device_s_ring_is_a_stall(plan: PlanOfTrial, ring: int | None, seconds: float) -> None:
    found = pacing(plan, "isolated", ring)
    assert found.batch == 64
    assert found.stall_seconds == pytest.approx(seconds)


@pytest.mark.parametrize("rate", [1e-9, 0.5, 1.0, 1e6])
@pytest.mark.parametrize("placement", ["shared", "isolated"])
def test_every_rate_gives_a_stall_that_the_engine_takes(rate: float, placement: Placement) -> None:
    """A search begins at half a connection per second where there is one connection."""
    bounds = SCHEMA["$defs"]["Senders"]["properties"]["stall_ns"]
    assert bounds["minimum"] == round(LEAST_STALL_SECONDS * 1e9)
    assert bounds["maximum"] == round(LONGEST_PHASE_SECONDS * 1e9)
    stall_ns = round(pacing(opening(rate), placement, 1).stall_seconds * 1e9)
    assert bounds["minimum"] <= stall_ns <= bounds["maximum"]
