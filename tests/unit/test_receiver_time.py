# SPDX-License-Identifier: Apache-2.0
"""What the tester's receiver takes of an isolated device's cores: when it is measured, and with which trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.test_measurer import FakeTable, Isolated, Recorder, measurer

from natgauge.agreement.generated import ReceiverTime, TrialResult
from natgauge.errors import BrokenError
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.receiver_time import receiver_seconds, seconds_of, shortened
from natgauge.trials import Phase2Plan, RateStep
from natgauge.words import Verdict

TIME = {"runs": 1000, "runs_ns": 110_000, "empty_runs": 500, "empty_runs_ns": 15_000}
PLAN = PlanOfTrial(1000, 500.0, Phase2Plan(2000.0, 3000.0, 9.0))


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
    assert subject.measure(PLAN).verdict is Verdict.PASS
    engine.lost = 5
    assert subject.measure(replace(PLAN, phase2=Phase2Plan(9000.0, 9000.0, 9.0))).verdict is Verdict.FAIL
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
    assert subject.measure(PLAN).verdict is Verdict.PASS
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == 1


def test_without_a_trial_that_passed_there_is_nothing_to_time() -> None:
    engine = FakeEngine(lost=3, receiver_time=TIME)
    subject = isolated(engine)
    subject.measure(PLAN)
    asked = len(engine.requests)
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == asked


def test_a_trial_that_breaks_costs_no_measurement() -> None:
    engine = FakeEngine(receiver_time=TIME)
    subject = isolated(engine)
    subject.measure(PLAN)

    def broken(*_: object) -> TrialResult:
        raise BrokenError("trial: the engine broke")

    subject.runner = broken
    assert receiver_seconds(subject) is None


def test_a_device_that_does_not_come_back_is_not_timed() -> None:
    engine = FakeEngine(receiver_time=TIME)
    table = FakeTable(engine)
    subject = isolated(engine, device=table)
    subject.measure(PLAN)
    subject.collapsed = True

    def gone() -> None:
        raise BrokenError("device: gone")

    table.restart = gone  # type: ignore[method-assign]
    assert receiver_seconds(subject) is None
    assert len(engine.requests) == 1


def test_nothing_happens_in_the_timed_trial() -> None:
    step = Phase2Plan(2000.0, 0.0, 60.0, step=RateStep(0.5, 60.0))
    asked = replace(PLAN, phase2=step, delays_from_seconds=30.0, delay_samples=500, record_loss_times=True)
    found = shortened(replace(asked, restart_at_seconds=10.0))
    assert found == replace(PLAN, connections=500, phase2=Phase2Plan(2000.0, 0.0, 1.0))
    assert shortened(PlanOfTrial(100, 500.0)) == PlanOfTrial(100, 500.0)
    assert shortened(replace(PLAN, stateless=True)).connections == PLAN.connections
