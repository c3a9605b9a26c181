# SPDX-License-Identifier: Apache-2.0
"""What holds for every procedure: how it presents itself, and that it knows nothing but a measurer."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import make_counts
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError
from natgauge.measurements.making import make
from natgauge.metrics import metrics
from natgauge.procedures import connection_rate, get, latency, procedures, throughput
from natgauge.procedures.kit.events import Bounds, Event
from natgauge.procedures.kit.measure.prerequisite import inner
from natgauge.procedures.kit.result.frame_counts import forwarding_rate
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.parameters import Parameters


def test_each_declared_metric_has_a_procedure_and_none_was_lost() -> None:
    assert set(procedures()) == set(metrics())
    assert len(procedures()) >= 18


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
    procedure = get(metric)
    gateway = Gateway(counts=0, knows_limit=knows_limit)
    settings = procedure.settings(connections=20_000, placement="isolated", repeat=1)
    said = f"{metric}|connection-rate: the device's own count is 0 after it forwarded .* without a loss"
    with pytest.raises(BrokenError, match=said) as caught:
        procedure.measure(gateway, settings)
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


def test_the_forwarding_rate_is_the_slowest_directions_over_the_time_it_really_took() -> None:
    on_time = make_counts(intended=100, offered=100, received=80, nominal_seconds=2.0, sending_seconds=1.9)
    behind = make_counts(intended=100, offered=100, received=100, nominal_seconds=2.0, sending_seconds=4.0)
    assert forwarding_rate([on_time]) == 40
    assert forwarding_rate([on_time, behind]) == 25
    assert forwarding_rate([behind, on_time]) == 25
    assert forwarding_rate([]) is None
    assert forwarding_rate([make_counts(1, 1, 1)]) is None
