# SPDX-License-Identifier: Apache-2.0
"""The frame loss rate (RFC 2544 section 26.3) against simulated gateways of known truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_counts, change_each, change_trial, make_outcome, make_port
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import LONG_STALL, Gateway

from natgauge.errors import BrokenError

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
    assert not any(one.upper is not None or "lost_percent_most" in str(one.series) for one in result.repetitions)
    # A finer step has more rows; and below the last step the rate is halved, so that a slow device is reached.
    (rows,) = (one.series for one in measure(Gateway(forwards=850_000), full_rate=1e6, step=0.05).repetitions)
    assert [row["offered_percent"] for row in rows] == [100, 95, 90, 85, 80]
    slow = measure(Gateway(forwards=40_000), full_rate=1e6)
    offered = [row["offered_percent"] for row in slow.repetitions[0].series]
    assert offered == pytest.approx([100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2.5, 1.25])
    assert slow.figures["highest_rate_without_loss"].median == pytest.approx(25_000)


def test_a_share_lost_of_a_rate_that_was_not_sent_is_doubted() -> None:
    """The share at 171,000 frames/s was told as that at 300,000."""
    result = measure(Gateway(forwards=250_000, sender_lag=1.5), full_rate=3e5, invalid_repeats=1)
    (doubt,) = [doubt for doubt in result.doubts if doubt.word == "tester limited"]
    assert doubt.grade == "answer"
    assert "the tester sent 171 k" in doubt.text
    late_below = [note for note in result.notes if note.word == "tester" and "the tester sent" in note.text]
    assert len(late_below) == 1, "270,000 frames/s lose frames, 240,000 none"
    shared = measure(Gateway(forwards=250_000, placement="shared"), full_rate=3e5, placement="shared")
    assert not any("the tester sent" in note.text for note in (*shared.doubts, *shared.notes))


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

    def stalled(counts: Any) -> dict[str, int]:
        received = counts.received_frames - counts.received_frames // 10
        return {"received": received, "lost_in_stalls": counts.intended_frames // 10}

    return change_each(trial, stalled, cpus=(LONG_STALL,))


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


def loses_as_always(*, due_is_known: bool) -> Any:
    """Lose every 50th frame; a stall of a tenth of the trial loses no further frame."""

    def alter(_number: int, trial: Any) -> Any:
        return change_each(trial, stalled, cpus=(LONG_STALL,))

    def stalled(counts: Any) -> dict[str, int | None]:
        due = counts.intended_frames
        return {
            "received": due - due // 50,
            "lost_in_stalls": due // 500,
            "due_in_stalls": due // 10 if due_is_known else None,
        }

    return alter


@pytest.mark.parametrize(("due_is_known", "value"), [(True, 2.0), (False, 1.80)])
def test_the_share_is_that_of_frames_due_outside_of_stalls_or_within_a_bound_where_their_number_is_not_known(
    value: float, *, due_is_known: bool
) -> None:
    """The device loses 2 % in a stall, too."""
    gateway = Gateway(alters=loses_as_always(due_is_known=due_is_known))
    measured = measure(gateway, full_rate=1e6, invalid_repeats=0).repetitions[0]
    assert measured.value == pytest.approx(value, abs=0.005)
    assert measured.upper == pytest.approx(2, abs=0.001)


def of_two_sizes(lost: dict[str, int], *, stalls: bool = False) -> Any:
    """Alter a trial of a mix whose short frames are all received, and whose long ones lose a share by direction, %."""

    def alter(_number: int, trial: Any) -> Any:
        streams = {}
        for direction, counts in trial.phase2.items():
            half, share = counts.intended_frames // 2, lost[direction.value]
            of_long = half - half * share // 100
            streams[direction] = change_counts(
                counts,
                sizes=[(64, half, half), (1518, half, of_long)],
                received=half + of_long,
                lost_in_stalls=half // 100 if stalls else None,
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


def once(gateway: Gateway, **others: Any) -> Any:
    """Return the one repetition of the procedure with this gateway as its measurer."""
    (one,) = alone("frame-loss", gateway, connection_rate=1e5, full_rate=1e6, **others).measurements
    return one


class Unbegun(Gateway):
    """A gateway that collapses and does not come back, so that no trial begins from the fourth on."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        if len(self.plans) < 3:
            return super().measure(plan)
        self.plans.append(plan)
        gone = make_outcome("COLLAPSED", "the device had collapsed and did not come back", limited_by="device")
        return replace(gone, plan=plan, request=None, result=None)


def test_a_load_at_which_the_device_was_gone_has_no_share(golden: Golden) -> None:
    """Nothing was offered, and 0 % of the frames were lost."""
    one = once(Unbegun(forwards=550_000))
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


@pytest.mark.parametrize(
    ("refused", "tolerance", "verdict"), [(0.2, 0.0, "FAIL"), (0.01, 0.02, "PASS"), (0.03, 0.02, "FAIL")]
)
def test_frames_that_found_the_queue_before_a_guest_full_are_lost_ones_of_which_some_may_be_tolerated(
    refused: float, tolerance: float, verdict: str
) -> None:
    """The share of a trial that failed was 0 %, and a share that was tolerated elsewhere failed every trial."""
    measured = once(Gateway(alters=refused_by_a_tap(refused)), loss_tolerance=tolerance)
    assert {row["verdict"] for row in measured.series} == {verdict}
    assert (len(measured.series) == 2) == (verdict == "PASS")
    assert measured.value == pytest.approx(100 * refused, abs=0.001)


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
        return change_each(trial, lambda one: {"received": int(0.9 * one.received_frames)}) if trial.phase2 else trial

    result = measure(Gateway(forwards=300_000, placement="shared", alters=loses_a_tenth))
    rows: Any = result.repetitions[0].series
    assert rows[-1]["lost_percent"] == pytest.approx(10, abs=0.1)
    golden([note.text for note in result.notes if note.word == "throughput"])


class OffersNothing(Gateway):
    """Its trials end before phase 2."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        trial = super().measure(replace(plan, phase2=None))
        return replace(trial, plan=plan, reason="phase 2 never ran")


def test_a_first_trial_that_offered_nothing_is_one_line_and_no_share() -> None:
    with pytest.raises(BrokenError, match="no frame was offered at the highest rate: phase 2 never ran"):
        once(OffersNothing())
