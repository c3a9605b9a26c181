# SPDX-License-Identifier: Apache-2.0
"""First-packet delay against simulated gateways of known delays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import PlanOfTrial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.analysis.comparing import comparable
from natgauge.procedures import get
from natgauge.procedures.kit.procedure import make_settings
from natgauge.reports.text import rates_of
from natgauge.trials import Trial
from natgauge.words import Verdict

US = 1e-6


def measure(truth: Gateway, /, **others: Any) -> Any:
    given = {"connections": 1000, "connection_rate": 1e5, "trial_seconds": 0.1, **others}
    return simulated_lab.measure("first-packet-delay", truth, **given)


def doubted(found: Any, word: str) -> list[str]:
    return [doubt["text"] for doubt in found.document["doubts"] if doubt["word"] == word]


def test_a_first_frame_that_takes_2_ms_does_and_later_ones_take_what_they_take() -> None:
    found = measure(Gateway(first_delays=[2000 * US], delays=[10 * US], establishes=2e5))
    figures = found.result.figures
    assert found.result.median == pytest.approx(2000)
    assert figures["later_typical_us"].median == pytest.approx(10)
    assert figures["first_worst_case_us"].median == pytest.approx(2000)
    (repetition,) = found.result.repetitions
    assert [row["load_percent"] for row in repetition.series] == [100, 50, 10]
    assert all(row["first_typical_us"] == pytest.approx(2000) for row in repetition.series)
    assert all(row["first_lost_percent"] == 0 for row in repetition.series)


class DiesAtHalf(Gateway):
    """At the load of 50 % no frame that opens connections comes back, or no later one."""

    silent: str = "first"

    def measure(self, plan: PlanOfTrial) -> Trial:
        rate, which = (plan.phase1_rate, "first") if plan.phase2 is None else (plan.phase2.initiator_rate, "later")
        if not plan.record_delays or rate != 5e4 or which != self.silent:
            return super().measure(plan)
        trial = super().measure(replace(plan, record_delays=False))
        return replace(trial, verdict=Verdict.COLLAPSED, reason="it does not answer", limited_by="device")


@pytest.mark.parametrize(("silent", "loads"), [("first", [100, 10]), ("later", [100, 50, 10])])
def test_a_later_load_whose_frames_never_come_back_is_noted_and_costs_no_other_load(
    silent: str, loads: list[int]
) -> None:
    gateway = DiesAtHalf(first_delays=[10 * US], delays=[10 * US], establishes=2e5)
    gateway.silent = silent
    procedure = get("first-packet-delay")
    chosen = {"connection_rate": 1e5, "trial_seconds": 0.1, "repeat": 1}
    settings = make_settings(
        procedure, chosen, connections=1000, placement="isolated", order="permutation", four_tuples=1000
    )
    result = procedure.measure(gateway, settings)
    assert result.values == pytest.approx((10,))
    (measurement,) = result.measurements
    assert [row["load_percent"] for row in measurement.series] == loads
    (said,) = [note.text for note in measurement.notes if "frame came back" in note.text]
    assert said == f"no {silent} frame came back at 50 %: it does not answer"


def test_the_rates_of_a_series_are_those_of_connections() -> None:
    """They were called frames/s in each direction, but later frames are the Initiator's alone."""
    result = measure(Gateway(establishes=2e5)).result
    assert rates_of(result.repetitions[0].series, result).startswith(" (rates: connections/s; later frames: the Init")


def test_phase_1_is_timed_at_the_load_and_only_prepares_the_trial_of_later_frames() -> None:
    gateway = Gateway(establishes=2e5)
    measure(gateway, loads="100%,10%")
    timed = [
        (plan.phase1_rate, plan.phase2 and plan.phase2.initiator_rate) for plan in gateway.plans if plan.record_delays
    ]
    assert timed == [(1e5, None), (5e4, 1e5), (1e4, None), (5e4, 1e4)]


def test_first_frames_due_in_a_stall_are_a_doubt_that_says_how_far_they_moved_the_figure() -> None:
    gateway = Gateway(first_delays=[*[10 * US] * 900, *[25_000 * US] * 100], due_in_stalls=100, establishes=2e5)
    found = measure(gateway, loads="100%")
    doubts = [text for text in doubted(found, "frames in stalls") if "were due while a core was stalled" in text]
    assert len(doubts) == 2
    assert "the 99th percentile is 25 k us, and 10 us without as many of the slowest frames" in doubts[0]
    assert found.result.figures["first_p99_without_stalls_us"].median == pytest.approx(10)


def test_the_loss_of_first_frames_is_reported_at_each_load() -> None:
    (repetition,) = measure(Gateway(establishes=6e4)).result.repetitions
    assert [row["first_lost_percent"] > 0 for row in repetition.series] == [True, False, False]


@pytest.mark.parametrize(
    ("placement", "loads", "rate", "told"),
    [
        ("shared", "100%,50%,10%", 3e5, True),
        ("shared", "50%,10%", 3e5, False),
        # A batch has one frame.
        ("shared", "100%", 15_000.0, False),
        ("isolated", "100%", 3e5, False),
    ],
)
def test_first_delays_that_hold_the_wait_for_a_batch_say_so(
    placement: Any, loads: str, rate: float, *, told: bool
) -> None:
    gateway = Gateway(establishes=1e6, placement=placement)
    found = measure(gateway, loads=loads, connection_rate=rate, connections=100_000, trial_seconds=2.0)
    doubts = doubted(found, "batches")
    assert len(doubts) == told
    for text in doubts:
        assert "at 100 % of the connection rate up to 100 us of a delay are that wait" in text


@pytest.mark.parametrize(
    ("placement", "loads", "connections", "seconds", "remedies"),
    [
        ("isolated", "100%", 100_000, 2.0, ["600,000 connections or more (--connections)"]),
        ("isolated", "10%", 60_000, 2.0, []),
        ("isolated", "100%", 600_000, 1.0, ["trials of 2 s or more (--trial-seconds)"]),
        ("shared", "100%", 100_000, 1.0, []),
    ],
)
def test_trials_of_first_frames_too_short_for_a_stall_to_be_seen_say_so(
    placement: Any, loads: str, connections: int, seconds: float, remedies: list[str]
) -> None:
    gateway = Gateway(establishes=1e6, placement=placement)
    found = measure(gateway, loads=loads, connection_rate=3e5, connections=connections, trial_seconds=seconds)
    doubts = doubted(found, "frames in stalls")
    assert [remedy for text in doubts for remedy in remedies if f"; {remedy} prevent that" in text] == remedies
    assert len(doubts) == len(remedies)


def test_a_connection_rate_that_short_trials_cannot_measure_is_not_said_to_be_given(golden: Golden) -> None:
    gateway = Gateway(establishes=2e6, placement="shared")
    found = measure(gateway, connections=200, connection_rate=None, placement="shared", loads="100%")
    (doubt,) = [doubt for doubt in found.document["doubts"] if doubt["word"] == "connection rate doubted"]
    assert "use more connections" in doubt["text"]
    golden(doubt["text"])
    (note,) = [note for note in measure(Gateway(establishes=2e5)).result.notes if "100 % is" in note.text]
    assert note.text == "100 % is 100 k connections/s"


def test_delays_at_shares_of_other_connection_rates_can_be_compared() -> None:
    """A campaign measures the rate in each round, so that no delay of it could be compared with another."""
    first, second = (measure(Gateway(establishes=5e5), connection_rate=rate).result for rate in (1e5, 1.1e5))
    assert comparable(first, second) == []
