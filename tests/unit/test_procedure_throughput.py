# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7) against simulated gateways of known truth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.counted import change_counts, change_trial
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import TrialOutcome, TrialPlan
from natgauge.one_trial import Trial
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.measure.phase1 import SAFE_SHARE
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.throughput import PROCEDURE, ThroughputSettings
from natgauge.words import Verdict

N = 10_000


def measure(gateway: Gateway, **others: Any) -> MeasurementResult:
    return PROCEDURE.measure(
        gateway, ThroughputSettings(connections=N, placement=gateway.placement, **{"repeat": 1, **others})
    )


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_unequal_directions_have_their_share_of_the_frames(search: str) -> None:
    """The Responder sends four fifths; its direction fails at 500,000 frames/s, so the mean is 312,500."""
    gateway = Gateway(forwards=5e5)
    result = measure(gateway, down_share=0.8, search=search)
    assert result.summary.median == pytest.approx(312_500, rel=0.011)
    figures = {name: one.median for name, one in result.figures.items()}
    assert figures["frames_per_second_from_responder"] == pytest.approx(1.6 * result.summary.median)
    assert figures["frames_per_second_from_initiator"] == pytest.approx(0.4 * result.summary.median)
    assert figures["frames_per_second_total"] == 2 * result.summary.median
    for plan in gateway.plans:
        if plan.phase2 is not None:
            assert plan.phase2.responder_rate == pytest.approx(4 * plan.phase2.initiator_rate)
    assert any("0.8 of the frames from the Responder" in note.text for note in result.notes)


@pytest.mark.parametrize("directions", ["up", "down"])
def test_a_share_of_one_direction_is_refused(directions: Any) -> None:
    with pytest.raises(UsageError, match=f"down share: with directions {directions} one side sends all frames"):
        ThroughputSettings(connections=100, placement="isolated", directions=directions, down_share=0.8)


@given(st.floats(1e3, 7e6), st.sampled_from(["both", "up", "down"]))
@settings(max_examples=60)
def test_a_hard_cliff_is_found_within_the_error(cliff: float, directions: str) -> None:
    result = measure(Gateway(forwards=cliff), directions=directions, connection_rate=1e5, trial_seconds=10.0)
    one = result.measurements[0]
    assert one.upper is not None
    assert one.value <= cliff < one.upper
    assert one.upper - one.value <= 0.01 * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"


def test_the_answer_passed_a_trial_of_full_length() -> None:
    result = measure(Gateway(forwards=300_000), trial_seconds=60.0)
    one = result.measurements[0]
    full = [a for a in one.attempts if not a.short and a.load == one.value]
    assert full
    assert all(a.outcome.verdict is Verdict.PASS for a in full)
    assert any(a.short for a in one.attempts)


def test_probes_are_short_and_all_other_trials_have_the_length_asked_for() -> None:
    gateway = Gateway(forwards=300_000)
    measure(gateway, trial_seconds=30.0, connection_rate=1e5)
    assert {plan.phase2.seconds for plan in gateway.plans if plan.phase2} == {3.0, 30.0}


@pytest.mark.parametrize(
    ("directions", "up", "down"), [("both", True, True), ("up", True, False), ("down", False, True)]
)
def test_directions(directions: str, up: bool, down: bool) -> None:  # noqa: FBT001 - a table of cases
    gateway = Gateway(forwards=300_000)
    result = measure(gateway, directions=directions, connection_rate=1e5)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert (plan.phase2.initiator_rate > 0, plan.phase2.responder_rate > 0) == (up, down)
        assert not (up and down) or plan.phase2.initiator_rate == plan.phase2.responder_rate
    each = result.summary.median
    assert result.figures["frames_per_second_each_direction"].median == each
    assert result.figures["frames_per_second_total"].median == each * (up + down)


def test_both_directions_share_the_testers_highest_rate() -> None:
    assert measure(Gateway(forwards=1e9, ceiling=4e6), connection_rate=1e5).summary.median == 2e6
    assert measure(Gateway(forwards=1e9, ceiling=4e6), connection_rate=1e5, directions="up").summary.median == 4e6


def test_phase_1_runs_at_a_safe_share_of_the_connection_rate_given() -> None:
    gateway = Gateway(establishes=200_000, forwards=300_000)
    result = measure(gateway, connection_rate=200_000.0)
    assert {plan.phase1_rate for plan in gateway.plans} == {200_000 * SAFE_SHARE}
    assert any("phase 1 at 100000 connections/s, 0.5 of" in note.text for note in result.notes)


def test_without_a_connection_rate_it_is_measured_first() -> None:
    gateway = Gateway(establishes=200_000, forwards=300_000)
    events: list[Event] = []
    PROCEDURE.measure(gateway, ThroughputSettings(connections=N, placement="isolated", repeat=2), events.append)
    metrics = list(dict.fromkeys(event.metric for event in events))
    assert metrics == ["connection-rate", "throughput"]
    phase1 = {plan.phase1_rate for plan in gateway.plans if plan.phase2}
    assert len(phase1) == 1
    assert 0.9 * SAFE_SHARE * 200_000 <= phase1.pop() <= SAFE_SHARE * 200_000


def test_a_phase_1_that_was_too_fast_gets_slower_and_counts_for_nothing() -> None:
    """The connection rate given is four times too high: the first two trials say nothing about phase 2."""
    gateway = Gateway(establishes=100_000, forwards=300_000)
    result = measure(gateway, connection_rate=800_000.0)
    assert [plan.phase1_rate for plan in gateway.plans[:4]] == [400_000, 200_000, 100_000, 100_000]
    assert result.trials["INVALID"] == 2
    assert result.summary.median == pytest.approx(300_000, rel=0.01)
    assert result.limited_by == "device"


def test_a_table_too_small_is_told_and_no_rate_is_claimed() -> None:
    for rate in (None, 1e5):
        result = measure(Gateway(table_size=N // 2), connection_rate=rate)
        assert (result.summary.median, result.limited_by) == (0, "table")
        assert any("phase 1 could not establish the connections" in note.text for note in result.notes)


def test_a_phase_1_that_never_works_is_no_rate_of_0() -> None:
    """Nothing is known of phase 2, so its rate is not 0."""
    gateway = Gateway(establishes=10.0)
    with pytest.raises(BrokenError, match=r"no rate of phase 2 could be judged: phase 1: .* a lower --connection-rate"):
        measure(gateway, connection_rate=800_000.0)
    assert len(gateway.plans) == 5


class Losing(Gateway):
    """It loses one frame of phase 1 in five trials in a row, and none before or after."""

    __slots__ = ()

    def _trial(self, plan: TrialPlan) -> Trial:
        found = super()._trial(plan)
        if not 16 <= len(self.plans) <= 20:
            return found
        return change_trial(
            found,
            phase1=change_counts(found.phase1, received=found.phase1.received_frames - 1),
            stored=found.stored - 1,
        )


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_a_phase_1_that_fails_for_a_while_leaves_the_other_repetitions_their_rate(search: str) -> None:
    result = measure(Losing(forwards=300_000), connection_rate=400_000.0, repeat=3, search=search)
    assert result.summary.minimum == pytest.approx(300_000, rel=0.02)
    assert any(note.word == "ended early" for note in result.notes)


@pytest.mark.parametrize("seed", range(5))
def test_a_disturbed_host_still_gets_a_stable_answer(seed: int) -> None:
    gateway = Gateway(forwards=300_000, disturbed=0.4, seed=seed)
    result = measure(gateway, connection_rate=1e5, repeat=3, invalid_repeats=50)
    assert result.summary.maximum - result.summary.minimum <= 0.012 * result.summary.median
    assert any("were disturbed" in note.text for note in result.notes)


@pytest.mark.parametrize("seed", range(5))
def test_repetitions_on_a_noisy_device_stay_together(seed: int) -> None:
    result = measure(Gateway(forwards=300_000, noise=0.03, seed=seed), connection_rate=1e5, repeat=10)
    assert result.summary.median == pytest.approx(300_000, rel=0.06)
    assert result.summary.minimum >= 0.85 * result.summary.median


def test_lateness_is_the_cliff_in_shared_placement() -> None:
    gateway = Gateway(forwards=300_000, placement="shared")
    result = measure(gateway)
    assert result.summary.median == pytest.approx(300_000, rel=0.011)
    assert all(counts.lost == 0 for outcome in gateway.outcomes for counts in outcome.phase2.values())


def test_overshooting_costs_at_most_twice_the_devices_rate() -> None:
    """In `shared` placement a trial at k times the device's rate takes k times as long: probes only double."""
    gateway = Gateway(forwards=300_000, placement="shared", ceiling=16e6)
    measure(gateway, connection_rate=1e5)
    assert max(plan.phase2.initiator_rate for plan in gateway.plans if plan.phase2) < 2 * 300_000


def test_a_non_monotonic_device_gets_an_answer_that_passed() -> None:
    gateway = Gateway(passes=lambda rate: not 200_000 < rate < 250_000 and rate < 400_000)
    one = measure(gateway, connection_rate=1e5).measurements[0]
    assert gateway.passes is not None
    assert gateway.passes(one.value)
    assert one.upper is not None
    assert not gateway.passes(one.upper)


def test_short_trials_are_noted_against_the_rfc() -> None:
    assert any("RFC 2544 section 24 requires 60 s" in note.text for note in measure(Gateway()).notes)
    assert not any("RFC 2544" in note.text for note in measure(Gateway(), trial_seconds=60.0).notes)


class _Breaking(Gateway):
    """Its third trial cannot be run at all."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run the trial or break."""
        if len(self.plans) == 2:
            raise BrokenError("the lab is gone")
        return Gateway.measure(self, plan)


def test_a_measurer_that_breaks_is_not_hidden() -> None:
    with pytest.raises(BrokenError, match="the lab is gone"):
        measure(_Breaking(), connection_rate=1e5)


class _Stumbling(Gateway):
    """Every other phase 1 fails, whatever its rate."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run the trial, with phase 1 too fast every other time."""
        self.establishes = 1e6 if len(self.plans) % 2 else plan.phase1_rate / 2
        return Gateway.measure(self, plan)


def test_only_failures_of_phase_1_in_a_row_end_the_measurement() -> None:
    result = measure(_Stumbling(forwards=300_000), connection_rate=1e6)
    assert result.trials["INVALID"] > 5
    assert result.summary.median == pytest.approx(300_000, rel=0.01)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("trial_seconds", 0, "trial seconds: 0 is outside of 0.01 to 3600 s"),
        ("trial_seconds", -1.0, "trial seconds: -1.0"),
        ("trial_seconds", math.nan, "trial seconds: nan"),
        ("trial_seconds", 3601, "trial seconds: 3601"),
        ("directions", "sideways", "directions: 'sideways' is unknown; choose one of both, up, down"),
        ("connection_rate", 0, "connection rate: 0 is not a finite number"),
        ("connection_rate", math.inf, "connection rate: inf"),
        ("connection_rate", -5.0, "connection rate: -5.0"),
        ("connections", 0, "connections: 0"),
    ],
)
def test_bad_settings_are_refused_in_one_line(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        ThroughputSettings(**{"connections": N, "placement": "shared", name: value})
    assert says in str(caught.value)


class _Unchecked(Gateway):
    """One frame in a thousand towards the Initiator has no checksum."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        outcome = super().measure(plan)
        zero = {
            who: change_counts(one, zero_checksums=one.received_frames // 1000) for who, one in outcome.phase2.items()
        }
        return replace(outcome, phase2=zero)


def test_frames_without_a_checksum_that_count_as_received_are_a_note_with_their_number() -> None:
    gateway = _Unchecked(forwards=5e5)
    result = measure(gateway, zero_checksum="accept", connection_rate=1e5)
    assert all(plan.accept_zero_checksum for plan in gateway.plans)
    assert result.parameters["zero_checksum"] == "accept"
    (note,) = [note for note in result.notes if "UDP checksum of 0" in note.text]
    outcomes = [attempt.outcome for one in result.measurements for attempt in one.attempts]
    assert note.value == sum(counts.zero_checksums or 0 for one in outcomes for counts in one.phase2.values())
    plain = Gateway(forwards=5e5)
    assert not any("UDP checksum of 0" in note.text for note in measure(plain, connection_rate=1e5).notes)
    assert not any(plan.accept_zero_checksum for plan in plain.plans)
