# SPDX-License-Identifier: Apache-2.0
"""Loss that no rate cures is recognised and said; overload, a full table and rare loss are not mistaken for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import CountsOfStream, OneTrial, PlanOfTrial
from tests.unit.counted import change_counts
from tests.unit.fake_engine import CLEAN
from tests.unit.golden import Golden
from tests.unit.made_settings import stored_alone
from tests.unit.simulated import Gateway

from natgauge import Result
from natgauge.errors import BrokenError

#: Metrics whose trials are about new connections.
OPENING = ("connection-rate", "validated-connection-rate")
#: Figures of such a device: connections that it holds, and the share that it loses.
HELD_FIGURE, SHARE_FIGURE = "connections_held", "share_lost_at_every_rate"
#: Probability that a frame is lost.
LOTS = 0.001
#: A handful, and what starting and narrowing takes.
HANDFUL = 8
#: New connections/s from which `_HasFewSockets` has more room.
FAST = 200_000


def measure(metric: str, gateway: Gateway, connections: int = 50_000, **others: Any) -> Result:
    return stored_alone(metric, gateway, connections=connections, **others)


def told(result: Result) -> list[str]:
    return [note.text for note in result.notes if note.word == "loss at every rate"]


def words(result: Result) -> set[str]:
    return {doubt.word for doubt in result.doubts}


@pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("metric", OPENING)
def test_a_share_that_is_lost_at_every_rate_ends_the_search(metric: str, share: float, golden: Golden) -> None:
    """With 0.1 % the search made 112 trials of 12,895 s in all, 5 % slower each, and ended with 0 and no reason."""
    gateway = Gateway(loses_share=share)
    result = measure(metric, gateway)
    assert (result.median, result.limited_by) == (0, "device")
    assert len(gateway.plans) <= HANDFUL
    assert gateway.clock() < 60
    (note,) = told(result)
    golden(note)
    assert [note] == [doubt.text for doubt in result.doubts if doubt.word == "loss at every rate"]


class _DrawsLots(Gateway):
    """Each frame is lost with the same probability."""

    def _stream(
        self, frames: int, rate: float, limit: float, *, plan: PlanOfTrial, streams: int = 1, refused: int = 0
    ) -> CountsOfStream:
        counts = super()._stream(frames, rate, limit, plan=plan, streams=streams, refused=refused)
        lost = sum(self._random.random() < LOTS for _ in range(counts.offered_frames))
        return change_counts(counts, received=max(counts.received_frames - lost, 0))


@pytest.mark.parametrize("seed", range(4))
def test_loss_by_chance_agrees_within_the_doubt_that_counting_it_leaves(seed: int) -> None:
    gateway = _DrawsLots(seed=seed)
    result = measure("connection-rate", gateway, 20_000)
    assert result.median == 0
    assert len(gateway.plans) <= HANDFUL
    assert told(result)


def test_a_device_that_also_leaks_every_frame_is_recognised(golden: Golden) -> None:
    """Each frame comes back translated and, once more, as it was: 2,222 s of trials, and 0 without a reason."""
    gateway = Gateway(leaks_copies=True)
    result = measure("connection-rate", gateway)
    assert result.median == 0
    assert len(gateway.plans) <= HANDFUL
    golden(told(result)[0])


class _Spoils(Gateway):
    """Every 100th frame comes back in another form, so it is lost, too."""

    form = ""

    def _stream(
        self, frames: int, rate: float, limit: float, *, plan: PlanOfTrial, streams: int = 1, refused: int = 0
    ) -> CountsOfStream:
        counts = super()._stream(frames, rate, limit, plan=plan, streams=streams, refused=refused)
        spoilt = counts.offered_frames // 100
        return change_counts(counts, received=counts.received_frames - spoilt, **{self.form: spoilt})


@pytest.mark.parametrize("form", sorted(CLEAN.keys() - {"duplicates", "reordered", "late", "skipped"} | {"untagged"}))
def test_the_form_in_which_a_share_comes_back_at_every_rate_is_said(form: str, golden: Golden) -> None:
    """Fragments, frames with other tags and frames without a checksum were said to be lost."""
    gateway = _Spoils()
    gateway.form = form
    result = measure("connection-rate", gateway)
    (note,) = told(result)
    golden(note)


@pytest.mark.parametrize("cliff", [15_000.0, 60_000.0, 400_000.0])
def test_it_is_recognised_below_the_rate_that_overloads_the_device(cliff: float, golden: Golden) -> None:
    gateway = Gateway(establishes=cliff, loses_share=0.002)
    result = measure("connection-rate", gateway)
    golden(told(result)[0])
    assert len(gateway.plans) <= HANDFUL
    assert gateway.clock() < 60
    assert result.repetitions[0].upper is not None


@pytest.mark.parametrize("cliff", [150_000.0, 400_000.0, 3e6])
def test_it_is_recognised_in_seconds_with_many_connections(cliff: float) -> None:
    """Trials of ever lower rates took 29 s, and a quick measurement ended before it had anything to say."""
    gateway = Gateway(establishes=cliff, loses_share=0.001)
    assert told(measure("connection-rate", gateway, 100_000))
    assert gateway.clock() < 20


def test_phase_2_of_a_stateless_measurement_is_judged_likewise() -> None:
    """At low rates a trial has too few frames to lose one and passes: after 136 trials 499 frames/s was published."""
    chosen: dict[str, Any] = {"gateway": simulated_lab.ROUTING, "stateless": True, "connections": 50_000}
    result = simulated_lab.measure("throughput", Gateway(loses_share=0.001), **chosen).result
    assert result.median == 0
    assert "0.0998 %" in told(result)[0]
    assert result.figures[SHARE_FIGURE].median == pytest.approx(0.001, rel=0.05)


def test_where_another_metric_prepares_itself_it_is_said_too() -> None:
    gateway = Gateway(loses_share=0.001)
    result = measure("throughput", gateway)
    assert result.median == 0
    assert len(gateway.plans) <= HANDFUL
    assert told(result)


def test_where_nothing_can_be_said_without_phase_1_the_error_says_why(golden: Golden) -> None:
    with pytest.raises(BrokenError) as raised:
        measure("latency", Gateway(loses_share=0.001))
    golden(str(raised.value))
    assert measure("latency", Gateway(loses_share=0.001), loss_tolerance=0.002).median > 0


def test_the_frame_loss_of_such_a_device_is_its_whole_series(golden: Golden) -> None:
    """Every phase 1 fails, and each trial was INVALID for that: the metric ended in an error."""
    gateway = Gateway(forwards=500_000, loses_share=0.001)
    result = measure("frame-loss", gateway, full_rate=1e6)
    (one,) = result.repetitions
    assert result.document()["trials"]["INVALID"] == 0
    rows = {row["offered_percent"]: float(row["lost_percent"] or 0.0) for row in one.series}
    assert list(rows)[:10] == [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]
    assert rows[100] == pytest.approx(50, abs=0.2)
    assert rows[30] == pytest.approx(0.1, abs=0.01)
    assert {row["verdict"] for row in one.series if float(row["lost_percent"] or 0.0)} == {"FAIL"}
    golden(result.notes)
    assert "loss at every rate" in words(result)


class _LosesMoreInPhase1(Gateway):
    """Loses ten times as many connections once phase 2 follows."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        self.loses_share = 0.01 if plan.phase2 else 0.001
        return super().measure(plan)


def test_a_phase_1_that_loses_more_than_it_must_is_not_counted(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure("frame-loss", _LosesMoreInPhase1(), full_rate=1e6)


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("cliff", [10.0, 300.0, 3_000.0, 30_000.0, 3e6])
@pytest.mark.parametrize("connections", [200, 5_000, 200_000])
def test_an_overloaded_device_is_not_mistaken_for_it(connections: int, cliff: float, noise: float) -> None:
    gateway = Gateway(establishes=max(cliff, connections / 500), noise=noise, seed=5)
    result = measure("connection-rate", gateway, connections)
    assert not told(result)
    assert result.median > 0


@pytest.mark.parametrize("when_full", ["refuse", "evict"])
def test_a_full_table_is_not_mistaken_for_it(when_full: Any) -> None:
    result = measure("connection-rate", Gateway(table_size=30_000, when_full=when_full))
    assert not told(result)
    assert result.limited_by == "table"


@pytest.mark.parametrize(
    "case",
    [
        "connection-rate 0.001 shared count limit", "connection-rate 0.001 isolated count -",
        "validated-connection-rate 0.001 isolated - -", "validated-connection-rate 0.001 shared - limit",
        "connection-rate 0.3 isolated - limit", "connection-rate 0.3 shared - -",
        "validated-connection-rate 0.3 shared count limit", "validated-connection-rate 0.3 isolated count -",
        "connection-rate 0.97 shared - limit", "connection-rate 0.97 isolated count limit",
        "validated-connection-rate 0.97 isolated - limit", "validated-connection-rate 0.97 shared count -",
    ],
)  # fmt: skip
def test_a_share_of_new_connections_that_is_lost_at_every_rate_is_no_full_table(case: str, golden: Golden) -> None:
    """Seen: 150 of 5,000 connections, of at most 196,605, were told as a table that was full."""
    metric, share, placement, *knows = case.split()
    gateway = Gateway(loses_share=float(share), knows_count="count" in knows, knows_limit="limit" in knows)
    gateway.placement = "shared" if placement == "shared" else "isolated"
    result = measure(metric, gateway)
    assert (result.median, result.limited_by) == (0, "device")
    (note,) = told(result)
    assert "new connections alone" in note
    golden(note)
    assert result.figures[SHARE_FIGURE].median == pytest.approx(float(share), rel=0.02)
    assert words(result) & {"loss at every rate", "table inferred"} == {"loss at every rate"}


@pytest.mark.parametrize(
    "case",
    [
        "connection-rate 150 shared refuse count", "connection-rate 150 isolated refuse -",
        "validated-connection-rate 150 isolated evict count", "validated-connection-rate 150 shared refuse -",
        "connection-rate 6543 isolated evict count", "connection-rate 6543 shared refuse -",
        "validated-connection-rate 6543 shared evict count", "validated-connection-rate 6543 isolated refuse count",
        "connection-rate 49000 shared evict count", "connection-rate 49000 isolated refuse count",
        "validated-connection-rate 49000 isolated refuse -", "validated-connection-rate 49000 shared refuse count",
    ],
)  # fmt: skip
def test_a_full_table_of_a_limit_that_nobody_told_is_found_by_fewer_connections(case: str, golden: Golden) -> None:
    metric, size, placement, when_full, count = case.split()
    gateway = Gateway(table_size=int(size), knows_limit=False, knows_count=count == "count")
    gateway.placement = "shared" if placement == "shared" else "isolated"
    gateway.when_full = "evict" if when_full == "evict" else "refuse"
    result = measure(metric, gateway)
    assert (result.median, result.limited_by) == (0, "table")
    assert told(result) == []
    (doubt,) = (doubt for doubt in result.doubts if doubt.word == "table inferred")
    assert f"keeps about {int(size):,} connections" in doubt.text
    assert result.figures[HELD_FIGURE].median == int(size)
    golden(doubt.text)


@pytest.mark.parametrize("truth", [{"table_size": 6543}, {"loses_share": 0.3}])
def test_only_a_full_table_is_told_as_one(truth: dict[str, Any], golden: Golden) -> None:
    said = simulated_lab.measure("connection-rate", Gateway(**truth), connections=50_000).said
    golden([line for line in said.splitlines() if "Bottleneck" in line])


@pytest.mark.parametrize("when_full", ["refuse", "evict"])
@pytest.mark.parametrize("metric", OPENING)
def test_a_full_table_of_a_known_limit_needs_no_other_proof(metric: str, when_full: Any) -> None:
    gateway = Gateway(table_size=30_000, when_full=when_full)
    result = measure(metric, gateway)
    assert (result.median, result.limited_by) == (0, "table")
    assert {plan.connections for plan in gateway.plans} == {50_000}
    assert "table inferred" not in words(result)


@dataclass(slots=True)
class _HasFewSockets(Gateway):
    """Loses connections behind its table: a process has sockets for so many, and for more if they come fast."""

    rooms: tuple[int, int] = (49_000, 49_000)
    counts_all: bool = False

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        self.table_size = self.rooms[plan.phase1_rate > FAST]
        self.counts = plan.connections if self.counts_all else None
        return Gateway.measure(self, plan)


@pytest.mark.parametrize("placement", ["shared", "isolated"])
@pytest.mark.parametrize(("rooms", "counts_all"), [((49_000, 49_000), True), ((49_000, 49_500), False)])
def test_a_device_that_took_more_connections_is_said_to_hold_no_number(
    rooms: tuple[int, int], placement: Any, golden: Golden, *, counts_all: bool
) -> None:
    """Seen: 19,857 of 20,000 came through pasta, 19,921 if they came faster, and in all trials it counted 20,000."""
    gateway = _HasFewSockets(rooms=rooms, counts_all=counts_all, knows_limit=False, placement=placement)
    result = measure("connection-rate", gateway)
    assert (result.median, result.limited_by) == (0, "device")
    assert HELD_FIGURE not in result.figures
    assert result.figures[SHARE_FIGURE].median == pytest.approx(0.02)
    (note,) = told(result)
    golden(note)


def test_repetitions_that_name_different_reasons_are_one_doubt(golden: Golden) -> None:
    full = Gateway(table_size=49_000, knows_limit=False)
    assert words(measure("connection-rate", full)) >= {"table inferred"}

    def becomes(gateway: Gateway, _plan: PlanOfTrial) -> None:
        """In the second repetition it has room for all connections, and loses a share of them."""
        if len(gateway.plans) == len(full.plans):
            gateway.table_size, gateway.loses_share = 2**40, 0.02

    result = measure("connection-rate", Gateway(table_size=49_000, knows_limit=False, becomes=becomes), repeat=2)
    assert [one.limited_by for one in result.repetitions] == ["table", "device"]
    assert "table inferred" not in words(result)
    (doubt,) = (doubt for doubt in result.doubts if doubt.word == "loss at every rate")
    golden(doubt.text)


class _KeepsAShare(Gateway):
    """Forwards every frame, and keeps the connections of a share of them."""

    def _counted(self, held: int) -> int | None:
        return held * 3 // 4


@pytest.mark.parametrize("placement", ["shared", "isolated"])
def test_connections_that_are_forwarded_and_not_kept_are_a_finding_of_their_own(placement: Any, golden: Golden) -> None:
    result = measure("connection-rate", _KeepsAShare(placement=placement, knows_limit=False))
    assert (result.median, result.limited_by) == (0, "device")
    (note,) = told(result)
    golden(note)


@pytest.mark.parametrize("seed", range(10))
def test_a_device_that_loses_a_frame_in_half_of_its_trials_is_not_mistaken_for_it(seed: int) -> None:
    assert not told(measure("connection-rate", Gateway(establishes=250_000, rare_loss=0.5, seed=seed)))


def test_a_loss_that_is_tolerated_hides_nothing() -> None:
    gateway = Gateway(establishes=250_000, loses_share=0.001)
    assert measure("connection-rate", gateway, loss_tolerance=0.002).median == pytest.approx(250_000, rel=0.02)
    assert told(measure("connection-rate", gateway, loss_tolerance=0.0005))
