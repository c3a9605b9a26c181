# SPDX-License-Identifier: Apache-2.0
"""Rates of devices behind deep queues: near the truth, or the bound of the error is told with the result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.simulated import Gateway

from natgauge.figure_text import in_percent
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurements.making import make
from natgauge.procedures import connection_rate, throughput, validated_connection_rate
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.search import queues
from natgauge.records.parameters import Parameters
from natgauge.words import Placement

#: A card's ring, a VPP's, a qdisc's; frames.
RINGS = (512, 2_048, 16_384, 100_000)


def rate(metric: Any, gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"connections": 20_000, "placement": gateway.placement, "repeat": 1, **others}
    found: MeasurementResult = metric.PROCEDURE.measure(gateway, metric.PROCEDURE.settings(**given))
    return found


def told(result: MeasurementResult) -> float:
    """The share by which the result itself says that it may be too high; its error where it says nothing."""
    limit = result.parameters["frame_timeout_seconds"]
    most: float = limit / result.figures["trial_seconds"].median
    doubted = any(
        doubt.word == "queues" for doubt in make(result, Parameters.grouped(settings=result.parameters)).doubts
    )
    noted = [note for note in result.notes if f"may be too high by up to {in_percent(most)}" in note.text]
    assert bool(noted) is doubted is (most > 0.01)
    return max(most, 0.01)


@given(st.sampled_from([connection_rate, validated_connection_rate]), st.floats(5e3, 1e6), st.sampled_from(RINGS))
@settings(max_examples=40)
def test_a_rate_of_connections_is_never_higher_than_its_result_says(metric: Any, truth: float, ring: int) -> None:
    result = rate(metric, Gateway(establishes=truth, forwards=1e8, queue=ring, knows_limit=False))
    assert 0.98 * truth <= result.summary.median <= truth * (1 + told(result)) * 1.001


def test_a_queue_as_long_as_n_before_a_process_on_the_senders_core_makes_it_no_faster() -> None:
    # Seen: tayga, shared, N = 10,000 = its queue: 880,000/s told of a device of 5,000.
    gateway = Gateway(establishes=5_000, forwards=1e7, queue=10_000, knows_limit=False)
    result = rate(connection_rate, gateway, connections=10_000, placement="shared", own_processes=True)
    assert 0.98 * 5_000 <= result.summary.median <= 5_000 * 1.02
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {queues.LONGEST_WAIT_SECONDS}
    assert "own_processes" not in result.parameters


def test_a_ring_of_16384_no_longer_makes_a_million_of_a_quarter() -> None:
    gateway = Gateway(establishes=250_000, forwards=1e7, queue=16_384, knows_limit=False)
    result = rate(validated_connection_rate, gateway)
    assert result.summary.median <= 20_000 / (20_000 / 250_000 - queues.LONGEST_WAIT_SECONDS)
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {queues.LONGEST_WAIT_SECONDS}


@given(
    st.floats(5e3, 1e6),
    st.sampled_from(RINGS),
    st.sampled_from([0.5, 1.0, 2.0, 10.0]),
    st.sampled_from(["binary", "mlrsearch"]),
)
@settings(max_examples=40)
def test_a_throughput_is_never_higher_than_its_result_says(truth: float, ring: int, seconds: float, way: str) -> None:
    gateway = Gateway(forwards=truth, queue=ring)
    result = rate(throughput, gateway, trial_seconds=seconds, connection_rate=1e5, search=way)
    assert 0.975 * truth <= result.summary.median <= truth * (1 + told(result)) * 1.001


@pytest.mark.parametrize(
    ("seconds", "error", "limit"),
    [
        (60.0, 0.01, 0.02),
        (2.0, 0.01, 0.02),
        (1.0, 0.01, 0.01),
        (0.5, 0.01, 0.01),
        (0.5, 0.05, 0.02),
        (2.0, 0.001, 0.01),
    ],
)
def test_the_limit_follows_from_length_and_error(seconds: float, error: float, limit: float) -> None:
    assert queues.wait_limit(seconds, SearchError(share=error)) == pytest.approx(limit)


def test_a_limit_asked_for_is_kept_and_shared_placement_has_none() -> None:
    cases: list[tuple[Placement, float | None, float | None]] = [
        ("isolated", 0.5, 0.5),
        ("shared", None, None),
        ("external", None, 0.02),
    ]
    for placement, asked, run in cases:
        gateway = Gateway(forwards=1e5, placement=placement)
        rate(throughput, gateway, frame_timeout_seconds=asked, connection_rate=1e5)
        assert {plan.frame_timeout_seconds for plan in gateway.plans} == {run}


def test_what_a_device_surely_does_is_never_more_than_it_does() -> None:
    """A device of 110,000/s with a queue of 2,048 frames passes 312 frames at any rate."""
    assert queues.least_rate(312, 2.3e6, 0.02) < 110_000
    assert queues.least_rate(1e6, 100_000, 0.02) == pytest.approx(100_000, rel=0.003)
