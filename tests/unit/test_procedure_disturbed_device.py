# SPDX-License-Identifier: Apache-2.0
"""Bursts (RFC 9004), recovery from overload (RFC 2544 section 26.5) and reset (RFC 6201) against known truth."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import change_counts, change_trial, make_counts, make_cpu, make_stall
from tests.unit.simulated import Gateway

from natgauge.agreement.generated import LostAfterStep
from natgauge.analysis.contrast import spans
from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent, number
from natgauge.notes import Note
from natgauge.procedures import get
from natgauge.procedures.back_to_back import buffer_notes, buffer_times
from natgauge.procedures.reset import Outage, ResetKind, surviving_share
from natgauge.reports import answers
from natgauge.trials import Direction, Restart

N = 1000
#: A core that stood still.
STILL = (make_cpu("watched", 1, 0.004, cpu=1),)


#: The device's core stood still for 8 ms while bursts were sent.
STALLED_IN_PHASE_2 = STILL[0].model_copy(update={"longest_stalls": [make_stall("phase2", 0.008)]})


def measured(metric: str, truth: Gateway | None = None, /, **others: Any) -> Measured:
    given = {"connections": N, "connection_rate": 1e5, "throughput_rate": 3e5, **others}
    return simulated_lab.measure(metric, truth, **given)


def measure(metric: str, truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured(metric, truth, **others).result


def buffering(buffers: int = 512, **truth: Any) -> Gateway:
    """Forwards 300,000 frames/s and keeps what comes faster, up to so many frames of each direction."""

    def becomes(gateway: Gateway, plan: Any) -> None:
        """Let a burst pass while what it brings beyond the forwarding fits."""
        gateway.forwards = 3e5
        if plan.phase2 is not None:
            rate, seconds = plan.phase2.initiator_rate, plan.phase2.seconds
            gateway.forwards = rate if max(rate - 3e5, 0) * seconds <= buffers else 3e5

    return Gateway(forwards=3e5, becomes=becomes, **truth)


def test_the_longest_burst_tells_the_buffer() -> None:
    """At 1 M frames/s a device of 300 k frames/s gains 0.7 frames per frame: 512 are full after 731."""
    result = measure("back-to-back", buffering(), burst_rate=1e6, repeat=3)
    assert result.median == pytest.approx(731, rel=0.01)
    assert result.figures["corrected_buffer_seconds"].median == pytest.approx(512e-6, rel=0.01)
    assert result.figures["implied_buffer_seconds"].median == pytest.approx(731e-6, rel=0.01)
    assert all(float(one.value).is_integer() for one in result.repetitions)
    assert any("RFC 9004 section 5 requires 50" in note.text for note in result.notes)


def test_the_search_begins_where_the_ring_before_the_device_is_full() -> None:
    """Seven trials went by below 100 frames, each behind a phase 1 of 100,000 connections."""
    gateway = Gateway(forwards=3e5, queue=512, ring=512)
    result = measure("back-to-back", gateway, burst_rate=1e6, profile="quick", error="5%")
    assert result.median == pytest.approx(731, rel=0.05)
    assert len(gateway.plans) - 2 <= 4, "two of them confirm"
    assert min(one.load for one in result.repetitions[0].attempts) >= 600


@pytest.mark.parametrize("ring", [None, 64, 16_384])
def test_a_burst_that_failed_tells_where_the_search_goes_on(ring: int | None) -> None:
    """Wherever it begins: at a ring of another size, or at one that nobody knows."""
    gateway = Gateway(forwards=3e5, queue=2048, ring=ring)
    result = measure("back-to-back", gateway, burst_rate=1e6, error="5%", confirm=False)
    assert result.median == pytest.approx(2048 / 0.7, rel=0.05)
    assert len(gateway.plans) <= 12


@pytest.mark.parametrize("more_seconds", [0.7, 1.5, 2.5, 4.0, 6.0, 8.0])
def test_a_minute_is_enough_for_an_answer_or_a_bound(more_seconds: float) -> None:
    """One of two measurements of a gateway ended with "no result" after a minute."""
    truth = Gateway(
        establishes=212_500, forwards=202_000, queue=512, ring=512, ceiling=4.35e6, more_seconds=more_seconds
    )
    found = simulated_lab.measure("back-to-back", truth, connections=100_000, repeat="auto", profile="quick")
    low, high = found.bounds
    most = 512 / (1 - 202_000 / (4.35e6 / 4))
    assert low <= most + 1
    assert high is not None or low > 0
    assert high is None or high >= most - 1
    assert ("undecided" in found.words()) == (found.result.repetitions[0].limited_by == "time")


def test_a_throughput_that_the_time_left_out_corrects_nothing() -> None:
    note = "time used up: the throughput, and with it the corrected buffer time, left out: "
    truth = Gateway(establishes=3e5, forwards=2e5, queue=512, ring=512, ceiling=4e6, more_seconds=4.0)
    found = measured("back-to-back", truth, throughput_rate=None, most_seconds=17.0, burst_seconds=0.5)
    assert any(str(one).startswith(note) for one in found.result.notes) == (
        "corrected_buffer_seconds" not in found.result.figures
    )


def test_the_buffer_times_of_rfc_9004() -> None:
    """64-octet frames on 10 Gb/s: a burst of 26,000 lasts 1.747 ms, and 80 % of it was forwarded meanwhile."""
    implied, corrected = buffer_times(26_000, 14_880_952, 14_880_952 * 0.8)
    assert implied == pytest.approx(1.747e-3, rel=1e-3)
    assert corrected == pytest.approx(0.3494e-3, rel=1e-3)
    assert buffer_times(100, 1e6, 2e6) == (1e-4, 0)


def test_a_corrected_buffer_time_has_both_ends_of_the_throughput() -> None:
    """Near the rate of the burst 2 % of the throughput are a factor of 50: 0.4 us was printed as 20 us."""
    procedure = get("back-to-back")
    truth = Gateway(establishes=3e5, forwards=2.99e5, queue=512, ring=512, ceiling=4e6)
    chosen = procedure.settings(connections=N, placement="isolated", burst_rate=3e5, burst_seconds=1.0, repeat=2)
    found = procedure.measure(truth, chosen)
    (one,) = found.first[-1].measurements
    assert one.upper is not None
    assert one.value <= 2.99e5 < one.upper
    implied, most, least = (
        found.figures[f"{name}_seconds"].median
        for name in ("implied_buffer", "corrected_buffer", "corrected_buffer_least")
    )
    assert most == pytest.approx(implied * (1 - one.value / 3e5))
    assert least == pytest.approx(implied * max(0, 1 - one.upper / 3e5))
    assert least < most


@pytest.mark.parametrize(
    ("upper", "said"),
    [
        (999_600.0, "corrected 0.000400 to 0.0200 ms"),
        (None, "corrected at most 0.0200 ms"),
        (980_000.0, "corrected 0.02 ms"),
    ],
)
def test_a_note_has_the_corrected_buffer_time_as_the_range_that_the_throughput_leaves(
    upper: float | None, said: str
) -> None:
    (note,) = buffer_notes([1000], 1e6, 980_000, upper, longest=1000)
    assert note.text.endswith(said)


def test_the_buffer_times_of_a_burst_that_may_be_longer_have_no_upper_end() -> None:
    (bounded,) = buffer_notes([1000], 1e6, 980_000, 999_600, longest=1100)
    assert "corrected 0.000400 to 0.022" in bounded.text
    (least,) = buffer_notes([1000], 1e6, 980_000, 990_000, longest=math.inf)
    assert "frames: implied buffer time at least 1" in least.text
    assert " to " not in least.text
    assert "corrected at least 0.0" in least.text
    (unknown,) = buffer_notes([1000], 1e6, 980_000, None, longest=math.inf)
    assert "corrected" not in unknown.text


def test_a_burst_has_exactly_its_frames() -> None:
    found = measured("back-to-back", buffering(), burst_rate=1e6)
    for trial in found.trials:
        frames = trial["request"]["phase2"]["initiator"]["frames"]
        assert frames == round(trial["plan"]["phase2"]["seconds"] * 1e6)
        assert trial["result"]["phase2"]["initiator"]["intended_frames"] == frames


def test_a_device_as_fast_as_the_burst_has_no_end() -> None:
    result = measure("back-to-back", Gateway(forwards=1e9), burst_rate=1e6, burst_seconds=0.1)
    assert (result.median, result.limited_by) == (100_000, "tester")


def test_a_burst_slower_than_its_rate_says_nothing() -> None:
    """Seen: a burst at 63 % of its rate was called full rate, as 0.2 ms of lag are tolerated in any phase."""
    result = measure("back-to-back", buffering(buffers=200, sender_lag=180e-6), burst_rate=1e6)
    one = result.repetitions[0]
    # 200 frames are full after 286, and such a burst is sent at 61 % of its rate.
    assert (one.value, one.limited_by, one.figures) == (0, "tester", {})
    assert one.upper is not None
    assert 286 < one.upper <= 600
    late = max(attempt.load for attempt in one.attempts if attempt.outcome.verdict == "INVALID")
    assert late < one.upper
    told = f"the burst is of less than {one.upper:.0f} frames; {late:.0f} and less could not be sent at their rate"
    assert told in [note.text for note in one.notes if note.word == "undecided"]
    assert not any("mean burst" in note.text or "really sent" in note.text for note in result.notes)
    assert any(
        f"bursts of {late:.0f} frames and less could not be sent at their rate" in note.text for note in result.notes
    )


def test_a_late_burst_that_lost_more_than_its_sender_waited_for_counts() -> None:
    """A device of 300,000/s forwards 54 frames in 180 us, in which it may have had nothing to do."""
    result = measure("back-to-back", buffering(buffers=200, sender_lag=180e-6), burst_rate=1e6)
    for attempt in result.repetitions[0].attempts:
        counts = attempt.outcome.phase2["initiator"]
        in_time = counts.nominal_seconds >= 0.95 * counts.sending_seconds
        assert (attempt.outcome.verdict != "INVALID") == (in_time or counts.lost > 54)


def reaching(most: float) -> Gateway:
    """The tester sends no burst faster than so many frames/s, as it needs its core for the device's links, too."""

    def becomes(gateway: Gateway, plan: Any) -> None:
        bursts = plan.phase2
        slow = 0.0 if bursts is None else bursts.seconds * max(bursts.initiator_rate / most - 1, 0.0)
        gateway.sender_lag = slow

    return Gateway(forwards=2e5, queue=512, ring=512, ceiling=4.4e6, becomes=becomes)


@pytest.mark.parametrize("reaches", [4e6, 800_000, 500_000])
def test_bursts_run_no_faster_than_the_tester_reaches_in_this_lab(reaches: float) -> None:
    """Seen: half of what the tester does over a cable was more than it does into a lab, so no burst was on time."""
    gateway = reaching(reaches)
    result = measure("back-to-back", gateway, throughput_rate=2e5, burst_seconds=0.5, error="5%")
    sent = result.figures["sent_frames_per_second"].median
    assert sent <= min(1.1e6, reaches)
    assert sent >= min(1.1e6, 0.5 * reaches)
    assert result.median == pytest.approx(512 / (1 - 2e5 / sent), rel=0.06)
    assert any("as the tester did not reach 1.1 M" in note.text for note in result.notes) == (reaches < 1.1e6)


def test_the_real_rate_of_a_burst_is_told_and_makes_the_buffer_time() -> None:
    result = measure("back-to-back", buffering(buffers=2_000, sender_lag=50e-6), burst_rate=1e6)
    frames, sent = result.median, result.figures["sent_frames_per_second"].median
    assert frames == pytest.approx(2_000 / 0.7, rel=0.02)
    assert sent == pytest.approx(1e6 * frames / (frames + 50), rel=0.001)
    assert result.figures["implied_buffer_seconds"].median == pytest.approx(frames / sent)
    assert any(f"really sent at {number(sent)} ({in_percent(sent / 1e6)})" in note.text for note in result.notes)


def stands_still(gateway: Gateway, plan: Any) -> None:
    """Take twice as many frames in every third trial, in which the device's core is away while its bucket fills."""
    stalled = len(gateway.plans) % 3 == 0
    gateway.cpus = (STALLED_IN_PHASE_2,) if stalled else ()
    rate, seconds = plan.phase2.initiator_rate, plan.phase2.seconds
    gateway.forwards = rate if max(rate - 3e5, 0) * seconds <= (1_000 if stalled else 500) else 3e5


def test_a_burst_that_passes_while_the_device_stands_still_says_nothing() -> None:
    """A policer that refilled for 8 ms longer was published with 82 frames too many."""
    result = measure("back-to-back", Gateway(becomes=stands_still), burst_rate=1e6)
    assert result.median == pytest.approx(500 / 0.7, rel=0.02)
    assert result.trials["INVALID"] > 0


def test_a_tester_that_sends_no_burst_at_its_rate_has_no_answer() -> None:
    result = measure("back-to-back", Gateway(sender_lag=180e-6), burst_rate=1e6, burst_seconds=0.001)
    assert (result.median, result.limited_by, result.error) == (0, "tester", None)
    assert any("up to 1,000 frames at once the tester sent none in time" in note.text for note in result.notes)


def recovering(recovers: float = 0.25, stalls: Any = (), **truth: Any) -> Gateway:
    """Loses frames for some seconds after an overload; `stalls` says whether stalls may have lost frames of a trial."""
    stalled = iter(stalls)

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase2 is None or trial.plan.phase2.step is None:
            return trial
        excused = {"lost_in_stalls": 5} if next(stalled, False) else {"lost_in_stalls": 0}
        # The Responder's frames are lost a little less long.
        lasts = dict(zip(trial.phase2, (recovers, recovers - 0.1), strict=True))
        phase2 = {
            who: change_counts(one, last_lost_seconds=trial.plan.phase2.seconds + lasts[who], **excused)
            if one.lost
            else one
            for who, one in trial.phase2.items()
        }
        return change_trial(trial, phase2=phase2, cpus=STILL)

    return Gateway(**{"forwards": 3e5, "alters": alters, **truth})


#: Seconds of phase 2 before a restart.
AT = 2.0


def restarting(*back: float | None, leaks: int = 0, **truth: Any) -> Gateway:
    """Is silent for some time after a restart.

    Args:
        back: seconds from the restart to the first frame, of each direction; None = none came any more.
        leaks: frames of the Initiator that were forwarded untranslated.
    """

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase2 is None:
            return trial
        phase2, leaked = {}, leaks
        for (who, one), seconds in zip(trial.phase2.items(), back or (1.5, 1.75), strict=True):
            rate = one.intended_frames / one.nominal_seconds
            # What does not come back leaves no second arrival; then the longest silence is between two frames.
            lost = one.offered_frames - round(AT * rate) if seconds is None else max(round(seconds * rate), 0)
            silence = (AT - 0.001, AT) if seconds is None else (AT, AT + seconds)
            received = one.offered_frames - lost
            phase2[who] = change_counts(one, received=received, untranslated=leaked, longest_silence=silence)
            leaked = 0
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters, **truth)


def reset(truth: Gateway, **others: Any) -> Any:
    return measure("reset", truth, before_seconds=AT, **others)


def test_recovery_runs_from_the_change_to_the_last_lost_frame() -> None:
    gateway = recovering()
    result = measure("system-recovery", gateway)
    assert result.median == pytest.approx(250)
    (plan,) = gateway.plans
    assert plan.phase2 is not None
    assert plan.phase2.initiator_rate == pytest.approx(3.3e5)
    assert plan.phase2.step is not None
    assert (plan.phase2.step.share, plan.phase2.step.seconds) == (0.5, 2.0)
    assert result.figures["recovery_ms_from_responder"].median == pytest.approx(150)
    assert (result.trials["FAIL"], result.limited_by) == (1, "device")


@pytest.mark.parametrize("metric", ["system-recovery", "reset", "latency", "pdv", "ipdv", "first-packet-delay"])
def test_a_time_at_a_rate_that_was_not_sent_counts_as_no_time_though_the_device_lost_frames(metric: str) -> None:
    """An overload of 63 % of the throughput was told as one of 110 %, and a delay at 171,000 as one at 300,000."""
    lossy: Any = {"forwards": 2.9e5, "establishes": 2.9e5, "sender_lag": 1.5}
    truths = {"system-recovery": recovering(sender_lag=1.5), "reset": restarting(sender_lag=1.5)}
    chosen: Any = {"connections": N, "connection_rate": 3e5, "invalid_repeats": 2}
    if metric != "first-packet-delay":
        chosen["throughput_rate"] = 3e5
    with pytest.raises(BrokenError, match=r"3 trials were INVALID, .* behind the schedule at the end"):
        simulated_lab.measure(metric, truths.get(metric, Gateway(**lossy)), **chosen)


def test_a_sender_that_was_late_in_some_trials_leaves_those_that_were_sent_in_time() -> None:
    def becomes(gateway: Gateway, _plan: Any) -> None:
        gateway.sender_lag = 1.5 if len(gateway.plans) < 2 else 0.0

    result = measure("system-recovery", recovering(becomes=becomes))
    assert (result.median, result.trials["INVALID"]) == (pytest.approx(250), 2)


def test_a_reset_in_the_senders_own_context_has_no_time_where_the_sender_ended_late() -> None:
    with pytest.raises(BrokenError, match="so lost frames cannot be compared with the restart"):
        reset(restarting(sender_lag=1.5, placement="shared"), placement="shared", invalid_repeats=1)


def test_a_tester_that_catches_up_after_the_overload_sent_less_of_it() -> None:
    """At the end of the trial it is on time again."""

    def late(gateway: Gateway, seconds: float) -> Gateway:
        alters = gateway.alters
        assert alters is not None

        def both(number: int, trial: Any) -> Any:
            each = alters(number, trial).phase2.items()
            return change_trial(trial, phase2={who: change_counts(one, worst_lag_seconds=seconds) for who, one in each})

        gateway.alters = both
        return gateway

    assert measure("system-recovery", late(recovering(), 0.05)).median == pytest.approx(250)
    with pytest.raises(BrokenError, match="the tester was 200 ms late at worst"):
        measure("system-recovery", late(recovering(), 0.2), invalid_repeats=1)


def test_a_device_that_stops_losing_before_the_change_recovered_at_once() -> None:
    assert measure("system-recovery", recovering(recovers=-0.5)).median == 0


def test_an_overload_that_loses_nothing_has_no_recovery() -> None:
    """A device that was never overloaded was published with 0 ms, and ranked best."""
    with pytest.raises(BrokenError, match="lost no frame, so there was nothing to recover from; give more overload"):
        measure("system-recovery", recovering(forwards=1e6))
    with pytest.raises(BrokenError, match="nothing to recover from; the tester sends no faster"):
        measure("system-recovery", recovering(forwards=1e6, ceiling=6.2e5))


def test_a_device_that_does_not_recover_in_time_has_no_recovery() -> None:
    """A lower bound of 1950 ms was printed as at most 1950 ms, and met a demand of 2000 ms."""
    with pytest.raises(BrokenError, match=r"still lost 1\.95 s after the overload, .* give more after seconds"):
        measure("system-recovery", recovering(recovers=1.95))
    with pytest.raises(BrokenError, match="after the overload, maybe by stalls, at the end"):
        measure("system-recovery", recovering(recovers=1.95, stalls=itertools.cycle([True])), invalid_repeats=2)


def test_a_stall_that_may_have_lost_the_last_frame_is_tried_again() -> None:
    gateway = recovering(stalls=iter([True, True, False]))
    result = measure("system-recovery", gateway)
    assert (len(gateway.plans), result.limited_by) == (3, "device")
    assert any(note.text.startswith("2 trials were repeated") for note in result.notes)
    stalled = measure("system-recovery", recovering(stalls=itertools.cycle([True])), invalid_repeats=2)
    assert (stalled.trials["FAIL"], stalled.limited_by) == (3, "host")
    assert any("stalls lost frames of every trial" in note.text for note in stalled.notes)
    # Nothing lost after the change: there is nothing a stall could have made longer.
    quick = measure("system-recovery", recovering(recovers=-0.5, stalls=itertools.cycle([True])))
    assert (quick.trials["FAIL"], quick.limited_by) == (1, "device")


def test_a_disturbance_that_lost_no_frame_does_not_choose_the_best_of_several_trials() -> None:
    """A recovery of 300 ms was published as 0: trials were repeated until one was undisturbed or lost nothing."""
    gateway = recovering(recovers=0.3)
    result = measure("system-recovery", gateway)
    assert (len(gateway.plans), result.disturbed) == (1, 1)
    assert result.median == pytest.approx(300)


def losing_after(*lost: float, before: int = 0) -> Gateway:
    """Loses frames at seconds after the change of the rate, and `before` more until the first of them."""

    def alters(_number: int, trial: Any) -> Any:
        times = [round((trial.plan.phase2.seconds + second) * 1e9) for second in lost]
        after = LostAfterStep(frames=before + len(lost), latest_ns=times[-9:])
        streams = trial.phase2.items()
        phase2 = {who: change_counts(one, last_lost_ns=times[-1], lost_after_step=after) for who, one in streams}
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters)


@pytest.mark.parametrize(
    ("truth", "recovered", "highest"),
    [
        # Of one frame in 2 s, chance explains each place but the first 20 ms.
        (losing_after(1.7), 0, 1700),
        (losing_after(0.019), 19, None),
        # A queue that empties for 250 ms, and one frame or two behind it.
        (losing_after(0.25, before=2000), 250, None),
        (losing_after(0.25, 1.7, before=2000), 250, 1700),
        (losing_after(0.249, 0.25, 0.9, 1.7, before=5), 250, 1700),
        # It may go on as it began.
        (losing_after(0.25, 0.4, before=2), 400, None),
        # One in a while, all over the second part.
        (losing_after(0.3, 0.9, 1.7), 0, 1700),
        # To the end: nobody knows how long it goes on.
        (losing_after(0.25, 1.95, before=2000), 250, math.inf),
    ],
)
def test_a_frame_that_is_lost_alone_is_not_the_end_of_a_recovery(
    truth: Gateway, recovered: float, highest: float | None
) -> None:
    """One stray lost frame was told as a recovery of 1,700 ms."""
    found = measured("system-recovery", truth)
    assert found.median == pytest.approx(recovered)
    figures = {name: figure.median for name, figure in found.result.figures.items()}
    assert figures["lost_after_change_from_initiator"] >= 1
    assert ("recovery_ms_lowest" in figures) == (highest is not None)
    (span,) = spans(found.result)
    assert span.lower == pytest.approx(recovered)
    assert span.upper == pytest.approx(recovered if highest is None else highest)


def test_losses_without_their_times_are_no_recovery() -> None:
    with pytest.raises(BrokenError, match=r"\d+ frames from inside were lost, .* did not record when"):
        measure("system-recovery", Gateway(forwards=3e5))


def test_the_loss_of_a_reset_is_that_of_its_directions_own_rate() -> None:
    result = reset(restarting(), down_share=0.8)
    assert result.figures["loss_ms_from_initiator"].median == pytest.approx(1500, abs=1)
    assert result.figures["loss_ms_from_responder"].median == pytest.approx(1750, abs=1)


def test_the_two_instants_of_a_reset() -> None:
    result = reset(restarting())
    assert result.median == pytest.approx(1750)
    assert result.figures["back_after_ms_from_initiator"].median == pytest.approx(1500)
    assert result.figures["back_after_ms_from_responder"].median == pytest.approx(1750)
    assert result.figures["loss_ms_from_initiator"].median == pytest.approx(1500, abs=1)
    assert result.figures["restart_ms"].median == pytest.approx(125)
    assert not any("untranslated" in note.text for note in result.notes)


def test_the_reset_is_timed_from_when_it_really_began() -> None:
    found = reset(restarting(restart_late=0.25))
    figures = {name: one.median for name, one in found.figures.items()}
    assert figures["back_after_ms_from_initiator"] == pytest.approx(1250)
    assert figures["silence_ms_from_initiator"] == pytest.approx(1500)


def test_the_time_without_power_is_no_time_of_the_device(tmp_path: Path) -> None:
    command = f"echo off >> {tmp_path / 'outlet'}"
    gateway = restarting(17.0, 17.25)
    power = {"reset_kind": "power", "reset_command": command, "power_off_seconds": 15.0, "trial_seconds": 60.0}
    found = reset(gateway, **power)
    assert found.median == pytest.approx(2250)
    assert found.figures["loss_ms_from_initiator"].median == pytest.approx(2000)
    assert found.figures["back_after_ms_from_responder"].median == pytest.approx(2250)
    assert (tmp_path / "outlet").read_text() == "off\n"
    assert not [note for note in found.notes if note.word == "settings" and "power" in note.text]
    short = reset(restarting(), **{**power, "power_off_seconds": 1.0})
    assert [note for note in short.notes if note.word == "settings" and "power was off for 1 s" in note.text]
    with pytest.raises(BrokenError, match=r"the silence from inside lasted 1\.5 s, less than the power was off"):
        reset(restarting(), **power)


@pytest.mark.parametrize(
    ("kind", "section"), [("process", "4.2.2"), ("system", "4.2.1"), ("hardware", "4.1"), ("power", "4.3")]
)
def test_each_kind_of_reset_is_named_and_a_command_does_what_natgauge_cannot(kind: ResetKind, section: str) -> None:
    found = reset(restarting(), reset_kind=kind, reset_command="true")
    assert any(f"section {section}" in note.text for note in found.notes if note.word == "method")


def failing_over(share: float, silence: float = 0.1, *, again: bool = True) -> Gateway:
    """Is silent while another gateway takes over, which knows a share of the connections; `again` in a second trial."""

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase2 is None or (len(trial.phase2) == 1 and not again):
            return trial
        phase2 = {}
        for who, one in trial.phase2.items():
            seconds = one.nominal_seconds
            kept = share if len(trial.phase2) == 1 else 1.0
            gone = (AT, AT + silence) if kept else (AT - 0.002, AT - 0.001)
            received = round(one.offered_frames / seconds * (AT + kept * (seconds - AT - silence)))
            last = round((AT + silence if kept == 1 else seconds) * 1e9)
            phase2[who] = change_counts(one, received=received, longest_silence=gone, last_lost_ns=last)
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters)


def test_a_failover_with_unequal_shares_has_its_downloads_alone() -> None:
    """The second trial, in which the Responder alone sends, was refused after the first."""
    found = reset(failing_over(0.5), reset_kind="failover", reset_command="true", down_share=0.8)
    assert found.figures["surviving_percent"].median == pytest.approx(50, abs=1)


@pytest.mark.parametrize("share", [0.0, 0.375, 1.0])
def test_the_connections_that_survive_a_failover_are_those_whose_downloads_go_on(share: float) -> None:
    found = reset(failing_over(share), reset_kind="failover", reset_command="true")
    assert found.median == pytest.approx(100)
    assert found.figures["surviving_percent"].median == pytest.approx(share * 100, abs=0.01)
    assert f"; {share * 100:g} % of the connections survive." in answers.one(found).text


def stalled(silence: tuple[float, float], *, lost_seconds: float, last_lost: float) -> Gateway:
    """Loses frames for a while after a restart; the longest silence is another one."""

    def alters(_number: int, trial: Any) -> Any:
        phase2 = {}
        for who, one in trial.phase2.items():
            received = round(one.offered_frames * (1 - lost_seconds / one.nominal_seconds))
            phase2[who] = change_counts(
                one, received=received, longest_silence=silence, last_lost_ns=round(last_lost * 1e9)
            )
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters)


def test_a_silence_whose_frames_were_late_and_not_lost_is_the_testers() -> None:
    found = reset(stalled((11.9, 11.95), lost_seconds=0.012, last_lost=AT + 0.02))
    assert found.median == pytest.approx(12)
    assert found.figures["back_after_ms_from_initiator"].median == pytest.approx(20)
    assert reset(stalled((1.0, 1.012), lost_seconds=0.012, last_lost=AT + 0.02)).median == pytest.approx(12)


@pytest.mark.parametrize(("share", "silence"), [(0.5, (AT + 3.0, AT + 3.05)), (1.0, (11.0, 11.1)), (0.0, (1.0, 1.5))])
def test_a_stall_of_the_tester_is_no_failover(share: float, silence: tuple[float, float]) -> None:
    outcome = measured_failover(share, silence)
    first = Outage(0.005, 0.01, lost=True)
    assert surviving_share(outcome, 12.0, 1000.0, first) == pytest.approx(share, abs=0.01)


def measured_failover(share: float, silence: tuple[float, float]) -> Any:
    """A trial of 12 s at 1000 frames/s with a failover of 20 ms, in which the longest silence is another one."""
    received = round(1000 * (AT + 0.01 + share * (12 - AT - 0.01)))
    last = AT + 0.01 if share == 1 else 11.99
    counts = make_counts(12_000, 12_000, received, longest_silence=silence, last_lost_ns=round(last * 1e9))
    plan = SimpleNamespace(connections=N)
    return SimpleNamespace(phase2={Direction.RESPONDER: counts}, restart=Restart(AT, AT + 0.02), plan=plan)


def failed_over(received: float, last: float | None, silence: tuple[float, float], restart: Restart) -> Any:
    """A trial of 12 s at 1000 frames/s, of which so many seconds of frames arrived."""
    nanoseconds = None if last is None else round(last * 1e9)
    counts = make_counts(12_000, 12_000, round(1000 * received), longest_silence=silence, last_lost_ns=nanoseconds)
    plan = SimpleNamespace(connections=N)
    return SimpleNamespace(phase2={Direction.RESPONDER: counts}, restart=restart, plan=plan)


@pytest.mark.parametrize(
    ("share", "begin", "silence"),
    [(0.0, 5.0, (1.0, 1.002)), (0.0, 5.4, (3.0, 3.002)), (0.25, 5.0, (5.0, 5.8)), (0.25, 5.4, (5.4, 6.1))],
)
def test_an_outage_that_begins_after_its_command_has_ended_is_where_the_first_trial_had_it(
    share: float, begin: float, silence: tuple[float, float]
) -> None:
    """Forwarding stopped 2.5 s after the command had ended, and 26 % of no connections survived."""
    end = silence[1] if share else 12.0
    outcome = failed_over(begin + share * (12 - end), 11.99, silence, Restart(2.0, 2.5))
    assert surviving_share(outcome, 12.0, 1000.0, Outage(3.0, 0.8, lost=True)) == pytest.approx(share, abs=0.001)


def test_connections_that_survive_an_outage_early_in_a_long_command_are_counted() -> None:
    """Fewer frames arrived than are sent until the command ends, and 0 % survived."""
    outcome = failed_over(2.0 + 0.3 * 9.5, 11.99, (2.0, 2.5), Restart(2.0, 7.0))
    assert surviving_share(outcome, 12.0, 1000.0, Outage(0.0, 0.5, lost=True)) == pytest.approx(0.3, abs=0.001)


@pytest.mark.parametrize("last", [None, 1.5])
def test_a_command_that_interrupts_nothing_when_it_runs_again_leaves_the_share_unknown(last: float | None) -> None:
    """A command that moves the traffic to one gateway only let 100 % of the connections survive."""
    outcome = failed_over(12.0, last, (1.0, 1.002), Restart(2.0, 2.5))
    found = surviving_share(outcome, 12.0, 1000.0, Outage(0.0, 0.5, lost=True))
    assert isinstance(found, Note)
    assert "interrupted nothing when it ran again" in found.text
    assert surviving_share(outcome, 12.0, 1000.0, Outage(0.0, 0.001, lost=False)) == 1.0


def test_an_outage_that_nothing_shows_after_its_command_leaves_the_share_unknown() -> None:
    outcome = failed_over(8.0, 11.99, (10.0, 10.9), Restart(2.0, 2.5))
    found = surviving_share(outcome, 12.0, 1000.0, Outage(3.0, 0.8, lost=True))
    assert isinstance(found, Note)
    assert "began some time after the reset command had ended" in found.text


def test_losses_whose_times_are_not_known_are_no_survival() -> None:
    """Where some frames were not made, the engine does not know when the others were lost."""
    outcome = failed_over(2.0, None, (2.0, 2.01), Restart(2.0, 2.02))
    assert surviving_share(outcome, 12.0, 1000.0, Outage(0.0, 0.01, lost=True)) == pytest.approx(0, abs=0.01)


def test_a_failover_without_a_known_share_still_has_its_outage() -> None:
    found = reset(failing_over(1.0, again=False), reset_kind="failover", reset_command="true")
    assert found.median == pytest.approx(100)
    assert "surviving_percent" not in found.figures
    assert any("interrupted nothing when it ran again" in note.text for note in found.notes)


def test_what_leaks_while_the_rules_are_gone_is_told() -> None:
    result = reset(restarting(leaks=77))
    assert result.figures["untranslated_frames_from_initiator"].median == 77
    assert result.figures["untranslated_frames_from_responder"].median == 0
    assert any("77 frames from inside left the device untranslated" in note.text for note in result.notes)


def test_a_device_that_stays_away_has_no_reset_time() -> None:
    with pytest.raises(BrokenError, match="frames from outside were not back 10 s after the reset"):
        reset(restarting(1.5, 9.9))
    with pytest.raises(BrokenError, match="frames from outside were not back 10 s after the reset"):
        reset(restarting(1.5, None))
    with pytest.raises(BrokenError, match="no frame was lost after the reset, so it did not interrupt"):
        reset(restarting(-0.5, -0.5))
    with pytest.raises(BrokenError, match="before the reset: it did not interrupt"):
        reset(altered(lambda one: {"received": one.offered_frames - 1, "longest_silence": (1.0, 1.001)}))


def altered(change: Any, **truth: Any) -> Gateway:
    """Changes the counts of each direction of a phase 2, as `change` returns for them."""

    def alters(_number: int, trial: Any) -> Any:
        return change_trial(trial, phase2={who: change_counts(one, **change(one)) for who, one in trial.phase2.items()})

    return Gateway(forwards=3e5, alters=alters, **truth)


@pytest.mark.parametrize("silence", [(5.0, 5.012), (11.99, 12.0)])
def test_a_reset_that_lost_no_frame_is_refused_with_the_gap_between_two_frames(
    silence: tuple[float, float],
) -> None:
    """The command `true` was told as a restart of 11.8 ms, or frames were "not back": a sender woke up late."""
    with pytest.raises(BrokenError, match=r"no frame was lost after the reset, .* less than the 1 ms between two"):
        reset(altered(lambda _one: {"longest_silence": silence}), throughput_rate=2000.0)


def scattered(lost: int, at: float, *, silence: int = 2) -> Gateway:
    """Loses some frames one by one, the last one at a second of phase 2, where the longest silence is of some gaps."""

    def change(one: Any) -> dict[str, Any]:
        gap = one.nominal_seconds / one.intended_frames
        received = one.offered_frames - lost
        return {
            "received": received,
            "longest_silence": (at - gap, at + (silence - 1) * gap),
            "last_lost_ns": round(at * 1e9),
        }

    return altered(change)


@pytest.mark.parametrize(
    ("lost", "silence", "throughput", "most"),
    [
        # One frame, seconds after a command that does nothing.
        (1, 2, 3e5, "0.0134"),
        # The tester was late for longer than such a frame.
        (1, 200, 3e5, "0.0134"),
        # One in twenty, of which chance loses two in a row.
        (60, 3, 200.0, "30"),
    ],
)
def test_frames_lost_one_by_one_are_no_outage_of_a_command_that_does_nothing(
    lost: int, silence: int, throughput: float, most: str
) -> None:
    """One lost frame was told as a device that forwards nothing for 0.0067 ms."""
    with pytest.raises(BrokenError, match=rf"no outage was seen .* at most {re.escape(most)} ms"):
        reset(scattered(lost, 7.0, silence=silence), throughput_rate=throughput)


def test_a_run_of_lost_frames_far_from_the_command_is_an_outage_from_a_chance_of_1_percent_down() -> None:
    """Of 1,200 frames, one in twenty lost: chance makes a run of three in 15 % of trials, and one of four in 0.75 %."""
    with pytest.raises(BrokenError, match="no outage was seen"):
        reset(scattered(60, 7.0, silence=4), throughput_rate=200.0)
    assert reset(scattered(60, 7.0, silence=5), throughput_rate=200.0).median == pytest.approx(50)


@pytest.mark.parametrize(("lost", "silence", "known"), [(60, 3, True), (1, 200, False)])
def test_where_the_longest_silence_is_the_testers_nothing_is_said_of_frames_in_a_row(
    lost: int,
    silence: int,
    known: bool,  # noqa: FBT001
) -> None:
    with pytest.raises(BrokenError, match="no outage was seen") as raised:
        reset(scattered(lost, 7.0, silence=silence), throughput_rate=200.0 if known else 3e5)
    assert ("in a row" in str(raised.value)) == known


@pytest.mark.parametrize(("begin", "seconds", "is_late"), [(AT + 0.2, 0.008, True), (AT + 0.02, 0.008, False)])
def test_a_short_outage_after_the_command_is_one_and_has_its_distance(
    begin: float,
    seconds: float,
    is_late: bool,  # noqa: FBT001
) -> None:
    """8000 frames lost in one silence, 35 ms after a command, were told as not in a row, and no outage."""
    found = reset(stalled((begin, begin + seconds), lost_seconds=seconds, last_lost=begin + seconds))
    assert (found.limited_by, found.median) == ("device", pytest.approx(1000 * seconds))
    assert any("ms after the command, and may have another cause" in note.text for note in found.notes) == is_late


#: 200 ms of silence, then connections came back one by one; a stall of the tester lasted longer, and lost nothing.
HIDDEN: Final = stalled((1.0, 1.5), lost_seconds=1.2, last_lost=4.2)


def test_an_outage_that_a_longer_silence_of_the_tester_hides_is_repeated() -> None:
    """A million lost frames were told as no outage."""
    trials = itertools.chain([HIDDEN], itertools.repeat(restarting(0.2, 0.2)))

    def alters(number: int, trial: Any) -> Any:
        if trial.plan.phase2 is None:
            return trial
        alters = next(trials).alters
        assert alters is not None
        return alters(number, trial)

    found = reset(Gateway(forwards=3e5, alters=alters))
    assert (found.limited_by, found.median) == ("device", pytest.approx(200))
    assert any(note.text.startswith("1 trials were repeated, because stalls") for note in found.notes)


def test_an_outage_that_is_hidden_in_every_trial_is_limited_by_the_host() -> None:
    found = reset(HIDDEN)
    assert (found.limited_by, found.median) == ("host", pytest.approx(1200))
    assert found.figures["back_after_ms_from_initiator"].median == pytest.approx(2200)


def test_a_frame_lost_at_the_reset_is_its_outage() -> None:
    found = reset(scattered(1, AT + 0.005))
    assert (found.limited_by, found.median) == ("device", pytest.approx(2000 / 150_000, rel=0.01))


def test_an_outage_that_begins_long_after_the_command_is_one() -> None:
    found = reset(stalled((5.0, 5.5), lost_seconds=0.5, last_lost=5.5))
    assert found.limited_by == "device"
    assert found.median == pytest.approx(500)
    with pytest.raises(BrokenError, match="were not back 10 s after the reset"):
        reset(stalled((1.0, 1.001), lost_seconds=5.0, last_lost=12.0))


def test_a_takeover_beside_a_lost_frame_lasts_at_most_as_long_as_the_longest_silence() -> None:
    options = {"before_seconds": AT, "reset_kind": "failover", "reset_command": "true"}
    found = measured("reset", scattered(1, 7.0, silence=300), **options)
    assert found.limited_by == "host"
    assert found.median == pytest.approx(2, rel=0.01)
    assert found.notes("another gateway took over within the longest silence, or the command moved nothing")


def beside_stalls(outage: float, *stalls: float, at: float = 7.0, cores: int = 1) -> Gateway:
    """Is silent for some seconds from 2.01 s on; in each trial the device's core stalls for 12 ms.

    Args:
        stalls: seconds of frames that the stall loses in each trial; below 0 there is no stall. The last one goes on.
        at: second at which the stall begins.
        cores: number of them that it stalls at once.
    """
    left = list(stalls)
    stall = make_stall("phase2", 0.012).model_copy(
        update={"from_ns": round(at * 1e9), "to_ns": round((at + 0.012) * 1e9)}
    )

    def alters(_number: int, trial: Any) -> Any:
        if trial.plan.phase2 is None:
            return trial
        in_stall = left.pop(0) if len(left) > 1 else left[0]
        stalled, phase2 = in_stall >= 0, {}
        for who, one in trial.phase2.items():
            rate = one.intended_frames / one.nominal_seconds
            gone = round(outage * rate) + round(max(in_stall, 0) * rate)
            ends = {"last_lost_ns": round((at + 0.012 if in_stall > 0 else AT + 0.01 + outage) * 1e9)} if gone else {}
            is_longer = stalled and outage < 0.012
            silence = (at, at + 0.012) if is_longer else (AT + 0.01, AT + 0.01 + max(outage, 0.001))
            phase2[who] = change_counts(
                one,
                received=one.offered_frames - gone,
                longest_silence=silence,
                lost_in_stalls=round(max(in_stall, 0) * rate),
                **ends,
            )
        core = make_cpu("watched", 1, 0.012, cpu=1).model_copy(update={"longest_stalls": [stall]})
        return change_trial(trial, phase2=phase2, cpus=(core,) * cores if stalled else ())

    return Gateway(forwards=3e5, alters=alters)


@pytest.mark.parametrize("in_stall", [0.012, 0.006, 0.001])
def test_a_reset_whose_outage_a_stall_explains_is_repeated(in_stall: float) -> None:
    """An outage of 3 ms was told as one of 12 ms, that of a stall of the host 5 s later."""
    truth = beside_stalls(0.003, in_stall, in_stall, -1)
    found = measured("reset", truth, before_seconds=AT)
    assert found.median == pytest.approx(3, abs=0.01)
    assert found.limited_by == "device"
    assert found.notes("2 trials were repeated, because stalls")
    assert len(truth.plans) == 3


def test_a_reset_whose_outage_stalls_explain_in_every_trial_is_limited_by_the_host() -> None:
    found = measured("reset", beside_stalls(0.003, 0.012), before_seconds=AT)
    assert found.limited_by == "host"
    assert found.notes("stalls may have lost the frames of the outage, or hid it, in every trial")


@pytest.mark.parametrize("begins", [2.05, 3.0])
def test_a_stall_during_a_restart_or_in_a_long_outage_repeats_nothing(begins: float) -> None:
    """The restart itself keeps the device's cores busy; and a long outage is none of a short stall."""
    truth = beside_stalls(1.5, 0.0, at=begins)
    found = measured("reset", truth, before_seconds=AT)
    assert (found.limited_by, len(truth.plans)) == ("device", 1)
    assert found.median == pytest.approx(1500, abs=1)


def test_a_pause_of_the_host_that_stalls_several_cores_counts_once() -> None:
    """25 ms of an outage of 1.5 s counted as 200 ms, so each trial was repeated, and the host was the limit."""
    truth = beside_stalls(1.5, 0.0, at=3.0, cores=8)
    found = measured("reset", truth, before_seconds=AT)
    assert (found.limited_by, len(truth.plans)) == ("device", 1)


def test_a_stall_that_lost_nothing_repeats_nothing() -> None:
    truth = beside_stalls(0.003, 0.0)
    assert measured("reset", truth, before_seconds=AT).median == pytest.approx(3, abs=0.01)
    assert len(truth.plans) == 1


def test_frames_that_a_stall_lost_are_no_outage_of_a_command_that_does_nothing() -> None:
    """The command `true` and a stall that lost frames were told as an outage."""
    with pytest.raises(BrokenError, match="no frame was lost after the reset"):
        measured("reset", beside_stalls(0.0, 0.001, -1), before_seconds=AT)


def test_a_takeover_without_loss_beside_a_stall_that_lost_frames_is_limited_by_the_host() -> None:
    options = {"before_seconds": AT, "reset_kind": "failover", "reset_command": "true"}
    assert measured("reset", beside_stalls(0.0, 0.001), **options).limited_by == "host"


def test_the_notes_say_how_exactly_a_time_is_known() -> None:
    found = reset(restarting(), throughput_rate=200.0)
    assert any("so times are known to 10 ms" in note.text for note in found.notes if note.word == "method")


def test_a_silence_that_begins_after_the_last_lost_frame_is_the_testers() -> None:
    """Seen: 128 ms from a stall 8.7 s after the reset, whose own frames were lost long before."""
    found = reset(stalled((10.7, 10.828), lost_seconds=0.157, last_lost=AT + 0.2))
    assert found.median == pytest.approx(157, abs=0.1)
    assert found.figures["back_after_ms_from_responder"].median == pytest.approx(200)


def test_frames_lost_before_the_command_alone_are_no_interruption() -> None:
    with pytest.raises(BrokenError, match="no frame was lost after the reset"):
        reset(stalled((5.0, 5.05), lost_seconds=0.001, last_lost=1.5))


def test_frames_that_a_late_sender_lost_in_an_outage_were_due_before_the_command() -> None:
    """The silence of a direction was told as 0 ms: its lost frames were due before the command, and sent after it."""

    def outage(due: float, late: float) -> Gateway:
        return altered(
            lambda one: {
                "received": one.offered_frames - round(0.106 * one.intended_frames / one.nominal_seconds),
                "longest_silence": (AT, AT + 0.106),
                "last_lost_seconds": due,
                "worst_lag_seconds": late,
            }
        )

    found = reset(outage(AT - 0.2, 0.306))
    assert (found.limited_by, found.median) == ("device", pytest.approx(106))
    with pytest.raises(BrokenError, match="no frame was lost after the reset"):
        reset(outage(AT - 0.2, 0.1))


def test_an_outage_that_is_placed_by_its_lost_frames_alone_is_not_known_behind_a_late_sender() -> None:
    """A silence of the tester hides it. It is repeated, and at last a bound with the time by which it was late."""

    def hidden(late: float) -> Gateway:
        return altered(
            lambda one: {
                "received": one.offered_frames - round(0.012 * one.intended_frames / one.nominal_seconds),
                "longest_silence": (11.9, 11.95),
                "last_lost_seconds": AT + 0.02,
                "worst_lag_seconds": late,
            }
        )

    for late, found in ((0.0, ("device", 12)), (0.03, ("host", 42))):
        result = reset(hidden(late), invalid_repeats=1)
        assert (result.limited_by, round(result.median)) == found


def test_a_direction_that_lost_nothing_was_not_interrupted() -> None:
    def alters(_number: int, trial: Any) -> Any:
        initiator, responder = trial.phase2.items()
        lost = round(0.5 * initiator[1].intended_frames / initiator[1].nominal_seconds)
        interrupted = change_counts(
            initiator[1],
            received=initiator[1].offered_frames - lost,
            longest_silence=(AT, AT + 0.5),
            last_lost_ns=round((AT + 0.5) * 1e9),
        )
        late = change_counts(responder[1], longest_silence=(9.0, 9.7))
        return change_trial(trial, phase2={initiator[0]: interrupted, responder[0]: late})

    found = reset(Gateway(forwards=3e5, alters=alters))
    assert found.median == pytest.approx(500)
    assert found.figures["silence_ms_from_responder"].median == 0


def test_a_frame_lost_in_the_other_direction_alone_is_told_with_the_longest_outage_that_it_allows() -> None:
    def alters(_number: int, trial: Any) -> Any:
        streams = {}
        for who, gateway in zip(trial.phase2, (restarting(0.5, 0.5), scattered(1, 9.0)), strict=True):
            assert gateway.alters is not None
            streams[who] = gateway.alters(0, trial).phase2[who]
        return change_trial(trial, phase2=streams)

    found = reset(Gateway(forwards=3e5, alters=alters))
    assert found.median == pytest.approx(500)
    assert found.figures["silence_ms_from_responder"].median == 0
    assert any(
        "1 frame was lost, but not in a row next to it), or one of at most 0.0134 ms" in one.text for one in found.notes
    )


def test_a_takeover_that_loses_nothing_is_at_most_as_long_as_the_longest_silence() -> None:
    truth = altered(lambda _one: {"longest_silence": (5.0, 5.012)})
    found = measured("reset", truth, before_seconds=AT, reset_kind="failover", reset_command="true")
    assert found.median == pytest.approx(12)
    assert found.limited_by == "host"
    assert found.figure("surviving_percent") == 100
    # The longest silence may be anywhere: before the command, too.
    assert not any(name.startswith("back_after") for name in found.result.figures)
    assert found.notes("took over without loss, or the command moved nothing")


def losing_a_part(kept: float) -> Gateway:
    """Loses each 40th frame; while another gateway takes over, it is silent, and then knows a share of connections."""

    def alters(number: int, trial: Any) -> Any:
        phase2 = {}
        for who, one in trial.phase2.items():
            seconds, arriving = one.nominal_seconds, 0.975 * one.offered_frames
            # The third trial has no command.
            share = (AT + kept * (seconds - AT - 0.3)) / seconds if number < 2 else 1.0
            phase2[who] = change_counts(
                one,
                received=round(arriving * share),
                longest_silence=(AT, AT + 0.3),
                last_lost_ns=round((seconds - 0.001) * 1e9),
            )
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters)


@pytest.mark.parametrize("kept", [0.4, 1.0])
def test_frames_that_a_gateway_loses_anyway_end_no_connections(kept: float) -> None:
    """A gateway that dropped each 40th frame and forgot nothing was told to keep 96.5 % of the connections."""
    truth = losing_a_part(kept)
    found = reset(truth, reset_kind="failover", reset_command="true", loss_tolerance="20%")
    assert found.figures["surviving_percent"].median == pytest.approx(100 * kept, abs=0.1)
    assert len(truth.plans) == 3
