# SPDX-License-Identifier: Apache-2.0
"""First-packet delay against simulated gateways of known delays."""

from __future__ import annotations

from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.simulated import Gateway

from natgauge.reports.text import rates_of

US = 1e-6


def measure(truth: Gateway, /, **others: Any) -> Any:
    given = {"connections": 1000, "connection_rate": 1e5, "trial_seconds": 0.1, **others}
    return simulated_lab.measure("first-packet-delay", truth, **given)


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
    doubts = [doubt["text"] for doubt in found.document["doubts"] if doubt["word"] == "frames in stalls"]
    assert len(doubts) == 2
    assert "the 99th percentile is 25 k us, and 10 us without as many of the slowest frames" in doubts[0]
    assert found.result.figures["first_p99_without_stalls_us"].median == pytest.approx(10)


def test_the_loss_of_first_frames_is_reported_at_each_load() -> None:
    (repetition,) = measure(Gateway(establishes=6e4)).result.repetitions
    assert [row["first_lost_percent"] > 0 for row in repetition.series] == [True, False, False]
