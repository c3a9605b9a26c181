# SPDX-License-Identifier: Apache-2.0
"""A device whose delay exceeds the time limit for a frame loses nothing: its frames are late, as its result says."""

from __future__ import annotations

from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import Delaying


def measure(metric: str, truth: Gateway, **asked: Any) -> simulated_lab.Measured:
    return simulated_lab.measure(metric, truth, connections=10_000, **asked)


@pytest.mark.parametrize("metric", ["connection-rate", "throughput", "transaction-rate", "validated-connection-rate"])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_delay_beyond_the_limit_is_named_at_once_and_called_no_loss(
    metric: str, seconds: float, golden: Golden
) -> None:
    """It was called 'none of 5000 frames came back', and with no time limit the rate was 0 without a doubt."""
    gateway = Delaying(establishes=300_000, forwards=300_000)
    found = measure(metric, gateway, most_seconds=seconds)
    result = found.result
    assert result.median == 0
    (note,) = (note for note in result.notes if note.word == "late at every rate")
    assert note.grade == "answer"
    assert "--frame-timeout-seconds" in note.text
    assert "loss at every rate" not in {one.word for one in result.notes}
    golden(found.trials[0]["reason"])
    golden(note.text)
    assert gateway.clock() < 10


def test_a_longer_limit_measures_the_device() -> None:
    gateway = Delaying(establishes=300_000)
    result = measure("connection-rate", gateway, frame_timeout_seconds=0.1).result
    assert result.median == pytest.approx(300_000, rel=0.01)


def test_a_share_that_is_late_at_every_rate_is_late_and_not_lost(golden: Golden) -> None:
    gateway = Delaying(establishes=300_000)
    gateway.part = 0.03
    result = measure("connection-rate", gateway).result
    (note,) = (note for note in result.notes if note.word == "late at every rate")
    golden(note.text)


@pytest.mark.parametrize("queue", [0, 512, 100_000])
@pytest.mark.parametrize("establishes", [200.0, 5_000.0, 300_000.0])
def test_an_overloaded_device_with_any_queue_is_not_taken_for_a_delay(queue: int, establishes: float) -> None:
    gateway = Gateway(establishes=establishes, queue=queue)
    result = measure("connection-rate", gateway, most_seconds=0).result
    assert "late at every rate" not in {note.word for note in result.notes}
    assert result.median > 0
