# SPDX-License-Identifier: Apache-2.0
"""Reset (RFC 6201) and failover against simulated gateways whose outages are known."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests import simulated_lab
from tests.unit.counted import change_counts, change_each, change_trial, make_cpu, make_stall
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError

#: Seconds of phase 2 before a restart.
AT = 2.0
#: A frame of a direction, in ms, at the throughput of these tests.
GAP: Final = 1000 / 150_000


def reset(truth: Gateway, **others: Any) -> Any:
    given = {"connections": 1000, "connection_rate": 1e5, "throughput_rate": 3e5, "before_seconds": AT, **others}
    return simulated_lab.measure("reset", truth, **given)


def fail_over(truth: Gateway, **others: Any) -> Any:
    return reset(truth, reset_kind="failover", reset_command="true", **others)


def altered(change: Any, **truth: Any) -> Gateway:
    """Changes the counts of each direction of a phase 2, as `change` returns for them."""

    def alters(_number: int, trial: Any) -> Any:
        return change_each(trial, change)

    return Gateway(forwards=3e5, alters=alters, **truth)


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


def stalled(silence: tuple[float, float], *, lost_seconds: float, last_lost: float, late: float = 0.0) -> Gateway:
    """Loses frames for a while after a restart; the longest silence may be another one, and the sender be late."""

    def change(one: Any) -> dict[str, Any]:
        lost = round(one.offered_frames * lost_seconds / one.nominal_seconds)
        return {
            "received": one.offered_frames - lost,
            "longest_silence": silence,
            "last_lost_seconds": last_lost,
            "worst_lag_seconds": late,
        }

    return altered(change)


def scattered(lost: int, at: float, *, silence: int = 2) -> Gateway:
    """Loses some frames one by one, the last one at a second of phase 2, where the longest silence is of some gaps."""

    def change(one: Any) -> dict[str, Any]:
        gap = one.nominal_seconds / one.intended_frames
        return {
            "received": one.offered_frames - lost,
            "longest_silence": (at - gap, at + (silence - 1) * gap),
            "last_lost_seconds": at,
        }

    return altered(change)


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


def each_way(up: Gateway, down: Gateway) -> Gateway:
    """Does to frames from inside what one gateway does, and to those from outside what another one does."""

    def alters(number: int, trial: Any) -> Any:
        assert up.alters is not None
        assert down.alters is not None
        if not trial.phase2:
            return trial
        from_inside, from_outside = up.alters(number, trial), down.alters(number, trial)
        of_each = {"initiator": from_inside, "responder": from_outside}
        phase2 = {who: of_each[who].phase2[who] for who in trial.phase2}
        return change_trial(trial, phase2=phase2, cpus=from_inside.counted.cpus)

    return Gateway(forwards=3e5, alters=alters)


#: 200 ms of silence, then connections came back one by one; a stall of the tester lasted longer, and lost nothing.
HIDDEN: Final = stalled((1.0, 1.5), lost_seconds=1.2, last_lost=4.2)


def test_the_two_instants_of_a_reset_and_how_exactly_they_are_known() -> None:
    found = reset(restarting(leaks=77))
    assert found.median == pytest.approx(1750)
    ends = {"from_initiator": (1500, 77), "from_responder": (1750, 0)}
    for direction, (milliseconds, leaked) in ends.items():
        assert found.figure(f"back_after_ms_{direction}") == pytest.approx(milliseconds)
        assert found.figure(f"loss_ms_{direction}") == pytest.approx(milliseconds, abs=1)
        assert found.figure(f"untranslated_frames_{direction}") == leaked
    assert found.figure("restart_ms") == pytest.approx(125)
    assert found.notes("77 frames from inside left the device untranslated")
    whole = reset(restarting(), throughput_rate=200.0, down_share=0.8)
    assert not whole.notes("untranslated")
    assert whole.notes("so times are known to 25 ms")
    # The loss is that of the direction's own rate.
    assert whole.figure("loss_ms_from_initiator") == pytest.approx(1500, abs=25)
    assert whole.figure("loss_ms_from_responder") == pytest.approx(1750, abs=10)


def test_the_reset_is_timed_from_when_it_really_began() -> None:
    found = reset(restarting(restart_late=0.25))
    assert found.figure("back_after_ms_from_initiator") == pytest.approx(1250)
    assert found.figure("silence_ms_from_initiator") == pytest.approx(1500)


def test_the_time_without_power_is_no_time_of_the_device(tmp_path: Path) -> None:
    command = f"echo off >> {tmp_path / 'outlet'}"
    power = {"reset_kind": "power", "reset_command": command, "power_off_seconds": 15.0, "trial_seconds": 60.0}
    found = reset(restarting(17.0, 17.25), **power)
    assert found.median == pytest.approx(2250)
    assert found.figure("loss_ms_from_initiator") == pytest.approx(2000)
    assert found.figure("back_after_ms_from_responder") == pytest.approx(2250)
    assert (tmp_path / "outlet").read_text() == "off\n"
    assert not [note for note in found.result.notes if note.word == "settings" and "power" in note.text]
    assert reset(restarting(), **{**power, "power_off_seconds": 1.0}).notes("power was off for 1 s")
    with pytest.raises(BrokenError, match=r"the silence from inside lasted 1\.5 s, less than the power was off"):
        reset(restarting(), **power)


@pytest.mark.parametrize(
    ("kind", "section"), [("process", "4.2.2"), ("system", "4.2.1"), ("hardware", "4.1"), ("power", "4.3")]
)
def test_each_kind_of_reset_is_named_and_a_command_does_what_natgauge_cannot(kind: str, section: str) -> None:
    assert reset(restarting(), reset_kind=kind, reset_command="true").notes(f"section {section}")


@pytest.mark.parametrize(
    ("truth", "limited_by", "milliseconds", "figures"),
    [
        # A silence whose frames were late and not lost is the tester's.
        (
            stalled((11.9, 11.95), lost_seconds=0.012, last_lost=AT + 0.02),
            "device", 12, {"back_after_ms_from_initiator": 20},
        ),
        (stalled((1.0, 1.012), lost_seconds=0.012, last_lost=AT + 0.02), "device", 12, {}),
        # Placed by its lost frames alone, behind a late sender: a bound with the time by which it was late.
        (stalled((11.9, 11.95), lost_seconds=0.012, last_lost=AT + 0.02, late=0.03), "host", 42, {}),
        # Seen: 128 ms from a stall 8.7 s after the reset, whose own frames were lost long before.
        (
            stalled((10.7, 10.828), lost_seconds=0.157, last_lost=AT + 0.2),
            "host", 157, {"back_after_ms_from_responder": 200},
        ),
        # Frames that a late sender lost in an outage were due before the command: the silence was told as 0 ms.
        (stalled((AT, AT + 0.106), lost_seconds=0.106, last_lost=AT - 0.2, late=0.306), "device", 106, {}),
        # A million lost frames were told as no outage.
        (HIDDEN, "host", 1200, {"back_after_ms_from_initiator": 2200}),
        (stalled((5.0, 5.5), lost_seconds=0.5, last_lost=5.5), "device", 500, {}),
        (scattered(1, AT + 0.005), "device", 2 * GAP, {}),
    ],
)  # fmt: skip
def test_an_outage_is_where_its_lost_frames_are(
    truth: Gateway, limited_by: str, milliseconds: float, figures: dict[str, float]
) -> None:
    found = reset(truth, invalid_repeats=1)
    assert (found.limited_by, found.median) == (limited_by, pytest.approx(milliseconds, rel=1e-3))
    assert {name: found.figure(name) for name in figures} == pytest.approx(figures)


NOT_BACK, NOTHING_LOST = "were not back 10 s after the reset", "no frame was lost after the reset"


@pytest.mark.parametrize(
    ("truth", "choices", "said"),
    [
        (restarting(1.5, 9.9), {}, f"frames from outside {NOT_BACK}"),
        (restarting(1.5, None), {}, f"frames from outside {NOT_BACK}"),
        (stalled((1.0, 1.001), lost_seconds=5.0, last_lost=12.0), {}, NOT_BACK),
        (restarting(-0.5, -0.5), {}, f"{NOTHING_LOST}, so it did not interrupt"),
        (
            altered(lambda one: {"received": one.offered_frames - 1, "longest_silence": (1.0, 1.001)}),
            {}, "before the reset: it did not interrupt",
        ),
        # The command `true` was told as a restart of 11.8 ms, or frames were "not back": a sender woke up late.
        *(
            (
                altered(lambda _one, silence=silence: {"longest_silence": silence}),
                {"throughput_rate": 2000.0}, f"{NOTHING_LOST}, .* less than the 1 ms between two",
            )
            for silence in ((5.0, 5.012), (11.99, 12.0))
        ),
        # Lost before the command alone; and by a sender that was not late enough to have sent them after it.
        (stalled((5.0, 5.05), lost_seconds=0.001, last_lost=1.5), {}, NOTHING_LOST),
        (stalled((AT, AT + 0.106), lost_seconds=0.106, last_lost=AT - 0.2, late=0.1), {}, NOTHING_LOST),
        # The command `true` and a stall that lost frames were told as an outage.
        (beside_stalls(0.0, 0.001, -1), {}, NOTHING_LOST),
        (
            restarting(sender_lag=1.5, placement="shared"),
            {"placement": "shared", "invalid_repeats": 1}, "so lost frames cannot be compared with the restart",
        ),
    ],
)  # fmt: skip
def test_a_device_that_was_not_interrupted_or_stays_away_has_no_reset_time(
    truth: Gateway, choices: dict[str, Any], said: str
) -> None:
    with pytest.raises(BrokenError, match=said):
        reset(truth, **choices)


@pytest.mark.parametrize(
    ("lost", "silence", "throughput", "most", "in_a_row"),
    [
        # One frame, seconds after a command that does nothing.
        (1, 2, 3e5, "0.0134", True),
        # The tester was late for longer than such a frame: nothing is said of frames in a row.
        (1, 200, 3e5, "0.0134", False),
        # One in twenty of 1,200: chance makes a run of two or three in 15 % of trials.
        (60, 3, 200.0, "30", True),
        (60, 4, 200.0, "40.1", True),
    ],
)
def test_frames_lost_one_by_one_are_no_outage_of_a_command_that_does_nothing(
    lost: int, silence: int, throughput: float, most: str, *, in_a_row: bool
) -> None:
    """One lost frame was told as a device that forwards nothing for 0.0067 ms."""
    with pytest.raises(BrokenError, match=rf"no outage was seen .* at most {re.escape(most)} ms") as raised:
        reset(scattered(lost, 7.0, silence=silence), throughput_rate=throughput)
    assert ("in a row" in str(raised.value)) == in_a_row


def test_a_run_of_lost_frames_far_from_the_command_is_an_outage_from_a_chance_of_1_percent_down() -> None:
    """Chance makes a run of four in 0.75 % of trials."""
    assert reset(scattered(60, 7.0, silence=5), throughput_rate=200.0).median == pytest.approx(50)


@pytest.mark.parametrize(("begin", "is_late"), [(AT + 0.2, True), (AT + 0.02, False)])
def test_a_short_outage_after_the_command_is_one_and_has_its_distance(begin: float, *, is_late: bool) -> None:
    """8000 frames lost in one silence, 35 ms after a command, were told as not in a row, and no outage."""
    found = reset(stalled((begin, begin + 0.008), lost_seconds=0.008, last_lost=begin + 0.008))
    assert (found.limited_by, found.median) == ("device", pytest.approx(8))
    assert found.notes("ms after the command, and may have another cause") == is_late


def in_turns(*gateways: Gateway) -> Gateway:
    """Does in each trial with a phase 2 what these do, one after the other; the last one goes on."""
    trials = itertools.chain(gateways, itertools.repeat(gateways[-1]))

    def alters(number: int, trial: Any) -> Any:
        alters = next(trials).alters if trial.plan.phase2 is not None else None
        return trial if alters is None else alters(number, trial)

    return Gateway(forwards=3e5, alters=alters)


def test_an_outage_that_a_longer_silence_of_the_tester_hides_is_repeated() -> None:
    found = reset(in_turns(HIDDEN, restarting(0.2, 0.2)))
    assert (found.limited_by, found.median) == ("device", pytest.approx(200))
    assert found.notes("1 trials were repeated, because stalls")


@pytest.mark.parametrize(
    ("truth", "trials", "limited_by", "milliseconds"),
    [
        # An outage of 3 ms was told as one of 12 ms, that of a stall of the host 5 s later.
        *((beside_stalls(0.003, lost, lost, -1), 3, "device", 3) for lost in (0.012, 0.006, 0.001)),
        # Of one direction alone, too.
        (each_way(beside_stalls(0.003, 0.012, 0.012, -1), beside_stalls(0.003, -1)), 3, "device", 3),
        (beside_stalls(0.003, 0.012), 11, "host", 12),
        # The restart itself keeps the device's cores busy; and a long outage is none of a short stall.
        *((beside_stalls(1.5, 0.0, at=begins), 1, "device", 1500) for begins in (2.05, 3.0)),
        # A pause of the host that stalls several cores counts once: 25 ms were told as 200 ms.
        (beside_stalls(1.5, 0.0, at=3.0, cores=8), 1, "device", 1500),
        (beside_stalls(0.003, 0.0), 1, "device", 3),
    ],
)
def test_only_stalls_that_may_explain_an_outage_repeat_a_reset(
    truth: Gateway, trials: int, limited_by: str, milliseconds: float
) -> None:
    found = reset(truth)
    assert (len(truth.plans), found.limited_by) == (trials, limited_by)
    assert found.median == pytest.approx(milliseconds, rel=1e-3)
    assert found.notes("trials were repeated, because stalls") == (trials > 1)
    assert found.notes("stalls may have lost the frames of the outage, or hid it, in every trial") == (trials == 11)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        # A direction whose silence lost nothing was not interrupted.
        (altered(lambda _one: {"longest_silence": (9.0, 9.7)}), ""),
        (scattered(1, 9.0), "1 frame was lost, but not in a row next to it), or one of at most 0.0134 ms"),
    ],
)
def test_a_direction_that_was_not_interrupted_has_the_longest_outage_that_it_allows(own: Gateway, said: str) -> None:
    found = reset(each_way(restarting(0.5, 0.5), own))
    assert found.median == pytest.approx(500)
    assert found.figure("silence_ms_from_responder") == 0
    assert found.notes("not in a row next to it") == bool(said)
    assert found.notes(said)


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


@pytest.mark.parametrize(("share", "choices"), [(0.0, {}), (0.375, {}), (1.0, {}), (0.5, {"down_share": 0.8})])
def test_the_connections_that_survive_a_failover_are_those_whose_downloads_go_on(
    share: float, choices: dict[str, Any]
) -> None:
    """With unequal shares the second trial, in which the Responder alone sends, was refused after the first."""
    found = fail_over(failing_over(share), **choices)
    assert found.median == pytest.approx(100)
    assert found.figure("surviving_percent") == pytest.approx(share * 100, abs=0.01)
    assert f"; {share * 100:g} % of the connections survive." in found.answer


def test_a_failover_without_a_known_share_still_has_its_outage() -> None:
    found = fail_over(failing_over(1.0, again=False))
    assert found.median == pytest.approx(100)
    assert "surviving_percent" not in found.result.figures
    assert found.notes("interrupted nothing when it ran again")


def test_a_takeover_beside_a_lost_frame_lasts_at_most_as_long_as_the_longest_silence() -> None:
    found = fail_over(scattered(1, 7.0, silence=300))
    assert (found.limited_by, found.median) == ("host", pytest.approx(2, rel=0.01))
    assert found.notes("another gateway took over within the longest silence, or the command moved nothing")
    assert fail_over(beside_stalls(0.0, 0.001)).limited_by == "host"


def test_a_takeover_that_loses_nothing_is_at_most_as_long_as_the_longest_silence() -> None:
    found = fail_over(altered(lambda _one: {"longest_silence": (5.0, 5.012)}))
    assert (found.limited_by, found.median) == ("host", pytest.approx(12))
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
            last = round((seconds - 0.001) * 1e9)
            received = round(arriving * share)
            phase2[who] = change_counts(one, received=received, longest_silence=(AT, AT + 0.3), last_lost_ns=last)
        return change_trial(trial, phase2=phase2)

    return Gateway(forwards=3e5, alters=alters)


@pytest.mark.parametrize("kept", [0.4, 1.0])
def test_frames_that_a_gateway_loses_anyway_end_no_connections(kept: float) -> None:
    """A gateway that dropped each 40th frame and forgot nothing was told to keep 96.5 % of the connections."""
    truth = losing_a_part(kept)
    found = fail_over(truth, loss_tolerance="20%")
    assert found.figure("surviving_percent") == pytest.approx(100 * kept, abs=0.1)
    assert len(truth.plans) == 3
