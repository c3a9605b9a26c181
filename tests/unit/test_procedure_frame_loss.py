# SPDX-License-Identifier: Apache-2.0
"""The frame loss rate (RFC 2544 section 26.3) against simulated gateways of known truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import PlanOfTrial
from tests.unit.counted import change_counts, change_trial, make_counts, make_port
from tests.unit.golden import Golden
from tests.unit.simulated import LONG_STALL, Gateway

from natgauge.agreement.generated import SizeCounts
from natgauge.errors import BrokenError
from natgauge.procedures import get
from natgauge.procedures.frame_loss import shares_of
from natgauge.procedures.kit.procedure import make_settings
from natgauge.procedures.kit.result.frame_counts import lost_share, shortfall
from natgauge.readings import NO_READINGS
from natgauge.trials import Trial
from natgauge.words import Verdict

N = 1000


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return simulated_lab.measure("frame-loss", truth, **{"connections": N, "connection_rate": 1e5, **others}).result


def test_the_series_goes_down_in_steps_until_two_in_a_row_lose_nothing() -> None:
    """The device forwards 550 k frames/s; at p % of 1 M frames/s it loses 1 - 55/p of them."""
    result = measure(Gateway(forwards=550_000), full_rate=1e6)
    rows: Any = result.repetitions[0].series
    assert [row["offered_percent"] for row in rows] == [100, 90, 80, 70, 60, 50, 40]
    for row in rows:
        truth = max(0.0, 1 - 55 / row["offered_percent"]) * 100
        assert row["lost_percent"] == pytest.approx(truth, abs=0.001)
    assert result.median == pytest.approx(45, abs=0.001)
    assert result.figures["highest_rate_without_loss"].median == 500_000


def test_a_share_lost_of_a_rate_that_was_not_sent_is_doubted() -> None:
    """The share at 171,000 frames/s was told as that at 300,000."""
    found = simulated_lab.measure(
        "frame-loss",
        Gateway(forwards=250_000, sender_lag=1.5),
        connections=N,
        connection_rate=1e5,
        full_rate=3e5,
        invalid_repeats=1,
    )
    (doubt,) = [doubt for doubt in found.result.doubts if doubt.word == "tester limited"]
    assert doubt.grade == "answer"
    assert "the tester sent 171 k" in doubt.text
    late_below = [note for note in found.result.notes if note.word == "tester" and "the tester sent" in note.text]
    assert len(late_below) == 1, "270,000 frames/s lose frames, 240,000 none"
    shared = measure(Gateway(forwards=250_000, placement="shared"), full_rate=3e5, placement="shared")
    assert not any("the tester sent" in note.text for note in (*shared.doubts, *shared.notes))


def test_a_finer_step_has_more_rows() -> None:
    (rows,) = (one.series for one in measure(Gateway(forwards=850_000), full_rate=1e6, step=0.05).repetitions)
    assert [row["offered_percent"] for row in rows] == [100, 95, 90, 85, 80]


def test_below_the_last_step_the_rate_is_halved_so_that_a_slow_device_is_reached() -> None:
    shares = list(shares_of(0.1))
    assert shares[:10] == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert shares[10:13] == pytest.approx([0.05, 0.025, 0.0125])
    result = measure(Gateway(forwards=40_000), full_rate=1e6)
    assert result.figures["highest_rate_without_loss"].median == pytest.approx(25_000)


def test_what_100_percent_is_names_the_direction_that_sends() -> None:
    result = measure(Gateway(forwards=1e6), full_rate=1e5, directions="up")
    assert any("100 % is 100 k frames/s from inside" in note.text for note in result.notes)


def test_a_device_that_always_loses_is_told(golden: Golden) -> None:
    result = measure(Gateway(rare_loss=1.0), full_rate=1e5)
    golden(result.notes)
    assert "highest_rate_without_loss" not in result.figures


def test_in_shared_placement_the_slowing_down_is_shown(golden: Golden) -> None:
    result = measure(Gateway(forwards=300_000, placement="shared"), throughput_rate=300_000.0)
    assert result.median == pytest.approx(50, abs=0.1)
    golden(result.notes)
    assert any("twice the throughput" in note.text for note in result.notes)


def test_frames_lost_and_frames_not_sent_in_time_are_one_share() -> None:
    """A device that drops what exceeds 0.88 of the offered rate forwards 0.88 of it, however slow the sender is."""
    in_time = make_counts(1000, 1000, 880, nominal_seconds=1.0, sending_seconds=1.0)
    slowed = make_counts(1000, 1000, 968, nominal_seconds=1.0, sending_seconds=1.1)
    assert shortfall(in_time) == pytest.approx(0.12)
    assert shortfall(slowed) == pytest.approx(0.12)
    # 200 lost frames are excused, so 120 of 800 are missing.
    assert shortfall(make_counts(1000, 1000, 680, nominal_seconds=1.0, sending_seconds=1.0), 200) == pytest.approx(0.15)


def test_all_directions_share_the_testers_highest_rate() -> None:
    gateway = Gateway(ceiling=2e6, forwards=1e9)
    measure(gateway)
    assert max(plan.phase2.initiator_rate for plan in gateway.plans if plan.phase2) == 1e6


def test_disturbed_trials_are_repeated_and_not_part_of_the_series() -> None:
    result = measure(Gateway(forwards=550_000, disturbed=0.4, seed=3), full_rate=1e6, invalid_repeats=50)
    (rows,) = (one.series for one in result.repetitions)
    assert rows[-1]["lost_percent"] == rows[-2]["lost_percent"] == 0
    assert result.trials["INVALID"] > 0


def test_a_device_without_connections_has_no_loss_rate(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(Gateway(table_size=N // 2), connection_rate=None)
    with golden.raises(BrokenError):
        measure(Gateway(table_size=N // 2))


def test_a_given_connection_rate_that_hides_a_loss_at_every_rate_is_to_be_left_out(golden: Golden) -> None:
    """The advice was a lower one, with which the device loses as many, or a tolerance."""
    with golden.raises(BrokenError):
        measure(Gateway(loses_share=0.01), full_rate=1e4)
    left_out = measure(Gateway(loses_share=0.01), full_rate=1e4, connection_rate=None)
    assert left_out.median == pytest.approx(1, rel=0.1)


def stands_still(_number: int, trial: Any) -> Any:
    """Lose a tenth of the frames to a stall, besides what the device cannot forward."""
    streams = {
        direction: change_counts(
            counts,
            received=counts.received_frames - counts.received_frames // 10,
            lost_in_stalls=counts.intended_frames // 10,
        )
        for direction, counts in trial.phase2.items()
    }
    return change_trial(trial, phase2=streams, cpus=(LONG_STALL,))


def test_frames_that_a_stall_lost_are_in_no_share_and_their_number_bounds_it() -> None:
    """At 1 M frames/s a device of 550 k loses 45 %; with the stall 50.5 % of the frames are lost."""
    result = measure(Gateway(forwards=550_000, alters=stands_still), full_rate=1e6, invalid_repeats=0)
    first: Any = result.repetitions[0].series[0]
    assert (first["verdict"], first["lost_percent"]) == ("FAIL", pytest.approx(45, abs=0.001))
    assert first["lost_percent_from_initiator"] == pytest.approx(45, abs=0.001)
    measured = result.repetitions[0]
    assert measured.value == pytest.approx(45, abs=0.001)
    assert measured.upper == pytest.approx(50.5, abs=0.001)
    assert first["lost_percent_most"] == pytest.approx(50.5, abs=0.001)
    assert {note.word for note in measured.notes if note.is_doubt} == {"excused frames"}


def loses_as_always(_number: int, trial: Any) -> Any:
    """Lose every 50th frame; a stall of a tenth of the trial loses no further frame."""
    streams = {
        direction: change_counts(
            counts,
            received=counts.intended_frames - counts.intended_frames // 50,
            lost_in_stalls=counts.intended_frames // 500,
            due_in_stalls=counts.intended_frames // 10,
        )
        for direction, counts in trial.phase2.items()
    }
    return change_trial(trial, phase2=streams, cpus=(LONG_STALL,))


def test_the_share_is_that_of_frames_due_outside_of_stalls() -> None:
    """The device loses 2 % in a stall, too; leaving out only the lost frames of the stall would say 1.80 %."""
    measured = measure(Gateway(alters=loses_as_always), full_rate=1e6, invalid_repeats=0).repetitions[0]
    assert measured.value == pytest.approx(2, abs=0.001)
    assert measured.upper == pytest.approx(2, abs=0.001)


def has_no_share_of_its_own(_number: int, trial: Any) -> Any:
    """Lose every 50th frame, where the engine knows what was lost in stalls and not what was due."""
    trial = loses_as_always(_number, trial)
    streams = {direction: change_counts(counts, due_in_stalls=None) for direction, counts in trial.phase2.items()}
    return change_trial(trial, phase2=streams)


def test_loss_of_the_device_itself_in_a_stall_is_within_the_bounds() -> None:
    """Where the number of frames due in stalls is not known, the share is 1.80 % and its bound 2 %."""
    measured = measure(Gateway(alters=has_no_share_of_its_own), full_rate=1e6, invalid_repeats=0).repetitions[0]
    assert measured.value < 2 - 0.1
    assert measured.upper == pytest.approx(2, abs=0.001)


def test_what_was_due_in_stalls_counts_once_where_the_lost_frames_times_are_not_known() -> None:
    """All of 100,000 frames due in stalls were lost, and half of the others; the excused number is an estimate."""
    counts = make_counts(1_000_000, 1_000_000, 450_000).model_copy(update={"due_in_stalls": 100_000})
    assert lost_share(counts, 100_000) == pytest.approx(0.5)


def test_a_share_without_excused_frames_has_no_bounds() -> None:
    measured = measure(Gateway(forwards=550_000), full_rate=1e6).repetitions[0]
    assert measured.upper is None
    assert not any("lost_percent_most" in row for row in measured.series)


def of_two_sizes(lost: dict[str, int], *, stalls: bool = False) -> Any:
    """Alter a trial of a mix whose short frames are all received, and whose long ones lose a share by direction, %."""

    def alter(_number: int, trial: Any) -> Any:
        streams = {}
        for direction, counts in trial.phase2.items():
            half, share = counts.intended_frames // 2, lost[direction.value]
            of_long = half - half * share // 100
            sizes = [
                SizeCounts(octets=64, made_frames=half, received_frames=half),
                SizeCounts(octets=1518, made_frames=half, received_frames=of_long),
            ]
            streams[direction] = change_counts(
                counts, sizes=sizes, received=half + of_long, lost_in_stalls=half // 100 if stalls else None
            )
        return change_trial(trial, phase2=streams, cpus=(LONG_STALL,) if stalls else ())

    return alter


def test_the_share_of_a_size_is_that_of_the_direction_that_loses_most_of_it() -> None:
    """The share of all frames is that of the worse direction, too."""
    rows: Any = measure(Gateway(alters=of_two_sizes({"initiator": 10, "responder": 2})), full_rate=1e6)
    first = rows.repetitions[0].series[0]
    assert first["lost_percent"] == pytest.approx(5, abs=0.001)
    assert first["lost_percent_of_64_octets"] == 0
    assert first["lost_percent_of_1518_octets"] == pytest.approx(10, abs=0.001)


def test_where_frames_are_excused_no_share_of_a_size_is_given_and_the_doubt_says_so(golden: Golden) -> None:
    """The shares by size counted excused frames as lost: 1 % of each size beside 0.2 % of all."""
    lost = {"initiator": 10, "responder": 2}
    result = measure(Gateway(alters=of_two_sizes(lost, stalls=True)), full_rate=1e6, invalid_repeats=0)
    first: Any = result.repetitions[0].series[0]
    assert first["lost_percent"] < first["lost_percent_most"]
    assert not [name for name in first if name.endswith("_octets")]
    golden([note for note in result.repetitions[0].notes if note.word == "excused frames"][:1])


def alone(gateway: Gateway, **others: Any) -> Any:
    """Return the one repetition of the procedure with this gateway as its measurer."""
    procedure = get("frame-loss")
    given: dict[str, Any] = {"connections": N, "connection_rate": 1e5, "full_rate": 1e6, "placement": "isolated"}
    (one,) = procedure.measure(gateway, procedure.settings(**given, repeat=1, **others)).measurements
    return one


def gone_after(number: int) -> Any:
    """Let no trial begin from this one on: the device had collapsed, and did not come back."""

    def alter(trials: int, trial: Any) -> Any:
        if trials < number:
            return trial
        reason = "the device had collapsed and did not come back"
        return replace(trial, request=None, result=None, readings=NO_READINGS, reason=reason)

    return alter


class Unbegun(Gateway):
    """A gateway whose trials that did not begin are judged as those of a lab."""

    def measure(self, plan: Any) -> Any:
        """Return COLLAPSED for what did not begin."""
        trial = self.trial(plan)
        if trial.result is not None:
            return super().measure(plan)
        self.plans.append(plan)
        return replace(trial, verdict=Verdict.COLLAPSED, limited_by="device")


def test_a_load_at_which_the_device_was_gone_has_no_share(golden: Golden) -> None:
    """Nothing was offered, and 0 % of the frames were lost."""
    one = alone(Unbegun(forwards=550_000, alters=gone_after(3)))
    assert [row["offered_percent"] for row in one.series] == [100, 90, 80]
    golden([note for note in one.notes if "left out" in note.text])
    assert "highest_rate_without_loss" not in one.figures


def refused_by_a_tap(share: float) -> Any:
    """Alter a trial: a guest's queue refuses this share of the frames, which the ports do not count as offered."""

    def alter(_number: int, trial: Any) -> Any:
        streams, refused = {}, 0
        for direction, counts in trial.phase2.items():
            accepted = round(counts.intended_frames * (1 - share))
            streams[direction] = change_counts(counts, offered=accepted, received=accepted, lost_in_stalls=0)
            refused += counts.intended_frames - accepted
        port = make_port(refused=refused, tx_dropped=refused)
        return change_trial(trial, phase2=streams, ports={"initiator": port}, taps=True)

    return alter


def test_frames_that_found_the_queue_before_a_guest_full_are_lost_ones() -> None:
    """The trial failed, and the share of the lost frames was 0 %."""
    measured = alone(Gateway(alters=refused_by_a_tap(0.2)))
    assert measured.value == pytest.approx(20, abs=0.001)
    assert {row["verdict"] for row in measured.series} == {"FAIL"}


def test_a_tolerance_is_of_frames_that_found_the_queue_before_a_guest_full_too() -> None:
    """A share that was tolerated elsewhere failed every trial of a guest."""
    tolerated = alone(Gateway(alters=refused_by_a_tap(0.01)), loss_tolerance=0.02)
    assert [row["verdict"] for row in tolerated.series] == ["PASS", "PASS"]
    assert tolerated.value == pytest.approx(1, abs=0.001)
    failed = alone(Gateway(alters=refused_by_a_tap(0.03)), loss_tolerance=0.02)
    assert {row["verdict"] for row in failed.series} == {"FAIL"}


def test_in_shared_placement_a_device_that_loses_at_every_rate_has_a_series_too(golden: Golden) -> None:
    """It was refused, because it has no throughput that 100 % could be twice of."""
    truth = Gateway(forwards=300_000, placement="shared", loses_share=0.1)
    result = measure(truth, connection_rate=None, connections=20_000)
    rows: Any = result.repetitions[0].series
    assert rows[-1]["lost_percent"] == pytest.approx(10, abs=0.1)
    assert rows[0]["shortfall_percent"] > 90
    golden([note.text for note in result.notes if "100 % is" in note.text])


def test_in_shared_placement_frames_of_open_connections_may_be_lost_at_every_rate(golden: Golden) -> None:
    def loses_a_tenth(_number: int, trial: Any) -> Any:
        lost = {
            way: change_counts(each, received=int(0.9 * each.received_frames)) for way, each in trial.phase2.items()
        }
        return change_trial(trial, phase2=lost) if lost else trial

    result = measure(Gateway(forwards=300_000, placement="shared", alters=loses_a_tenth))
    rows: Any = result.repetitions[0].series
    assert rows[-1]["lost_percent"] == pytest.approx(10, abs=0.1)
    golden([note.text for note in result.notes if note.word == "throughput"])


class OffersNothing(Gateway):
    """Its trials end before phase 2."""

    def measure(self, plan: PlanOfTrial) -> Trial:
        trial = super().measure(replace(plan, phase2=None))
        return replace(trial, plan=plan, reason="phase 2 never ran")


def test_a_first_trial_that_offered_nothing_is_one_line_and_no_share() -> None:
    procedure = get("frame-loss")
    chosen = {"connection_rate": 1e5, "full_rate": 1e6, "repeat": 1}
    settings = make_settings(procedure, chosen, connections=N, placement="isolated", order="permutation", four_tuples=N)
    with pytest.raises(BrokenError, match="no frame was offered at the highest rate: phase 2 never ran"):
        procedure.measure(OffersNothing(), settings)
