# SPDX-License-Identifier: Apache-2.0
"""What holds for every procedure: how it presents itself, its frame, and that it knows nothing but a measurer."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_settings import alone, settings_of
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import BrokenError, UsageError
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurements.record import make
from natgauge.measurer import Ability, Measurer
from natgauge.metrics import metrics
from natgauge.metrics.metric import Metric
from natgauge.notes import Note
from natgauge.procedures import connection_rate, get, latency, procedures, throughput
from natgauge.procedures.kit.phases import inner
from natgauge.procedures.kit.procedure import Answered, Procedure, Repetitions
from natgauge.procedures.kit.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.runner import Bounds, Event, TrialRunner
from natgauge.procedures.kit.settings import COMMON, DECIDED_ELSEWHERE, Profile, TrialSettings
from natgauge.records.parameters import Parameters
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.words import Verdict


def test_every_metric_says_what_its_value_is() -> None:
    """The first line of `enumeration-orders` was "x: enumeration-orders 95.2%"."""
    assert [one.metric for one in procedures().values() if not one.declared.does] == []


def test_each_declared_metric_has_a_procedure_and_none_was_lost() -> None:
    assert set(procedures()) == set(metrics())
    assert len(procedures()) >= 18


def test_profiles_speak_of_settings_and_metrics_that_there_are() -> None:
    profiles = get_args(Profile)
    known = {item.name for procedure in procedures().values() for item in dataclasses.fields(procedure.settings)}
    assert set(COMMON) == set(profiles)
    for values in COMMON.values():
        assert set(values) <= known
    for procedure in procedures().values():
        assert set(procedure.profiles) <= set(profiles)
        for values in procedure.profiles.values():
            assert set(values) <= {item.name for item in dataclasses.fields(procedure.settings)}


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"metric: 'speed' is unknown; choose one of back-to-back, .*throughput"):
        get("speed")


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_each_procedure_tells_what_it_is_and_what_it_takes(metric: str) -> None:
    procedure = get(metric)
    assert procedure.metric == metric
    assert procedure.unit
    assert procedure.declared.source.startswith(("RFC ", "draft-"))
    assert issubclass(procedure.settings, TrialSettings)
    parameters = procedure.inputs()
    assert {parameter.name for parameter in parameters if parameter.required} >= {"connections", "placement"}
    assert all(parameter.help for parameter in parameters)


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_each_procedure_measures_a_simulated_gateway(metric: str) -> None:
    procedure = get(metric)
    events: list[object] = []
    gateway = Gateway()
    settings = procedure.settings(connections=10_000, placement="isolated", repeat=1)
    if settings.needs():
        with pytest.raises(UsageError, match=f"metric {metric}: this tester lacks"):
            procedure.measure(gateway, settings, events.append)
        assert not gateway.plans
        return
    result = procedure.measure(gateway, settings, events.append)
    assert (result.metric, result.unit) == (metric, procedure.unit)
    document = json.loads(json.dumps(make(result, Parameters()).document(), allow_nan=False))
    assert document["parameters"]["settings"]["profile"] == "default"
    assert sum(result.trials.values()) > 0
    assert events


def plain_metrics() -> list[str]:
    """Those that any measurer can measure."""
    every = procedures().items()
    return sorted(name for name, one in every if not one.settings(connections=100, placement="isolated").needs())


@pytest.mark.parametrize("metric", plain_metrics())
@pytest.mark.parametrize("knows_limit", [False, True])
def test_a_count_of_0_after_connections_were_forwarded_ends_every_measurement(
    metric: str, *, knows_limit: bool
) -> None:
    """Seen: 20,000 connections forwarded, 0 counted, published as limited by a full table."""
    gateway = Gateway(counts=0, knows_limit=knows_limit)
    said = f"{metric}|connection-rate: the device's own count is 0 after it forwarded .* without a loss"
    with pytest.raises(BrokenError, match=said) as caught:
        alone(metric, gateway, connections=20_000)
    assert "\n" not in str(caught.value)
    assert gateway.outcomes[-1].limited_by != "table"


def test_an_inner_measurement_has_all_common_settings_but_is_done_once() -> None:
    others: dict[str, Any] = {"trial_seconds": 7.0, "directions": "up", "connection_rate": 5.0}
    common: dict[str, Any] = {
        "connections": 77,
        "placement": "isolated",
        "own_processes": True,
        "order": "increasing",
        "profile": "standard",
        "loss_tolerance": 0.01,
        "zero_checksum": "accept",
        "frame_timeout_seconds": 0.5,
        "invalid_repeats": 3,
        "settle_seconds": 4.0,
        "most_seconds": 77.0,
    }
    # What is demanded of the outer figure is not demanded of the inner one.
    demands = {"at_least", "at_most"}
    assert {*common, *demands, "repeat"} == {item.name for item in dataclasses.fields(TrialSettings)}
    outer = latency.LatencySettings(repeat=9, at_most=5.0, **common, **others)
    found = inner(throughput.ThroughputSettings, outer, confirm=False, directions="down")
    assert {name: getattr(found, name) for name in common} == common
    assert {getattr(found, name) for name in demands} == {None}
    assert (found.repeat, found.confirm, found.directions, found.trial_seconds) == (1, False, "down", 2.0)
    assert inner(connection_rate.ConnectionRateSettings, outer, repeat=2).repeat == 2


def test_time_left_counts_this_repetition_and_those_to_come() -> None:
    """A clock that ticks once a look makes every trial last 1 s."""
    events: list[Event] = []
    ticks = iter(range(1000))
    runner = TrialRunner(Gateway(), "m", 3, events.append, clock=lambda: float(next(ticks)))
    plan = PlanOfTrial(connections=10, phase1_rate=10.0)
    for left in (3, 2, 1):
        runner.run(plan, 10.0, Bounds(trials_left=left))
    runner.start_repetition(2)
    runner.run(plan, 10.0, Bounds(trials_left=3))
    runner.run(plan, 10.0, Bounds())
    # Before the first trial nothing is known; then what is left here plus three trials for each repetition to come.
    expected = [None, 2 + 2 * 3, 2 + 2 * 3, 1 + 2 * 3, 1 + 2 * 3, 0 + 2 * 3, 3 + 3, 2 + 3, None, None]
    assert [event.seconds_left for event in events] == expected


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
    assert alone("connection-rate", _Least()).summary.median == pytest.approx(1e5, rel=0.01)


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
    with pytest.raises(BrokenError, match="highest rate"):
        alone("connection-rate", Gateway(ceiling=ceiling))


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
    gateway = Gateway(establishes=3e5, table_size=77_777, when_full=when_full, knows_count=False)
    (one,) = alone("table-capacity", gateway, connections=200_000).measurements
    assert (one.value, one.upper) == (77_777, 77_778)


#: Those that make their answers up, for whom a default of the base class is an answer, too.
MADE_UP = {"_Assumed"}
SOURCES = Path(natgauge.__file__).parent


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_the_real_measurer_gives_every_public_member_of_the_base_class() -> None:
    """Seen: a new member was forgotten, and the default of the base class was the answer."""
    assert members(Measurer) - members(LabMeasurer) == set()


def test_no_measurer_of_natgauge_is_missing_above() -> None:
    derived = re.compile(r"^class (\w+)\(Measurer\)", re.MULTILINE)
    found = {name for path in SOURCES.rglob("*.py") for name in derived.findall(path.read_text(encoding="utf-8"))}
    assert found == MADE_UP | {LabMeasurer.__name__}


def test_each_repetition_is_measured_by_the_measurer_that_its_beginning_returned() -> None:
    procedure = get("connection-rate")
    settings = settings_of(procedure, {"repeat": 3, "error": "1%"}, **{**DECIDED, "connections": 100_000})
    gateways = [Gateway(establishes=rate) for rate in (100_000.0, 200_000.0, 300_000.0)]
    result = procedure.measure(gateways[0], settings, begins=lambda number: gateways[number - 1])
    assert result.values == pytest.approx([100_000, 200_000, 300_000], rel=0.02)
