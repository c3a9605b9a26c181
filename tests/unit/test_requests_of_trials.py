# SPDX-License-Identifier: Apache-2.0
"""What is asked of the engine: how many frames leave together, in which order, after what rest, and which are timed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_trial, make_counts, make_outcome
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import FakeTable, Isolated, Recorder, measurer
from tests.unit.made_settings import alone, settings_of
from tests.unit.simulated import Gateway
from tests.unit.test_recording import result, settings

from natgauge.agreement.generated import ReceiverTime, TrialResult
from natgauge.agreement.trial import LEAST_STALL_SECONDS
from natgauge.analysis.derived import comparable
from natgauge.errors import BrokenError, UsageError
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.phases import Phase2Settings
from natgauge.procedures.kit.runner import nominal_seconds
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trial.requests import CATCH_UP_PERCENT, PREPARING_CATCH_UP_PERCENT, learned, pacing, watched_bound
from natgauge.trial.rounds import receiver_seconds, seconds_of, shortened
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


TIME = {"runs": 1000, "runs_ns": 110_000, "empty_runs": 500, "empty_runs_ns": 15_000}
TIMED = PlanOfTrial(1000, 500.0, Phase2Plan(2000.0, 3000.0, 9.0))


def isolated(engine: FakeEngine, **others: Any) -> LabMeasurer:
    subject = measurer(engine, **others)
    subject.place = Isolated()
    return subject


def test_it_is_the_receivers_time_without_what_timing_it_takes() -> None:
    assert seconds_of(ReceiverTime(**TIME)) == pytest.approx(80e-9)


@pytest.mark.parametrize("changed", [{"runs": 0}, {"empty_runs": 0}, {"runs_ns": 30_000}], ids=str)
def test_what_cannot_be_told_is_absent(changed: dict[str, int]) -> None:
    assert seconds_of(ReceiverTime(**{**TIME, **changed})) is None
    assert seconds_of(None) is None


def test_one_trial_like_the_last_that_passed_is_timed_and_not_kept() -> None:
    engine, kept = FakeEngine(receiver_time=TIME), Recorder()
    subject = isolated(engine, recorder=kept)
    assert subject.measure(TIMED).verdict is Verdict.PASS
    engine.lost = 5
    assert subject.measure(replace(TIMED, phase2=Phase2Plan(9000.0, 9000.0, 9.0))).verdict is Verdict.FAIL
    assert receiver_seconds(subject) == pytest.approx(80e-9)
    assert [request.record_receiver_time for request in engine.requests] == [False, False, True]
    asked = engine.requests[-1]
    assert asked.phase1 is not None
    assert asked.phase2 is not None
    assert asked.phase2.initiator is not None
    assert (asked.connections, asked.phase1.rate) == (500, 500.0)
    assert (asked.phase2.initiator.rate, asked.phase2.initiator.frames) == (2000.0, 2000)
    assert len({request.mark for request in engine.requests}) == 3
    assert len(kept.trials) == 2


def test_only_where_the_devices_cores_receive_for_the_tester() -> None:
    engine = FakeEngine(receiver_time=TIME)
    subject = measurer(engine)
    assert subject.measure(TIMED).verdict is Verdict.PASS
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == 1


def test_without_a_trial_that_passed_there_is_nothing_to_time() -> None:
    engine = FakeEngine(lost=3, receiver_time=TIME)
    subject = isolated(engine)
    subject.measure(TIMED)
    asked = len(engine.requests)
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == asked


def test_a_trial_that_breaks_costs_no_measurement() -> None:
    engine = FakeEngine(receiver_time=TIME)
    subject = isolated(engine)
    subject.measure(TIMED)

    def broken(*_: object) -> TrialResult:
        raise BrokenError("trial: the engine broke")

    subject.runner = broken
    assert receiver_seconds(subject) is None


def test_a_device_that_does_not_come_back_is_not_timed() -> None:
    engine = FakeEngine(receiver_time=TIME)
    table = FakeTable(engine)
    subject = isolated(engine, device=table)
    subject.measure(TIMED)
    subject.collapsed = True

    def gone() -> None:
        raise BrokenError("device: gone")

    table.restart = gone  # type: ignore[method-assign]
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == 1


def test_nothing_happens_in_the_timed_trial() -> None:
    step = Phase2Plan(2000.0, 0.0, 60.0, step=RateStep(0.5, 60.0))
    asked = replace(TIMED, phase2=step, delays_from_seconds=30.0, delay_samples=500, record_loss_times=True)
    found = shortened(replace(asked, restart_at_seconds=10.0))
    assert found == replace(TIMED, connections=500, phase2=Phase2Plan(2000.0, 0.0, 1.0))
    assert shortened(PlanOfTrial(100, 500.0)) == PlanOfTrial(100, 500.0)
    assert shortened(replace(TIMED, stateless=True)).connections == TIMED.connections


#: Metrics over standing connections.
READERS = [name for name, one in procedures().items() if issubclass(one.settings, Phase2Settings)]


def settled(metric: str, **asked: object) -> Any:
    return settings_of(
        get(metric), asked, connections=1000, placement="isolated", order="permutation", four_tuples=1000
    )


def test_all_metrics_over_standing_connections_let_the_order_be_chosen() -> None:
    found = {name for name, one in procedures().items() if "reading_order" in {each.name for each in one.inputs()}}
    assert found == set(READERS)
    assert "throughput" in found


@pytest.mark.parametrize("metric", READERS)
@pytest.mark.parametrize("order", ["pseudorandom", "increasing"])
def test_the_order_reaches_the_trial(metric: str, order: str) -> None:
    phase2 = settled(metric, reading_order=order).plan(1e3, 1e4, 2.0).phase2
    assert phase2.reading_order == order


@pytest.mark.parametrize("metric", [name for name in READERS if name != "reset"])
def test_frames_that_are_not_under_test_would_take_turns_of_the_table(metric: str) -> None:
    """With a share of 50 % every second connection had no frame."""
    with pytest.raises(UsageError, match=r"^reading order: increasing, but a foreground share of 50 % needs .*; leave"):
        settled(metric, reading_order="increasing", foreground_share=0.5)
    assert settled(metric, foreground_share=0.5).foreground_share == 0.5


def test_what_is_measured_first_reads_in_the_same_order() -> None:
    gateway = Gateway(forwards=300_000)
    alone("latency", gateway, reading_order="increasing")
    assert {plan.phase2.reading_order for plan in gateway.plans if plan.phase2} == {"increasing"}


def test_the_engine_is_asked_for_that_order() -> None:
    engine = FakeEngine()
    measurer(engine).measure(PlanOfTrial(1000, 500.0, Phase2Plan(0.0, 3000.0, 1.0, reading_order="increasing")))
    responder = engine.requests[0].phase2.responder  # type: ignore[union-attr]
    assert responder is not None
    assert (responder.frames, responder.reading_order) == (3000, "increasing")


@pytest.mark.parametrize("name", ["reading_order", "settle_seconds"])
def test_both_move_a_figure(name: str) -> None:
    other = {"reading_order": "increasing", "settle_seconds": 5.0}[name]
    (difference,) = comparable(result(), result(settings=settings(**{name: other})))
    assert difference.name == name


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_rfc_lets_the_device_settle_for_five_seconds(metric: str) -> None:
    """RFC 2544 section 23."""
    assert settled(metric, profile="rfc").phase1_plan(1e3).settle_seconds == 5.0
    assert settled(metric).phase1_plan(1e3).settle_seconds == 0.0
    assert settled(metric, profile="rfc", settle_seconds=0.0).settle_seconds == 0.0


@pytest.mark.parametrize(
    ("choices", "seconds"), [({}, 0.3), ({"profile": "rfc"}, 2.0), ({"profile": "rfc", "grace_seconds": 0.5}, 0.5)]
)
def test_rfc_waits_two_seconds_for_late_frames_in_any_lab(choices: dict[str, object], seconds: float) -> None:
    """RFC 2544 section 23; before, 0.3 s in namespaces."""
    question = ask("throughput", "nftables-nat44", {"connections": 1000, **choices})
    bench = Bench(question.cell)
    planned = bench.plan("throughput", question.settings)
    assert bench.grace_of(planned.settings) == seconds
    assert planned.demand.after_seconds == planned.settings.phase2_seconds + 2 * seconds


@pytest.mark.parametrize(
    ("gateway", "choices", "seconds"),
    [
        ("knot-dns", {}, 1.0),
        ("knot-dns", {"frame_timeout_seconds": 0.2}, 0.3),
        ("nftables-nat44", {"frame_timeout_seconds": 1.5}, 1.5),
        ("nftables-nat44", {"frame_timeout_seconds": 1.5, "grace_seconds": 1.5}, 1.5),
        ("nftables-nat44", {}, 0.3),
    ],
)
def test_what_is_in_time_is_waited_for(gateway: str, choices: dict[str, object], seconds: float) -> None:
    """Answers of a DNS server had 1 s, but those that came 0.3 s after the last query counted as lost."""
    question = ask("resolution-rate", gateway, {"connections": 1000, **choices})
    bench = Bench(question.cell)
    assert bench.grace_of(bench.plan("resolution-rate", question.settings).settings) == seconds


def test_a_grace_that_ends_before_a_frame_is_late_is_refused() -> None:
    question = ask("throughput", "nftables-nat44", {"frame_timeout_seconds": 1.5, "grace_seconds": 1.0})
    with pytest.raises(UsageError, match=r"^grace: 1 s, but a frame has 1\.5 s before it is late") as refused:
        Bench(question.cell).plan("throughput", question.settings)
    assert refused.value.at == "grace_seconds"


def test_the_device_settles_with_its_table_empty_and_before_the_trial() -> None:
    engine = FakeEngine()
    table = FakeTable(engine)
    seen: list[tuple[float, int, int]] = []
    tester = measurer(engine, device=table, sleep=lambda s: seen.append((s, table.emptied, len(engine.requests))))
    for _ in range(2):
        tester.measure(PlanOfTrial(1000, 500.0, settle_seconds=5.0))
    assert seen == [(5.0, 1, 0), (5.0, 2, 1)]


def test_the_time_in_which_a_device_settles_is_part_of_the_trials() -> None:
    assert nominal_seconds(PlanOfTrial(1000, 500.0, Phase2Plan(1e3, 1e3, 3.0), settle_seconds=5.0)) == 10.0
    assert nominal_seconds(PlanOfTrial(1000, 500.0, settle_seconds=5.0)) == 7.0
