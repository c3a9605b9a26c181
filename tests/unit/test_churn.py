# SPDX-License-Identifier: Apache-2.0
"""New connections in phase 2 while the oldest leave, and frames that are not the test's."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals, change_trial, make_counts, make_outcome, make_trial
from tests.unit.fake_engine import CLEAN, FakeEngine
from tests.unit.fake_measurer import SETTINGS
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_for
from tests.unit.simulated import Gateway
from tests.unit.simulated import reading as reading_of
from tests.unit.simulated_subscribers import Mixed, engine_needs, profile
from tests.unit.test_measurer_trials import Played, measurer, phase2_of

from natgauge.agreement.generated import Phase2Counts, StreamCounts, StreamTally
from natgauge.doubts import find
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.gateways.limits import choose, octets_needed, refuse_short_memory, refuse_unfit
from natgauge.gateways.recipe import load as recipe_of
from natgauge.host.capabilities import ControlGroups
from natgauge.inputs.question import DeviceOptions
from natgauge.measurer import OutlastingError
from natgauge.notes import Note
from natgauge.other_traffic import OtherTraffic, other_traffic_note
from natgauge.procedures import connection_rate
from natgauge.procedures.kit.mixed_loads import CombinedLoad
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.mixed_load import MixedLoadSettings
from natgauge.procedures.subscribers import SubscribersSettings
from natgauge.readings import Churn, CountInChurn, expected_count, kept_after, most_new
from natgauge.records.parameters import Parameters
from natgauge.trial import forwarding
from natgauge.trial.bench import Bench
from natgauge.trial.controls import counted as count_of
from natgauge.trial.controls import with_expected
from natgauge.trial.planned import Planned, refuse_large
from natgauge.trial.question import ask
from natgauge.trial.rounds import fault_of
from natgauge.trials import Phase2Plan, Trial
from natgauge.verdicts import Limits, judge
from natgauge.words import Leave, Verdict

CHURN = Churn(100.0, guard_seconds=0.05)
PLAN = PlanOfTrial(1000, 500.0, Phase2Plan(2000.0, 2000.0, 2.0, churn=CHURN))


def all_came(frames: int, **others: Any) -> StreamCounts:
    return make_counts(frames, frames, frames, nominal_seconds=2.0, sending_seconds=2.0, **others)


def lost_of(frames: int, lost: int) -> StreamCounts:
    return make_counts(frames, frames, frames - lost, nominal_seconds=2.0, sending_seconds=2.0)


def made(
    openings: StreamCounts | None = None,
    down: StreamCounts | None = None,
    closings: StreamCounts | None = None,
    **others: Any,
) -> Trial:
    trial = make_trial(PLAN, phase1=make_counts(1000, 1000, 1000), stored=1200)
    phase2 = Phase2Counts(
        initiator=all_came(4000),
        responder=down or all_came(4000),
        openings=openings or all_came(200),
        closings=closings,
    )
    trial = replace(trial, result=trial.counted.model_copy(update={"phase2": phase2}))
    return change_trial(trial, **others)


def with_flood(trial: Trial, flood: StreamCounts) -> Trial:
    """The same trial with a flood of these counts."""
    phase2 = trial.counted.phase2
    assert phase2 is not None
    counted = trial.counted.model_copy(update={"phase2": phase2.model_copy(update={"flood": flood})})
    return replace(trial, result=counted)


def judged(trial: Trial, table_limit: int | None = None) -> Trial:
    return judge(trial, Limits(table_limit=table_limit))


# What is requested


@pytest.mark.parametrize(("leave", "closes"), [("silent", False), ("fin", True), ("reset", True)])
def test_a_trial_with_churn_is_requested_and_has_counts_of_what_was_opened_and_closed(
    leave: Leave,
    closes: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    engine = FakeEngine()
    assert PLAN.phase2 is not None
    churned = replace(PLAN, phase2=replace(PLAN.phase2, churn=replace(CHURN, leave=leave)))
    trial = measurer(engine).measure(churned)
    churn = phase2_of(engine).churn
    assert churn is not None
    assert (churn.new_per_second, churn.leave, churn.guard_ms) == (100.0, leave, 50)
    assert trial.openings is not None
    assert trial.openings.intended_frames == 200
    assert (trial.closings is not None) == closes
    assert len(trial.streams) == 4 + closes
    assert trial.verdict is Verdict.PASS


def test_more_connections_than_four_tuples_are_refused() -> None:
    engine = FakeEngine()
    bench = measurer(engine)
    most = bench.traffic.space - PLAN.connections
    assert PLAN.phase2 is not None
    for seconds in (most / 100, most / 100 + 1):
        longer = replace(PLAN, phase2=replace(PLAN.phase2, seconds=seconds))
        if seconds == most / 100:
            bench.measure(longer)
        else:
            with pytest.raises(UsageError) as refused:
                bench.measure(longer)
            assert refused.value.at == "connections"
    assert len(engine.requests) == 1


def test_a_time_out_must_outlast_the_pauses_of_a_connection_but_not_the_trial() -> None:
    engine = FakeEngine()
    # 30 * 1000 / 4000 s without a frame, after 2 s of phase 1 and its grace.
    assert PLAN.phase2 is not None
    long = replace(PLAN, phase2=replace(PLAN.phase2, seconds=60.0))
    trial = measurer(engine, settings=replace(SETTINGS, udp_timeout=11)).measure(long)
    assert trial.verdict is Verdict.PASS
    with pytest.raises(OutlastingError):
        measurer(engine, settings=replace(SETTINGS, udp_timeout=9)).measure(long)


# The gateway's own count


class Counted(Played):
    """A device that reports its count; `keeps` = seconds for which it keeps closed connections."""

    def __init__(self, engine: FakeEngine, count: int | None, keeps: Mapping[str, int]) -> None:
        super().__init__(engine)
        self.read, self.keeps, self.was_read = count, keeps, threading.Event()

    def count_unexpired(self) -> int:
        self.was_read.set()
        # No frames flow meanwhile.
        assert self.engine.answered.is_set() or not self.engine.requests
        if self.read is None:
            raise BrokenError("device: gone")
        return self.read

    def lingering(self) -> Mapping[str, int]:
        return self.keeps

    def count_established(self) -> int:
        return 0


def counted(count: int | None, *, leave: Leave = "silent", timeout: int | None = 4) -> Trial:
    engine = FakeEngine()
    device = Counted(engine, count, {"fin": 1, "rst": 0})
    assert PLAN.phase2 is not None
    churned = replace(PLAN, phase2=replace(PLAN.phase2, seconds=0.02, churn=replace(CHURN, leave=leave)))
    return measurer(engine, device, settings=replace(SETTINGS, udp_timeout=timeout)).measure(churned)


def counting(device: Counted, *, expires: bool) -> CountInChurn:
    """The reading 1 s after a phase 2 of 10 s."""
    asking = measurer(device.engine, device).asking
    phase2 = Phase2Plan(2000.0, 2000.0, 10.0, churn=CHURN)
    read = count_of(phase2, device, asking, began=time.monotonic() - 11.0, expires=expires)
    assert read is not None
    assert read.seconds == pytest.approx(11.0, abs=0.5)
    return read


@pytest.mark.parametrize("expires", [True, False])
def test_a_device_walks_through_its_table_only_where_a_connection_may_have_ended(*, expires: bool) -> None:
    device = Counted(FakeEngine(), 1001, {})
    read = counting(device, expires=expires)
    assert device.was_read.is_set() == expires
    assert read.changing < CHURN.new_per_second / 2


@pytest.mark.parametrize("expires", [True, False])
def test_a_device_that_forgets_only_when_the_next_connection_comes_may_hold_what_has_ended_since(
    *, expires: bool
) -> None:
    class Lazy(Counted):
        def count_unexpired(self) -> None:  # type: ignore[override]
            return None

    read = counting(Lazy(FakeEngine(), 1001, {}), expires=expires)
    assert read.count == 7
    assert (read.changing >= CHURN.new_per_second) == expires


@pytest.mark.parametrize(("timeout", "walks"), [(4, True), (None, True), (60, False)])
def test_a_trial_within_the_time_out_ends_no_connection(timeout: int | None, *, walks: bool) -> None:
    engine = FakeEngine()
    device = Counted(engine, 1001, {})
    assert PLAN.phase2 is not None
    short = replace(PLAN, phase2=replace(PLAN.phase2, seconds=0.02, churn=CHURN))
    measurer(engine, device, settings=replace(SETTINGS, udp_timeout=timeout)).measure(short)
    assert device.was_read.is_set() == walks


def test_the_count_is_read_next_to_the_expected_one() -> None:
    reading = counted(1001).readings.count_in_churn
    assert reading is not None
    assert reading.count == 1001
    assert reading.expected == pytest.approx(1000 + 100 * min(reading.seconds, 0.02))
    unknown = counted(1001, timeout=None).readings.count_in_churn
    assert unknown is not None
    assert unknown.expected is None
    assert not unknown.deviates
    closed = counted(1000, leave="reset").readings.count_in_churn
    assert closed is not None
    assert closed.expected == 1000


@pytest.mark.parametrize(("down", "timeout", "idle"), [(2000.0, 120, 0.0), (0.0, 30, 0.05 + 990 / 2000)])
def test_frames_both_ways_are_kept_for_their_own_time_out(down: float, timeout: float, idle: float) -> None:
    assert PLAN.phase2 is not None
    trial = replace(made(), plan=replace(PLAN, phase2=replace(PLAN.phase2, responder_rate=down, seconds=60.0)))
    trial = reading_of(trial, count_in_churn=CountInChurn(50.0, 6000))
    settings = replace(SETTINGS, udp_timeout=30, replied_udp_timeout=120)
    reading = with_expected(trial, 30, settings).readings.count_in_churn
    assert reading is not None
    assert reading.expected == pytest.approx(1000 + 100 * min(50, timeout - idle))


def test_a_device_that_does_not_report_its_count_does_not_end_the_trial() -> None:
    trial = counted(None)
    assert (trial.verdict, trial.readings.count_in_churn, trial.command_failures) == (Verdict.PASS, None, 1)


@pytest.mark.parametrize(("rate", "fresh", "timeout"), [(400.0, 20.0, 8), (60.0, 20.0, 12), (2000.0, 50.0, 3)])
def test_the_expected_count_is_that_of_a_device_that_forgets_silent_connections(
    rate: float, fresh: float, timeout: float
) -> None:
    # Connection i opens at i / c, leaves at (i + N) / c, and frames go to random ones between their guards.
    chance = random.Random(1)  # noqa: S311 - a draw of a test
    connections, seconds = 300, 120.0
    churn = Churn(fresh, guard_seconds=0.5)
    guarded = round(fresh * churn.guard_seconds)
    last = dict.fromkeys(range(connections), 0.0)
    for frame in range(int(rate * seconds)):
        at = frame / rate
        left = int(at * fresh)
        last.setdefault(left + connections, at)
        number = left + chance.randrange(guarded, connections - guarded)
        last[number] = at
    alive = sum(seconds - at < timeout or number >= seconds * fresh for number, at in last.items())
    kept = kept_after(churn, connections=connections, rate=rate, timeout=timeout)
    expected = expected_count(churn, connections=connections, kept=kept, seconds=seconds, until=seconds)
    # Its spread is that of some hundred independent times.
    assert alive == pytest.approx(expected, abs=4 * math.sqrt(fresh * connections / rate))
    assert kept_after(replace(churn, leave="fin"), connections=300, rate=rate, timeout=timeout) == timeout
    assert expected_count(churn, connections=300, kept=1e6, seconds=2.0, until=2.0) == 300 + 2 * fresh


@pytest.mark.parametrize(("seconds", "left"), [(5.0, 50), (10.0, 100), (12.0, 100), (22.0, 80), (29.0, 10), (40.0, 0)])
def test_those_that_left_are_forgotten_in_turn_when_phase_2_is_over(seconds: float, left: int) -> None:
    assert expected_count(Churn(10.0), connections=300, kept=20.0, seconds=seconds, until=10.0) == 300 + left


def test_a_count_that_is_off_by_more_than_a_hundredth_is_doubted_and_decides_nothing() -> None:
    for count, changing, doubts in [(1190, 0, 0), (1212, 0, 0), (1186, 0, 1), (1214, 0, 1), (1214, 2, 0), (1215, 2, 1)]:
        trial = judged(made(count_in_churn=CountInChurn(2.0, count, 1200.0, changing)))
        assert trial.verdict is Verdict.PASS
        assert trial.readings.count_in_churn is not None
        assert trial.readings.count_in_churn.deviates == bool(doubts)
        assert len(trial.remarks) - len(judged(made()).remarks) == doubts


# The verdict


def test_a_lost_opening_fails_phase_2_and_a_full_table_is_named() -> None:
    trial = judged(made(openings=lost_of(200, 1)))
    assert (trial.verdict, trial.failed_phase, trial.limited_by) == (Verdict.FAIL, 2, "device")
    full = CountInChurn(2.0, 1100)
    trial = judged(made(openings=lost_of(200, 100), count_in_churn=full), table_limit=1100)
    assert (trial.verdict, trial.failed_phase, trial.limited_by) == (Verdict.FAIL, 2, "table")
    trial = judged(made(openings=lost_of(200, 1), loss_tolerance=0.01))
    assert trial.verdict is Verdict.PASS


def test_a_table_that_the_last_openings_fill_is_named_although_it_had_room_when_it_was_read() -> None:
    """Seen: 11 of 100 openings were refused at 3000 of 3000 connections, and 2974 were read before the end."""
    before = CountInChurn(2.0, 1080)
    for after in (1100, 1080, None):
        trial = judged(
            made(
                openings=lost_of(200, 100),
                count_in_churn=before,
                count_after=after,
                network_counters={"gateway": {"conntrack drop": 100}},
            ),
            table_limit=1100,
        )
        assert trial.limited_by == "table", after


@pytest.mark.parametrize("lag", [0.005, 0.05])
def test_a_device_that_is_behind_fails_phase_2_although_few_connections_are_opened(lag: float) -> None:
    """The time between two openings was longer than the lag, and the sender was said to wake up late."""
    few = make_counts(20, 20, 20, nominal_seconds=2.0, sending_seconds=2.0, settled_lag_seconds=lag)
    for counts in ({"openings": few}, {"openings": few, "closings": few}, {"closings": few}):
        trial = judged(made(**counts, placement="shared"))
        assert (trial.verdict, trial.failed_phase, trial.limited_by) == (Verdict.FAIL, 2, "device")


def test_a_connection_that_is_not_closed_fails_phase_2() -> None:
    trial = judged(made(closings=lost_of(200, 1)))
    assert (trial.verdict, trial.failed_phase, trial.limited_by) == (Verdict.FAIL, 2, "device")


def test_frames_down_of_an_unopened_connection_are_lost_and_no_fault_of_the_tester() -> None:
    down = make_counts(4000, 3980, 3980, unopened=20, nominal_seconds=2.0, sending_seconds=2.0)
    assert down.lost == 20
    trial = judged(made(down=down))
    assert (trial.verdict, trial.failed_phase, trial.limited_by) == (Verdict.FAIL, 2, "device")
    few = make_counts(4000, 3979, 3979, unopened=20, nominal_seconds=2.0, sending_seconds=2.0)
    assert judged(made(down=few)).limited_by == "tester"
    assert judged(made(down=down, loss_tolerance=0.005)).verdict is Verdict.PASS


def test_wrong_frames_count_with_all_that_were_due_against_the_tolerance() -> None:
    """Lost are also the frames to connections that were not opened, and the tolerance was a share of the others."""
    down = make_counts(4000, 3900, 3802, unopened=100, damaged=1, nominal_seconds=2.0, sending_seconds=2.0)
    assert down.lost == 198
    assert judged(made(down=down, loss_tolerance=0.05)).verdict is Verdict.PASS
    more = make_counts(4000, 3900, 3799, unopened=100, damaged=1, nominal_seconds=2.0, sending_seconds=2.0)
    reason = judged(made(down=more, loss_tolerance=0.05)).reason
    assert "1 damaged of 4000 frames, 201 lost in all" in reason


class Forgetful(Gateway):
    """A gateway that counts so many connections where 1,200 are expected, in trials with one of these verdicts."""

    def __init__(self, counts: int, verdicts: Collection[Verdict] = tuple(Verdict)) -> None:
        super().__init__(establishes=50_000.0)
        self._read = CountInChurn(2.0, counts, 1200.0)
        self._verdicts = verdicts

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = super().measure(plan)
        return change_trial(outcome, count_in_churn=self._read) if outcome.verdict in self._verdicts else outcome


@pytest.mark.parametrize(("counts", "deviation"), [(1200, None), (1260, 0.05), (600, -0.5)])
def test_a_result_has_the_doubt_with_the_worst_deviation(counts: int, deviation: float | None) -> None:
    settings = connection_rate.ConnectionRateSettings(connections=100_000, placement="isolated", repeat=1)
    found: MeasurementResult = connection_rate.PROCEDURE.measure(Forgetful(counts), settings)
    doubts = [doubt for doubt in find(found, Parameters()) if doubt.word == "unexpected count"]
    assert [doubt.value for doubt in doubts] == ([] if deviation is None else [pytest.approx(deviation)])


def test_a_trial_that_failed_says_nothing_of_what_the_device_forgets() -> None:
    """Its openings were lost or late, so the device never had them."""
    settings = connection_rate.ConnectionRateSettings(connections=100_000, placement="isolated", repeat=1)
    found: MeasurementResult = connection_rate.PROCEDURE.measure(Forgetful(600, {Verdict.FAIL}), settings)
    assert found.trials[Verdict.FAIL]
    assert "unexpected count" not in {doubt.word for doubt in find(found, Parameters())}


QUIET = OtherTraffic(0, 100_000, 2.0)


@pytest.mark.parametrize(
    ("seen", "doubted"),
    [
        (QUIET, False),
        (OtherTraffic(100, 100_000, 2.0), False),
        (OtherTraffic(101, 100_000, 2.0), True),
        # A switch, a router and ARP for others on a link of which the test uses little.
        (OtherTraffic(20, 8, 0.3), False),
        (OtherTraffic(200, 1000, 10.0), False),
        (OtherTraffic(201, 1000, 10.0), True),
        # A device that forges as many frames as it loses.
        (OtherTraffic(90, 180, 0.5), True),
        (OtherTraffic(30, 0, 0.5), True),
    ],
)
def test_more_than_a_thousandth_is_doubted_and_what_is_usual_on_a_link_is_not(
    seen: OtherTraffic,
    doubted: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert seen.is_doubted == doubted
    assert bool(other_traffic_note([QUIET, seen], "trials")) == doubted


def test_the_doubt_has_the_worst_trial_and_the_number_of_trials(golden: Golden) -> None:
    (note,) = other_traffic_note([QUIET, OtherTraffic(500, 100_000, 1.0), OtherTraffic(25_000, 100_000, 1.0)], "trials")
    assert note.word == "other traffic"
    golden(note.text)
    assert (note.count, note.value, note.grade) == (2, 0.25, "answer")


def test_a_small_share_widens_the_interval_only() -> None:
    (note,) = other_traffic_note([OtherTraffic(500, 100_000, 1.0)], "rounds")
    assert note.grade == "interval"


class Busy(Gateway):
    """A gateway on whose link others send, too."""

    def __init__(self, foreign: int, verdict: Verdict | None = None) -> None:
        super().__init__(establishes=50_000.0)
        self._foreign, self._verdict = foreign, verdict

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """Measure as usual, with other traffic in trials with this verdict."""
        outcome = super().measure(plan)
        if self._verdict not in (None, outcome.verdict):
            return outcome
        return change_trial(outcome, foreign=self._foreign)


def doubts_of(gateway: Gateway) -> list[Note]:
    settings = connection_rate.ConnectionRateSettings(connections=100_000, placement="isolated", repeat=1)
    found: MeasurementResult = connection_rate.PROCEDURE.measure(gateway, settings)
    return [doubt for doubt in find(found, Parameters()) if doubt.word == "other traffic"]


@pytest.mark.parametrize("verdict", [None, Verdict.PASS, Verdict.FAIL])
def test_a_result_has_the_doubt_whether_its_trials_passed_or_failed(verdict: Verdict | None) -> None:
    assert len(doubts_of(Busy(5000, verdict))) == 1


def test_foreign_frames_are_a_share_of_all_frames_that_the_tester_sent() -> None:
    """Of 1,000 handshakes, 2,900 frames were sent; the flood beside them was left out."""
    handshakes = [arrivals("syn", 950), arrivals("syn-ack", 950), arrivals("ack", 940)]
    first = make_counts(1000, 1000, 940, messages=handshakes)
    assert make_outcome(phase1=first, foreign=29).other_traffic.share == 0.01
    flooded = with_flood(made(foreign=9), lost_of(1000, 999))
    assert flooded.other_traffic.offered == made().other_traffic.offered + 1000


def test_a_result_without_other_traffic_or_with_it_in_invalid_trials_only_has_no_doubt() -> None:
    assert doubts_of(Busy(100)) == []
    assert doubts_of(Busy(5000, Verdict.INVALID)) == []


@given(offered=st.integers(0, 10**9), received=st.integers(0, 10**9))
def test_the_number_of_lost_frames_is_never_negative(offered: int, received: int) -> None:
    assert make_counts(offered, offered, received).lost == max(0, offered - received)


def _stream(made: int, received: int) -> StreamTally:
    return StreamTally.model_validate({"made_frames": made, "received_frames": received, **CLEAN})


@pytest.mark.parametrize(("received", "fault"), [(8, False), (7, True), (9, True)])
def test_a_round_is_void_unless_just_the_frames_that_were_made_came_back(
    received: int,
    fault: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    right = _stream(8, 8)
    others = {"refused_frames": 0, "damaged_unmarked": 0, "stored": 8, "remapped": 0}
    counts: Any = SimpleNamespace(new=right, initiator=_stream(8, received), responder=right, **others)
    assert bool(fault_of(counts, 8, None)) == fault


def test_a_device_that_returns_more_than_was_sent_is_refused_before_the_first_trial(golden: Golden) -> None:
    stream = make_counts(8, 8, 635)
    ports = SimpleNamespace(initiator=SimpleNamespace(device_signs=None), responder=SimpleNamespace(device_signs=None))
    result: Any = SimpleNamespace(phase1=stream, phase2=None, ports=ports)
    with golden.raises(BrokenError):
        forwarding.whole(result, last=True, faults={})


def test_a_request_has_the_flood_and_its_losses_fail_no_trial() -> None:
    engine = FakeEngine()
    assert PLAN.phase2 is not None
    assert PLAN.phase2.churn is not None
    churn = replace(PLAN.phase2.churn, flood_per_second=500.0)
    measurer(engine).measure(replace(PLAN, phase2=replace(PLAN.phase2, churn=churn)))
    asked = phase2_of(engine).churn
    assert asked is not None
    assert asked.flood_per_second == 500
    assert judged(with_flood(made(), lost_of(1000, 999))).verdict is Verdict.PASS
    unsent = make_counts(1000, 900, 900, nominal_seconds=2.0, sending_seconds=2.0)
    assert judged(with_flood(made(), unsent)).limited_by == "tester"


def test_a_flood_may_fill_the_table_after_it_was_read() -> None:
    trial = made(
        openings=lost_of(200, 100),
        count_in_churn=CountInChurn(2.0, 900),
        network_counters={"gateway": {"conntrack drop": 100}},
    )
    assert judged(trial, table_limit=2000).limited_by == "device"
    assert judged(with_flood(trial, all_came(1000)), table_limit=2000).limited_by == "table"


# What is planned


def planned(metric: str, gateway: str, choices: dict[str, Any]) -> Planned:
    """Plan a measurement; nothing is started."""
    question = ask(metric, gateway, choices)
    return Bench(question.cell).plan(question.metric, question.settings)


@pytest.mark.parametrize(
    ("new", "down", "forgets", "known"), [(0.1, 1, 30, 120), (0.1, 0, 30, 30), (0.1, 1, None, None), (0, 1, 30, None)]
)
def test_the_time_out_that_decides_the_entries_is_a_parameter(
    tmp_path: Path, new: float, down: float, forgets: int | None, known: int | None
) -> None:
    truth = Mixed(forgets=forgets, replied=None if forgets is None else 120)
    settings = settings_for("subscribers", subscriber=profile(tmp_path, new, 1, down))
    facts = dict(settings.facts_of(truth))
    assert facts == ({} if known is None else {"forgets_after_seconds": known})


@pytest.mark.parametrize(
    ("new", "held", "kept", "at_first", "beyond"),
    [
        # Of those that leave in 60 s, the device still holds those of the last 30 s.
        (0.38, 20, 30.0, 860, 0),
        (0.38, 45.6, 120.0, 2280, 0),
        # As many leave as there are: connections are open for a second.
        (0.5, 15, 30.0, 50, 50),
        (0.38, 20, math.inf, 1000, 1280),
        (0.38, 20, None, 2000, 0),
    ],
)
def test_phase_1_opens_what_the_table_lacks_at_the_end_of_a_long_trial(
    new: float, held: float, kept: float | None, at_first: int, beyond: int
) -> None:
    load_ = CombinedLoad(new, held, 1, 1, kept=kept).times(100)
    assert load_.at_first(60) == at_first
    assert load_.beyond(60) == pytest.approx(beyond)


@pytest.mark.parametrize("connections", [*range(1, 40), 100, 1000])
def test_a_plan_leaves_the_engine_connections_for_frames(connections: int) -> None:
    settings = MixedLoadSettings(connections=1000, placement="isolated")
    for share in (0.001, 0.1, 0.26, 0.5, 0.76, 1.0):
        new = share * most_new(max(7, connections))
        plan = CombinedLoad(new, connections, 1000.0, 1000.0).plan(settings, 1000.0, 10.0)
        assert plan.phase2 is not None
        assert plan.phase2.churn is not None
        assert plan.connections >= engine_needs(plan.phase2.churn)


def test_the_frame_sizes_of_a_profile_contain_no_vlan_tags(tmp_path: Path) -> None:
    file = profile(tmp_path, 1.0, 2.0, 2.0, more="up_frame_sizes = 594\n")
    for vlan, octets in ((None, 594), ("100", 598), ("9.100", 602)):
        traffic = SubscribersSettings.traffic_of({"subscriber": file, "initiator_vlan": vlan})
        assert traffic["frame_size"] == octets


def test_a_device_without_a_table_carries_subscribers_too(tmp_path: Path) -> None:
    chosen = {"subscriber": profile(tmp_path, 0.1, 1, 1), "subscribers": 5000}
    assert planned("subscribers", "map-t-br", chosen).demand.source_addresses == 5000


@pytest.mark.parametrize(
    ("chosen", "least", "most"),
    [
        # A share of the frames: as many as there are four tuples for, or as the tester can open in 2 s.
        ({}, 100_000, 129_024),
        ({"destination_ports": "1-20"}, 100_000, 100_000 + 2 * 39_604),
        ({"destination_ports": "1-20", "life_seconds": 60.0}, 100_000, 20 * 64_512),
        # At every frame rate.
        ({"destination_ports": "1-20", "new_rate": 100_000.0}, 300_000, 300_000),
        ({"new_rate": 0.0}, 100_000, 100_000),
    ],
)
def test_the_table_has_room_for_what_phase_2_opens(chosen: dict[str, Any], least: int, most: int) -> None:
    demand = planned("mixed-load", "nftables-nat44", {"connections": 100_000, **chosen}).demand
    assert (demand.connections, demand.least_held) == (100_000, least)
    assert demand.most_held == pytest.approx(most, rel=0.02)
    recipe = recipe_of("nftables-nat44")
    assert choose(recipe, demand, DeviceOptions(), {"table_size": 65_536})["table_size"] >= demand.most_held
    # A table that the user chose must hold what every load opens.
    refuse_unfit(recipe, demand, {"table_size": least})
    with pytest.raises(UsageError, match=f"at least {least}"):
        refuse_unfit(recipe, demand, {"table_size": least - 1})


def test_memory_must_hold_what_every_load_opens_and_not_the_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"connections": 100_000, "destination_ports": "1-100", "trial_seconds": 60.0}
    demand = planned("mixed-load", "nftables-nat44", chosen).demand
    assert demand.most_held > 2_000_000
    recipe = recipe_of("nftables-nat44")
    needed = octets_needed(recipe, demand, {}, {})
    refuse_short_memory(recipe, demand, needed, 2**29)
    with pytest.raises(HostError, match="a table of 100000 connections takes 37 MiB"):
        refuse_short_memory(recipe, demand, needed, 2**28)
    monkeypatch.setattr(ControlGroups, "memory_left", lambda _groups: 1_000_000)
    refuse_large(recipe, None, demand, stores=True, own_processes=False)


def test_the_table_has_room_for_more_draws_than_connections() -> None:
    chosen = {"connections": 10_000, "order": "with-replacement", "draws": 50_000, "source_ports": "1024-50000"}
    demand = planned("connection-rate", "nftables-nat44", chosen).demand
    assert demand.connections == 10_000
    assert 30_000 < demand.least_held < demand.most_held == 48_977
