# SPDX-License-Identifier: Apache-2.0
"""What a tolerated lag does to a rate in `shared` placement: refused, told, or nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.made_settings import alone, metrics_with, stored_alone
from tests.unit.simulated import ABLE, Gateway

from natgauge.errors import UsageError

RATE = 354_000.0


def opened(connections: int) -> Any:
    return alone("connection-rate", Gateway(establishes=RATE, placement="shared"), connections=connections)


def enough(refused: pytest.ExceptionInfo[UsageError]) -> int:
    """The number of connections that a refusal asks for, in its one line."""
    (found,) = re.findall(r"choose at least ([\d,]+) ", str(refused.value))
    assert "\n" not in str(refused.value)
    return int(found.replace(",", ""))


def gateway() -> Gateway:
    return Gateway(establishes=RATE, forwards=400_000.0, placement="shared", abilities=ABLE, four_tuples=5000)


#: A profile of a subscriber without new connections.
NO_CHURN = str(Path(__file__).parent / "subscriber_without_churn.toml")
#: Every metric that searches for a rate by how late its trials end, and a setting that makes its trials short.
SHORT_TRIALS: dict[str, dict[str, Any]] = {
    "connection-rate": {"connections": 5000},
    "validated-connection-rate": {"connections": 5000},
    "enumeration-orders": {"connections": 5000},
    "transaction-rate": {"connections": 5000},
    "tear-down-rate": {"connections": 5000, "tear_down_by": "fin", "connection_rate": 300_000.0},
    "throughput": {"trial_seconds": 0.01, "connection_rate": 300_000.0},
    "resolution-rate": {"trial_seconds": 0.01, "connection_rate": 300_000.0},
    "mixed-load": {"trial_seconds": 0.01, "connection_rate": 300_000.0, "new_rate": 0.0},
    "subscribers": {"trial_seconds": 0.01, "connection_rate": 300_000.0, "subscriber": NO_CHURN},
    "frame-loss": {"trial_seconds": 0.01, "connection_rate": 300_000.0, "step": 0.01},
}


def test_every_search_for_a_rate_is_among_those_that_are_tried_here() -> None:
    # Back-to-back refuses `shared` placement altogether.
    searching = {*metrics_with("confirm")} - {"back-to-back"}
    assert {"connection-rate", "throughput"} <= searching <= {*SHORT_TRIALS}


@pytest.mark.parametrize("metric", SHORT_TRIALS)
def test_every_rate_that_lateness_decides_says_where_its_trials_were_short(metric: str) -> None:
    found = stored_alone(metric, gateway(), **{"connections": 100_000, **SHORT_TRIALS[metric]})
    assert "short trials" in {doubt.word for doubt in found.doubts}


@pytest.mark.parametrize(
    "metric",
    ["connection-rate", "validated-connection-rate", "enumeration-orders", "transaction-rate", "tear-down-rate"],
)
@pytest.mark.parametrize("connections", [64, 100, 1000])
def test_every_rate_that_the_lag_makes_by_itself_is_refused_in_one_line_that_says_how_many_connections_it_takes(
    metric: str, connections: int
) -> None:
    with pytest.raises(UsageError) as said:
        alone(metric, gateway(), **{**SHORT_TRIALS[metric], "connections": connections})
    assert enough(said) > connections


def test_the_number_that_a_refusal_asks_for_is_neither_refused_nor_doubted() -> None:
    with pytest.raises(UsageError) as said:
        opened(1000)
    assert not [note for note in opened(enough(said)).notes if note.word == "short trials"]


def test_a_rate_that_the_lag_may_have_raised_beyond_the_error_says_so() -> None:
    (note,) = (note for note in opened(5000).notes if note.word == "short trials")
    assert "1.43 %" in note.text
    many = stored_alone("connection-rate", Gateway(establishes=RATE, placement="shared"), connections=100_000)
    assert "short trials" not in {doubt.word for doubt in many.doubts}


@pytest.mark.parametrize(("error", "share"), [("10%", 0.001), ("1%", 0.001), ("0.1%", 0.0001)])
def test_the_lag_is_at_most_a_tenth_of_the_error(error: str, share: float) -> None:
    given: dict[str, Any] = {"connections": 100, "connection_rate": 1e5, "error": error}
    found = simulated_lab.measure("throughput", Gateway(placement="shared"), **given)
    assert [*found.plans("lag_share")] == [pytest.approx(share)]


def test_what_needs_few_connections_first_is_not_refused() -> None:
    truth = Gateway(establishes=RATE, forwards=200_000.0, placement="shared")
    result = alone("throughput", truth, connections=64, trial_seconds=0.5)
    assert result.summary.median == pytest.approx(200_000, rel=0.02)


@pytest.mark.parametrize(
    ("placement", "loads", "told"),
    [("shared", "100%,50%", True), ("shared", "50%,10%", False), ("isolated", "100%", False)],
)
def test_delays_that_hold_the_wait_for_a_batch_say_so(placement: Any, loads: str, *, told: bool) -> None:
    truth = Gateway(establishes=RATE, forwards=1e6, placement=placement)
    given: dict[str, Any] = {
        "connections": 100,
        "loads": loads,
        "connection_rate": 1000.0,
        "throughput_rate": 200_000.0,
    }
    result = stored_alone("latency", truth, **given)
    # 2.5 us a frame, and no more than 0.1 ms of them together.
    doubts = [doubt.text for doubt in result.doubts if doubt.word == "batches"]
    assert [("at 100 %" in text, "up to 100 us" in text) for text in doubts] == [(True, True)] * told


def test_up_to_half_of_the_throughput_timed_frames_leave_alone() -> None:
    given: dict[str, Any] = {
        "connections": 100,
        "connection_rate": 1000.0,
        "throughput_rate": 1000.0,
        "loads": "100%,51%,50%,10%",
    }
    found = simulated_lab.measure("latency", Gateway(placement="shared"), **given)
    assert [trial["plan"]["single_frames"] for trial in found.trials] == [False, False, True, True]
