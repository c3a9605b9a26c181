# SPDX-License-Identifier: Apache-2.0
"""Bursts (RFC 9004), recovery from overload (RFC 2544 section 26.5) and reset (RFC 6201) against known truth."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import pytest
from tests.unit.counted import change_counts
from tests.unit.simulated import Gateway

from natgauge.doubts import find
from natgauge.errors import BrokenError, UsageError
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import Ability, Direction, Restart, TrialOutcome, TrialPlan
from natgauge.notes import Note
from natgauge.procedures import back_to_back, reset, system_recovery
from natgauge.procedures.back_to_back import buffer_times
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.time_budget import TIME
from natgauge.records.parameters import Parameters
from natgauge.trial.choices import make_settings
from natgauge.words import Verdict

N = 1000
TIMES = frozenset({Ability.RATE_STEP, Ability.LOSS_TIMES, Ability.RESTART_IN_TRIAL})


def measure(metric: ModuleType, gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"repeat": 1, "connection_rate": 1e5, "throughput_rate": 3e5, **others}
    settings = metric.PROCEDURE.settings(connections=N, placement=gateway.placement, **given)
    result: MeasurementResult = metric.PROCEDURE.measure(gateway, settings)
    return result


@dataclass(slots=True)
class _Buffering(Gateway):
    """Forwards at a rate and keeps what comes faster, up to so many frames of each direction."""

    buffers: int = 512

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """A burst passes while what it brings beyond the forwarding fits."""
        if plan.phase2 is None:
            return Gateway.measure(self, plan)
        rate, seconds = plan.phase2.initiator_rate, plan.phase2.seconds
        fits = max(rate - self.forwards, 0) * seconds <= self.buffers
        real, self.forwards = self.forwards, rate if fits else self.forwards
        outcome = Gateway.measure(self, plan)
        self.forwards = real
        return outcome


def test_the_longest_burst_tells_the_buffer() -> None:
    """At 1 M frames/s a device of 300 k frames/s gains 0.7 frames per frame: 512 are full after 731."""
    result = measure(back_to_back, _Buffering(forwards=3e5), burst_rate=1e6, repeat=3)
    assert result.summary.median == pytest.approx(731, rel=0.01)
    assert result.figures["corrected_buffer_seconds"].median == pytest.approx(512e-6, rel=0.01)
    assert result.figures["implied_buffer_seconds"].median == pytest.approx(731e-6, rel=0.01)
    assert all(float(one.value).is_integer() for one in result.measurements)
    assert any("RFC 9004 section 5 requires 50" in note.text for note in result.notes)


def test_the_search_begins_where_the_ring_before_the_device_is_full() -> None:
    """Seven trials went by below 100 frames, each behind a phase 1 of 100,000 connections."""
    gateway = Gateway(forwards=3e5, queue=512, ring=512)
    result = measure(back_to_back, gateway, burst_rate=1e6, profile="quick", error=SearchError(share=0.05))
    assert result.summary.median == pytest.approx(731, rel=0.05)
    assert len(gateway.plans) - 2 <= 4, "two of them confirm"
    assert min(one.load for one in result.measurements[0].attempts) >= 600


@pytest.mark.parametrize("ring", [None, 64, 16_384])
def test_a_burst_that_failed_tells_where_the_search_goes_on(ring: int | None) -> None:
    """Wherever it begins: at a ring of another size, or at one that nobody knows."""
    gateway = Gateway(forwards=3e5, queue=2048, ring=ring)
    result = measure(back_to_back, gateway, burst_rate=1e6, error=SearchError(share=0.05), confirm=False)
    assert result.summary.median == pytest.approx(2048 / 0.7, rel=0.05)
    assert len(gateway.plans) <= 12


@dataclass(slots=True)
class _Slow(Gateway):
    """Every trial takes some seconds more than its frames."""

    more_seconds: float = 0.0

    def clock(self) -> float:
        """With these."""
        return Gateway.clock(self) + self.more_seconds * len(self.plans)


@pytest.mark.parametrize("more_seconds", [0.7, 1.5, 2.5, 4.0, 6.0, 8.0])
def test_a_minute_is_enough_for_an_answer_or_a_bound(more_seconds: float) -> None:
    """One of two measurements of a gateway ended with "no result" after a minute."""
    gateway = _Slow(
        establishes=212_500, forwards=202_000, queue=512, ring=512, ceiling=4.35e6, more_seconds=more_seconds
    )
    settings = make_settings(
        back_to_back.PROCEDURE,
        {"profile": "quick"},
        connections=100_000,
        placement="isolated",
        order="permutation",
        four_tuples=100_000,
    )
    result = back_to_back.PROCEDURE.measure(gateway, settings, clock=gateway.clock)
    (one,) = result.measurements
    truth = 512 / (1 - 202_000 / (4.35e6 / 4))
    assert one.value <= truth + 1
    assert one.upper is not None or one.value > 0
    assert one.upper is None or one.upper >= truth - 1
    assert gateway.clock() <= 60 + more_seconds
    assert (one.limited_by == TIME) == ("undecided" in {doubt.word for doubt in find(result, Parameters())})


def test_a_throughput_that_the_time_left_out_corrects_nothing() -> None:
    note = "time used up: the throughput, and with it the corrected buffer time, left out: "
    gateway = _Slow(establishes=3e5, forwards=2e5, queue=512, ring=512, ceiling=4e6, more_seconds=4.0)
    settings = back_to_back.BackToBackSettings(
        connections=N, placement="isolated", repeat=1, connection_rate=1e5, most_seconds=17.0, burst_seconds=0.5
    )
    result = back_to_back.PROCEDURE.measure(gateway, settings, clock=gateway.clock)
    assert any(str(one).startswith(note) for one in result.notes) == ("corrected_buffer_seconds" not in result.figures)


def test_the_buffer_times_of_rfc_9004() -> None:
    """64-octet frames on 10 Gb/s: a burst of 26,000 lasts 1.747 ms, and 80 % of it was forwarded meanwhile."""
    implied, corrected = buffer_times(26_000, 14_880_952, 14_880_952 * 0.8)
    assert implied == pytest.approx(1.747e-3, rel=1e-3)
    assert corrected == pytest.approx(0.3494e-3, rel=1e-3)
    assert buffer_times(100, 1e6, 2e6) == (1e-4, 0)


def test_a_burst_has_exactly_its_frames() -> None:
    gateway = _Buffering(forwards=3e5)
    measure(back_to_back, gateway, burst_rate=1e6)
    for plan, outcome in zip(gateway.plans, gateway.outcomes, strict=True):
        assert plan.phase2 is not None
        assert outcome.phase2[Direction.INITIATOR].intended_frames == round(plan.phase2.seconds * 1e6)


def test_a_device_as_fast_as_the_burst_has_no_end() -> None:
    result = measure(back_to_back, Gateway(forwards=1e9), burst_rate=1e6, burst_seconds=0.1)
    assert (result.summary.median, result.limited_by) == (100_000, "tester")


def test_a_burst_slower_than_its_rate_says_nothing() -> None:
    """Seen: a burst at 63 % of its rate was called full rate, as 0.2 ms of lag are tolerated in any phase."""
    result = measure(back_to_back, _Buffering(forwards=3e5, buffers=200, sender_lag=180e-6), burst_rate=1e6)
    one = result.measurements[0]
    # 200 frames are full after 286, and such a burst is sent at 61 % of its rate.
    assert (one.value, one.limited_by, one.figures) == (0, "tester", {})
    assert one.upper is not None
    assert 286 < one.upper <= 600
    late = max(attempt.load for attempt in one.attempts if attempt.outcome.verdict is Verdict.INVALID)
    assert late < one.upper
    told = f"the burst is of less than {one.upper:.0f} frames; {late:.0f} and less could not be sent at their rate"
    assert Note("undecided", told) in one.notes
    assert not any("mean burst" in note.text or "really sent" in note.text for note in result.notes)
    assert any(
        f"bursts of {late:.0f} frames and less could not be sent at their rate" in note.text for note in result.notes
    )


def test_a_late_burst_that_lost_more_than_its_sender_waited_for_counts() -> None:
    """A device of 300,000/s forwards 54 frames in 180 us, in which it may have had nothing to do."""
    result = measure(back_to_back, _Buffering(forwards=3e5, buffers=200, sender_lag=180e-6), burst_rate=1e6)
    for attempt in result.measurements[0].attempts:
        counts = attempt.outcome.phase2[Direction.INITIATOR]
        in_time = counts.nominal_seconds >= 0.95 * counts.sending_seconds
        assert (attempt.outcome.verdict is not Verdict.INVALID) == (in_time or counts.lost > 54)


@dataclass(slots=True)
class _SlowStart(Gateway):
    """The tester sends no burst faster than so many frames/s, as it needs its core for the device's links, too."""

    reaches: float = 1e6

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Late by what it sends slower."""
        bursts = plan.phase2
        slow = 0.0 if bursts is None else bursts.seconds * max(bursts.initiator_rate / self.reaches - 1, 0.0)
        self.sender_lag = slow
        return Gateway.measure(self, plan)


@pytest.mark.parametrize("reaches", [4e6, 800_000, 500_000])
def test_bursts_run_no_faster_than_the_tester_reaches_in_this_lab(reaches: float) -> None:
    """Seen: half of what the tester does over a cable was more than it does into a lab, so no burst was on time."""
    gateway = _SlowStart(forwards=2e5, queue=512, ring=512, ceiling=4.4e6, reaches=reaches)
    result = measure(back_to_back, gateway, throughput_rate=2e5, burst_seconds=0.5, error=SearchError(share=0.05))
    sent = result.figures["sent_frames_per_second"].median
    assert sent <= min(1.1e6, reaches)
    assert sent >= min(1.1e6, 0.5 * reaches)
    assert result.summary.median == pytest.approx(512 / (1 - 2e5 / sent), rel=0.06)
    assert any("as the tester did not reach 1100000" in note.text for note in result.notes) == (reaches < 1.1e6)


def test_the_real_rate_of_a_burst_is_told_and_makes_the_buffer_time() -> None:
    result = measure(back_to_back, _Buffering(forwards=3e5, buffers=2_000, sender_lag=50e-6), burst_rate=1e6)
    frames, sent = result.summary.median, result.figures["sent_frames_per_second"].median
    assert frames == pytest.approx(2_000 / 0.7, rel=0.02)
    assert sent == pytest.approx(1e6 * frames / (frames + 50), rel=0.001)
    assert result.figures["implied_buffer_seconds"].median == pytest.approx(frames / sent)
    assert any(f"really sent at {sent:.0f} ({sent / 1e6:.1%})" in note.text for note in result.notes)


class _StandsStill(_Buffering):
    """Its core is taken away in every third trial, while its bucket fills."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Takes twice as many frames then."""
        stalled = len(self.plans) % 3 == 0
        self.buffers = 1_000 if stalled else 500
        outcome = _Buffering.measure(self, plan)
        return replace(outcome, device_stalled_seconds=0.008) if stalled else outcome


def test_a_burst_that_passes_while_the_device_stands_still_says_nothing() -> None:
    """A policer that refilled for 8 ms longer was published with 82 frames too many."""
    result = measure(back_to_back, _StandsStill(forwards=3e5), burst_rate=1e6)
    assert result.summary.median == pytest.approx(500 / 0.7, rel=0.02)
    assert result.trials["INVALID"] > 0


def test_a_tester_that_sends_no_burst_at_its_rate_has_no_answer() -> None:
    result = measure(back_to_back, Gateway(sender_lag=180e-6), burst_rate=1e6, burst_seconds=0.001)
    assert (result.summary.median, result.limited_by, result.error) == (0, "tester", None)
    assert any("up to 1000 frames at once the tester sent none in time" in note.text for note in result.notes)


@dataclass(slots=True)
class _Recovering(Gateway):
    """Loses frames for some time after an overload, and is silent for some time after a restart.

    Attributes:
        recovers: seconds for which it goes on to lose frames.
        back: seconds from the restart to the first frame, of each direction; None = none came any more.
        stalls: whether a stall may have lost frames of each trial with an overload, one after the other.
        late: seconds by which the restart itself began too late.
        leaks: frames of the Initiator that were forwarded untranslated.
    """

    recovers: float = 0.25
    back: tuple[float | None, float | None] = (1.5, 1.75)
    stalls: Iterator[bool] = field(default_factory=lambda: iter(()))
    late: float = 0.0
    leaks: int = 0
    abilities: frozenset[Ability] = TIMES

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """A trial with the times that a receiver would have seen."""
        outcome = Gateway.measure(self, plan)
        if plan.phase2 is None:
            return outcome
        if plan.restart_at_seconds is not None:
            return self._restarted(plan, plan.restart_at_seconds, outcome)
        if plan.phase2.step is None or outcome.verdict is Verdict.PASS:
            return outcome
        # The Responder's frames are lost a little less long.
        lasts = {Direction.INITIATOR: self.recovers, Direction.RESPONDER: self.recovers - 0.1}
        told = {
            direction: change_counts(one, last_lost_seconds=plan.phase2.seconds + lasts[direction])
            for direction, one in outcome.phase2.items()
            if plan.record_loss_times
        }
        excused = 5 if next(self.stalls, False) else 0
        return replace(outcome, phase2=outcome.phase2 | told, disturbed=True, excused_frames=excused)

    def _restarted(self, plan: TrialPlan, at: float, outcome: TrialOutcome) -> TrialOutcome:
        counts = {}
        for (direction, one), back in zip(outcome.phase2.items(), self.back, strict=True):
            rate = one.intended_frames / one.nominal_seconds
            # What does not come back leaves no second arrival; then the longest silence is between two frames.
            lost = one.offered_frames - round(at * rate) if back is None else round(back * rate)
            silence = (at - 0.001, at) if back is None else (at, at + back)
            leaked = self.leaks if direction is Direction.INITIATOR else 0
            counts[direction] = change_counts(
                one,
                received=one.offered_frames - lost,
                untranslated=leaked,
                longest_silence=silence if plan.record_loss_times else None,
            )
        restart = Restart(at + self.late, at + self.late + 0.125)
        return replace(outcome, phase2=counts, verdict=Verdict.FAIL, failed_phase=2, restart=restart)


def test_recovery_runs_from_the_change_to_the_last_lost_frame() -> None:
    gateway = _Recovering(forwards=3e5)
    result = measure(system_recovery, gateway)
    assert result.summary.median == pytest.approx(250)
    (plan,) = gateway.plans
    assert plan.phase2 is not None
    assert plan.phase2.initiator_rate == pytest.approx(3.3e5)
    assert plan.phase2.step is not None
    assert (plan.phase2.step.share, plan.phase2.step.seconds) == (0.5, 2.0)
    assert result.figures["recovery_ms_from_responder"].median == pytest.approx(150)
    assert (result.trials["FAIL"], result.limited_by) == (1, "device")


def test_a_device_that_stops_losing_before_the_change_recovered_at_once() -> None:
    assert measure(system_recovery, _Recovering(forwards=3e5, recovers=-0.5)).summary.median == 0


def test_an_overload_that_overloads_nothing_is_told() -> None:
    result = measure(system_recovery, _Recovering(forwards=1e6))
    assert (result.summary.median, result.limited_by) == (0, "tester")
    assert any("lost no frame" in note.text for note in result.notes)


def test_a_device_that_does_not_recover_in_time_is_told() -> None:
    result = measure(system_recovery, _Recovering(forwards=3e5, recovers=1.95))
    assert result.limited_by == "tester"
    assert any("still lost at the end" in note.text for note in result.notes)


def test_a_stall_that_may_have_lost_the_last_frame_is_tried_again() -> None:
    gateway = _Recovering(forwards=3e5, stalls=iter([True, True, False]))
    result = measure(system_recovery, gateway)
    assert (len(gateway.plans), result.limited_by) == (3, "device")
    assert any(note.text.startswith("2 trials were repeated") for note in result.notes)
    stalled = measure(system_recovery, _Recovering(forwards=3e5, stalls=itertools.cycle([True])), invalid_repeats=2)
    assert (stalled.trials["FAIL"], stalled.limited_by) == (3, "host")
    assert any("stalls lost frames of every trial" in note.text for note in stalled.notes)
    # Nothing lost after the change: there is nothing a stall could have made longer.
    quick = measure(system_recovery, _Recovering(forwards=3e5, recovers=-0.5, stalls=itertools.cycle([True])))
    assert (quick.trials["FAIL"], quick.limited_by) == (1, "device")


def test_a_disturbance_that_lost_no_frame_does_not_choose_the_best_of_several_trials() -> None:
    """A recovery of 300 ms was published as 0: trials were repeated until one was undisturbed or lost nothing."""
    gateway = _Recovering(forwards=3e5, recovers=0.3)
    result = measure(system_recovery, gateway)
    assert (len(gateway.plans), result.disturbed) == (1, 1)
    assert result.summary.median == pytest.approx(300)


def test_losses_without_their_times_are_no_recovery() -> None:
    with pytest.raises(BrokenError, match=r"\d+ frames from the Initiator were lost, .* did not record when"):
        measure(system_recovery, Gateway(forwards=3e5, abilities=TIMES))


def test_the_loss_of_a_reset_is_that_of_its_directions_own_rate() -> None:
    result = measure(reset, _Recovering(forwards=3e5), down_share=0.8)
    assert result.figures["loss_ms_from_initiator"].median == pytest.approx(1500, abs=1)
    assert result.figures["loss_ms_from_responder"].median == pytest.approx(1750, abs=1)


def test_the_two_instants_of_a_reset() -> None:
    result = measure(reset, _Recovering(forwards=3e5))
    assert result.summary.median == pytest.approx(1750)
    assert result.figures["back_after_ms_from_initiator"].median == pytest.approx(1500)
    assert result.figures["back_after_ms_from_responder"].median == pytest.approx(1750)
    assert result.figures["loss_ms_from_initiator"].median == pytest.approx(1500, abs=1)
    assert result.figures["restart_ms"].median == pytest.approx(125)
    assert not any("untranslated" in note.text for note in result.notes)


def test_the_reset_is_timed_from_when_it_really_began() -> None:
    found = measure(reset, _Recovering(forwards=3e5, late=0.25))
    figures = {name: one.median for name, one in found.figures.items()}
    assert figures["back_after_ms_from_initiator"] == pytest.approx(1250)
    assert figures["silence_ms_from_initiator"] == pytest.approx(1500)


def test_what_leaks_while_the_rules_are_gone_is_told() -> None:
    result = measure(reset, _Recovering(forwards=3e5, leaks=77))
    assert result.figures["untranslated_frames_from_initiator"].median == 77
    assert result.figures["untranslated_frames_from_responder"].median == 0
    assert any("77 frames from the Initiator left the device untranslated" in note.text for note in result.notes)


def test_a_trial_without_a_restart_is_no_reset() -> None:
    with pytest.raises(BrokenError, match="the device was not restarted in the trial"):
        measure(reset, Gateway(forwards=3e5, abilities=TIMES))


def test_a_device_that_stays_away_has_no_reset_time() -> None:
    with pytest.raises(BrokenError, match="frames from the Responder were not back 10 s after the reset"):
        measure(reset, _Recovering(forwards=3e5, back=(1.5, 9.9)))
    with pytest.raises(BrokenError, match="frames from the Responder were not back 10 s after the reset"):
        measure(reset, _Recovering(forwards=3e5, back=(1.5, None)))
    with pytest.raises(BrokenError, match="before the reset: it did not interrupt"):
        measure(reset, _Recovering(forwards=3e5, back=(-0.5, -0.5)))


@pytest.mark.parametrize(
    ("metric", "missing"),
    [
        (system_recovery, "a change of the rate in the middle of phase 2"),
        (reset, "restarting the device in the middle"),
    ],
)
def test_the_tester_must_be_able_to(metric: ModuleType, missing: str) -> None:
    gateway = Gateway()
    with pytest.raises(UsageError, match=f"this tester lacks {missing}"):
        measure(metric, gateway)
    assert not gateway.plans


@pytest.mark.parametrize(
    ("metric", "given", "says"),
    [
        (back_to_back, {"placement": "shared"}, "placement: shared has no queue before the device"),
        (back_to_back, {"down_share": 0.8}, "down share: a burst has equally many frames in each direction"),
        (back_to_back, {"burst_seconds": 31.0}, "burst seconds: 31.0 is outside of 0.001 to 30 s"),
        (back_to_back, {"burst_rate": 0.0}, "burst rate: 0.0"),
        (system_recovery, {"placement": "shared"}, "placement: shared loses nothing under overload"),
        (system_recovery, {"overload": 1.0}, "overload: 1.0 is outside of 1.01 to 10"),
        (system_recovery, {"after_seconds": 0.0}, "after seconds: 0.0"),
        (reset, {"load": 0.0}, "load: 0% is outside of 1% to 100%"),
        (reset, {"before_seconds": 12.0}, "before seconds: 12 s leave nothing of the trial's 12 s"),
    ],
)
def test_bad_settings_are_refused_in_one_line(metric: ModuleType, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        metric.PROCEDURE.settings(**{"connections": N, "placement": "isolated", **given})
    assert says in str(caught.value)
