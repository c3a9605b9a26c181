# SPDX-License-Identifier: Apache-2.0
"""Every metric on a real gateway in both placements: it is answered, or refused for a reason that is known before.

`make test` has those without a known answer there, each in one placement; `make soak` has all, in both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.labs.known_answers.harder_rows import EVERY_ROW
from tests.labs.known_answers.tiers import tier_of
from tests.labs.rough import SLOW_RATES, decided, settings_of

from natgauge.errors import BrokenError, UsageError
from natgauge.host import machine
from natgauge.measurements.measure import parameters_of
from natgauge.measurements.record import make
from natgauge.procedures import procedures
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import Placement

NAT = "nftables-nat44"
CONNECTIONS = 400
METRICS = sorted(procedures())
#: What cannot be measured, and what natgauge says about it.
REFUSED: Mapping[tuple[str, Placement], str] = {
    ("cost", "isolated"): "its frames cannot be timed",
    ("back-to-back", "shared"): "has no queue before the device",
    ("system-recovery", "shared"): "loses nothing under overload",
}
#: What the rates of these tests show nothing of, and what natgauge says after the trial.
UNANSWERED: Mapping[str, str] = {"system-recovery": "lost no frame, so there was nothing to recover from"}
#: Metrics of loss and delay are those of a queue, which an isolated device has.
QUEUED = {"back-to-back", "frame-loss", "latency", "pdv", "system-recovery", "throughput"}
#: Metrics whose known answer `make test` finds.
KNOWN = {row.metric.partition(",")[0] for row in EVERY_ROW if row.trial is None and tier_of(row) != "soak"}
#: Choices of the traffic and of the device that only these metrics want.
CELLS: Mapping[str, Mapping[str, Any]] = {
    "expiry": {"udp_timeout": 3},
    "resolution-rate": {"destination_ports": "53", "grace_seconds": 0.25},
    "transaction-rate": {"transport": "tcp"},
}


def bench_of(placement: Placement, metric: str, **chosen: Any) -> Bench:
    name = f"every-{placement}-{metric if metric in CELLS else 'metric'}"
    choices = {"lab_name": name, "placement": placement, "grace_seconds": 0.1, "connections": CONNECTIONS}
    return Bench(ask(metric, NAT, {**choices, **CELLS.get(metric, {}), **chosen}).cell, rates=SLOW_RATES)


def case(metric: str, placement: Placement) -> Any:
    """Parameters of a test, for `make test` if this placement is the metric's or refuses it."""
    marks = []
    if placement == "isolated":
        few = len(os.sched_getaffinity(0)) < 2
        marks.append(pytest.mark.skipif(few, reason="an isolated device needs a core of its own"))
    if (metric in QUEUED) != (placement == "isolated") and (metric, placement) not in REFUSED:
        marks.append(pytest.mark.soak)
    if metric in KNOWN and (metric, placement) not in REFUSED:
        marks.append(pytest.mark.soak)
    return pytest.param(metric, placement, marks=marks, id=f"{placement}-{metric}")


def cases(*metrics: str) -> list[Any]:
    """All metrics in one placement, and then in the other one."""
    return [case(metric, "shared") for metric in metrics] + [case(metric, "isolated") for metric in metrics]


@pytest.fixture(scope="module")
def placement(request: pytest.FixtureRequest) -> Placement:
    chosen: Placement = request.param
    return chosen


@pytest.fixture(scope="module")
def bench(placement: Placement) -> Iterator[Bench]:
    """Started once for all metrics of a placement."""
    with bench_of(placement, "throughput") as made:
        yield made


def answered(bench: Bench, metric: str) -> None:
    kept = Memory()
    ready = bench.ready(bench.plan(metric, settings_of(metric)), kept)
    try:
        result = ready.run()
    except BrokenError as error:
        if metric not in UNANSWERED or UNANSWERED[metric] not in str(error):
            raise
        return
    found = make(result, parameters_of(bench, ready, machine.facts(host_name=False)), "results")
    assert (found.metric, found.gateway) == (metric, NAT)
    assert found.repetitions
    assert found.median >= 0
    # Cost is of rounds, which are no trials.
    assert (decided(metric) in {trial["verdict"] for trial in kept.trials}) == (metric != "cost")


@pytest.mark.parametrize(("metric", "placement"), cases(*sorted({*METRICS} - {*CELLS})), indirect=["placement"])
def test_a_metric_is_answered_or_refused_for_a_known_reason(metric: str, placement: Placement, bench: Bench) -> None:
    if (reason := REFUSED.get((metric, placement))) is None:
        answered(bench, metric)
        return
    with pytest.raises(UsageError, match=reason):
        bench.plan(metric, settings_of(metric))


@pytest.mark.parametrize(("metric", "placement"), cases(*CELLS), indirect=["placement"])
def test_a_metric_that_needs_traffic_or_time_outs_of_its_own_is_answered(metric: str, placement: Placement) -> None:
    with bench_of(placement, metric) as made:
        answered(made, metric)


@pytest.fixture(scope="module")
def bench_by(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Started once for all metrics of a transport."""
    with bench_of("shared", "throughput", transport=request.param) as made:
        yield made


@pytest.mark.parametrize("bench_by", ["icmp", "tcp"], indirect=True)
@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(metric, marks=() if metric == "mixed-load" else pytest.mark.soak)
        for metric in METRICS
        if metric not in CELLS
    ],
)
def test_by_each_transport_a_metric_is_answered_or_refused_before_a_trial(metric: str, bench_by: Bench) -> None:
    try:
        bench_by.plan(metric, settings_of(metric))
    except UsageError:
        return
    answered(bench_by, metric)
