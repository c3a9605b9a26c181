# SPDX-License-Identifier: Apache-2.0
"""The order in which the Responder reads its state table, and the time a device settles before each trial."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.made_settings import alone, settings_of
from tests.unit.simulated import Gateway
from tests.unit.test_measurer import FakeTable, measurer
from tests.unit.test_recording import result, settings

from natgauge.analysis.comparing import comparable
from natgauge.errors import UsageError
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.measure.phase2 import Phase2Settings
from natgauge.procedures.kit.time_budget import nominal_seconds
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan

#: Metrics over standing connections.
READERS = [name for name, one in procedures().items() if issubclass(one.settings, Phase2Settings)]


def make(metric: str, **asked: object) -> Any:
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
    phase2 = make(metric, reading_order=order).plan(1e3, 1e4, 2.0).phase2
    assert phase2.reading_order == order


@pytest.mark.parametrize("metric", [name for name in READERS if name != "reset"])
def test_frames_that_are_not_under_test_would_take_turns_of_the_table(metric: str) -> None:
    """With a share of 50 % every second connection had no frame."""
    with pytest.raises(UsageError, match=r"^reading order: increasing, but a foreground share of 50 % needs .*; leave"):
        make(metric, reading_order="increasing", foreground_share=0.5)
    assert make(metric, foreground_share=0.5).foreground_share == 0.5


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
    assert make(metric, profile="rfc").phase1_plan(1e3).settle_seconds == 5.0
    assert make(metric).phase1_plan(1e3).settle_seconds == 0.0
    assert make(metric, profile="rfc", settle_seconds=0.0).settle_seconds == 0.0


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
