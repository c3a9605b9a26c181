# SPDX-License-Identifier: Apache-2.0
"""The frame of every measurement: settings from what was asked for, refusals, and the one part that is a metric's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import Ability, Measurer
from natgauge.metrics.metric import Metric
from natgauge.notes import Note
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.repetitions import Answered, Repetitions
from natgauge.procedures.kit.result.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.settings import DECIDED_ELSEWHERE, TrialSettings
from natgauge.words import Verdict

DECIDED: dict[str, Any] = {
    "connections": 1000,
    "placement": "isolated",
    "own_processes": False,
    "order": "increasing",
    "four_tuples": 5000,
}


def test_settings_are_made_of_what_traffic_and_lab_decided_and_of_what_was_asked() -> None:
    found = settings_of(get("throughput"), {"error": "2%", "repeat": "7", "trial_seconds": 0.5}, **DECIDED)
    assert (found.connections, found.placement, found.order) == (1000, "isolated", "increasing")
    assert (found.error, found.repeat, found.trial_seconds) == (SearchError(share=0.02), 7, 0.5)


def test_what_is_asked_goes_before_the_metrics_profile_and_that_before_the_common_one() -> None:
    found = settings_of(get("throughput"), {"profile": "standard", "goals": "rfc2544"}, **DECIDED)
    assert (found.goals, found.search, found.trial_seconds, found.repeat) == ("rfc2544", "mlrsearch", 1.0, 1)
    assert (found.error, found.profile) == (SearchError(share=0.005), "standard")


def test_only_a_metric_that_draws_four_tuples_gets_their_number() -> None:
    assert settings_of(get("enumeration-orders"), {}, **DECIDED).space == 5000
    assert settings_of(get("connection-rate"), {}, **DECIDED).four_tuples is None
    assert not hasattr(settings_of(get("throughput"), {}, **DECIDED), "four_tuples")


@pytest.mark.parametrize("name", sorted(DECIDED_ELSEWHERE))
def test_what_traffic_and_lab_decide_is_no_setting_of_a_metric(name: str, golden: Golden) -> None:
    for metric in procedures():
        with golden.raises(UsageError):
            settings_of(get(metric), {name: DECIDED[name]}, **DECIDED)


def test_every_ability_that_is_missing_is_named_before_anything_starts(golden: Golden) -> None:
    procedure, gateway = get("system-recovery"), Gateway()
    settings = settings_of(procedure, {"stateless": True}, **DECIDED)
    for refuse in (
        lambda: procedure.refuse_unable(gateway.abilities, settings),
        lambda: procedure.measure(gateway, settings),
    ):
        with golden.raises(UsageError):
            refuse()
    assert not gateway.plans


class _Least(Measurer):
    """A measurer that can do no more than it must."""

    @property
    def highest_rate(self) -> float:
        return 1e6

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """Pass up to 100,000 connections/s."""
        came = plan.connections if plan.phase1_rate <= 1e5 else plan.connections - 1
        counts = make_counts(plan.connections, plan.connections, came, nominal_seconds=1.0, sending_seconds=1.0)
        if counts.lost:
            return make_outcome(Verdict.FAIL, "1 frame was lost", counts, limited_by="device", failed_phase=1)
        return make_outcome(Verdict.PASS, "", counts, stored=came)


def test_a_measurer_that_only_measures_is_enough_for_a_plain_metric() -> None:
    procedure = get("connection-rate")
    result = procedure.measure(_Least(), settings_of(procedure, {"repeat": 1}, **DECIDED))
    assert result.summary.median == pytest.approx(1e5, rel=0.01)


PHASE1 = PlanOfTrial(10, 10.0)
VERBS: list[tuple[Ability, Callable[[Measurer], object]]] = [
    (Ability.EMPTY_TIMED, lambda measurer: measurer.empty_timed()),
    (Ability.WATCH_COUNT, lambda measurer: measurer.watch_count(0.1, 1.0)),
    (Ability.RESTART, lambda measurer: measurer.restart()),
    (Ability.OWN_DELAYS, lambda measurer: measurer.own_delays(PHASE1)),
]


@pytest.mark.parametrize("act", [act for _, act in VERBS], ids=[ability.name for ability, _ in VERBS])
def test_what_a_measurer_does_not_give_refuses_in_one_line(act: Callable[[Measurer], object], golden: Golden) -> None:
    assert _Least().abilities == frozenset()
    with golden.raises(UsageError):
        act(_Least())


class _Counted(Repetitions[TrialSettings]):
    """Its value is the number of the repetition."""

    def once(self, known: float | None) -> Measurement:
        """One trial; it must have been disturbed to be noted."""
        outcome = self.runner.run(self.settings.phase1_plan(10.0), 10.0, Bounds())
        attempts = (Attempt(10.0, short=False, outcome=outcome),)
        return Measurement(
            (known or 0) + 1,
            None,
            "device",
            verdict_counts(attempts),
            attempts=attempts,
            notes=(Note("trials", "of one"),),
        )

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        return [Note("method", f"own, after {len(measurements)}")]

    def phase1_notes(self) -> Sequence[Note]:
        return [Note("phase 1", "of phase 1")]


COUNTED = Metric(name="counted", unit="times", summary="counts", source="RFC 2544 section 26.1")


class _Told(TrialSettings):
    def as_run(self) -> _Told:
        return replace(self, loss_tolerance=0.25)

    def notes(self) -> list[Note]:
        return [Note("settings", f"of settings with {self.loss_tolerance}")]


def counted(start: Any) -> Procedure[Any]:
    return Procedure(COUNTED, _Told, start)


def test_the_frame_repeats_and_tells_the_notes_of_all_in_one_order(golden: Golden) -> None:
    gateway = Gateway(disturbed=1.0)
    result = counted(_Counted).measure(gateway, _Told(connections=10, placement="isolated", repeat=3))
    assert result.values == (1, 2, 3)
    golden(result.notes[:5])
    assert result.parameters["loss_tolerance"] == 0.25
    assert all(plan.loss_tolerance == 0.25 for plan in gateway.plans)
    assert (result.metric, result.unit) == ("counted", "times")


def test_an_answer_that_is_known_before_is_not_repeated(golden: Golden) -> None:
    measurement = Measurement(0.0, None, "device", {}, notes=(Note("trials", "of one"),))
    procedure = counted(lambda _runner, _settings: Answered(measurement, [Note("method", "nothing to be done")]))
    gateway = Gateway()
    result = procedure.measure(gateway, _Told(connections=10, placement="isolated", repeat=3))
    assert result.values == (0.0,)
    golden(result.notes[:2])
    assert not gateway.plans


@pytest.mark.parametrize("ceiling", [0.0, -1.0, math.nan, math.inf])
def test_a_tester_without_a_rate_is_refused(ceiling: float) -> None:
    procedure = get("connection-rate")
    with pytest.raises(BrokenError, match="highest rate"):
        procedure.measure(Gateway(ceiling=ceiling), settings_of(procedure, {"repeat": 1}, **DECIDED))


def test_a_campaign_that_can_go_on_is_ended_without_a_part_of_a_trial() -> None:
    def interrupted(_gateway: Gateway, period: int) -> None:
        if period == 30:
            raise KeyboardInterrupt

    procedure, hundred = get("stability"), {"hours": 100 / 3600, "throughput_rate": 1e6, "connection_rate": 1e6}
    gateway = Gateway(ages=interrupted, abilities=frozenset({Ability.PERIODS}))
    with pytest.raises(KeyboardInterrupt):
        procedure.measure(gateway, settings_of(procedure, hundred, **DECIDED), may_be_cut=False)


@pytest.mark.parametrize("when_full", ["refuse", "evict"])
def test_the_size_of_a_table_that_nobody_counts_is_found_by_validation(when_full: Any) -> None:
    procedure, size = get("table-capacity"), 77_777
    gateway = Gateway(establishes=3e5, table_size=size, when_full=when_full, knows_count=False)
    decided = {**DECIDED, "connections": 200_000}
    one = procedure.measure(gateway, settings_of(procedure, {}, **decided)).measurements[0]
    assert (one.value, one.upper) == (size, size + 1)
