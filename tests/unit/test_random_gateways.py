# SPDX-License-Identifier: Apache-2.0
"""First lines of random gateways agree with the truth of the gateways; `benchmarks.random_gateways` makes 2,000."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.random_gateways.__main__ import claims, enough_in_intervals, false_claims, page
from benchmarks.random_gateways.claims import Claim, claim
from benchmarks.random_gateways.drawn import Drawn, drawn
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import Policed

COUNT = 80


def of(gateway: Gateway, metric: str, truth: float, connections: int = 10_000, **asked: object) -> Claim:
    return claim(Drawn("plain", metric, gateway, truth, 0.0, connections, {"repeat": 1, **asked}))


def test_every_first_line_of_random_gateways_is_true() -> None:
    """14 % of such lines said "at most" of a rate below the true one."""
    found = list(claims(COUNT, 1))
    assert [f"{one.line} | {one.drawn}" for one in false_claims(found)] == []
    assert enough_in_intervals(found)
    assert len({one.drawn.kind for one in found}) > 10
    assert "| all |" in page(found, 1)


def test_a_line_that_the_truth_contradicts_is_found() -> None:
    true = of(Gateway(establishes=200_000), "connection-rate", 200_000, 200_000)
    assert true.form == "range"
    assert true.holds
    for truth in (190_000, 210_000):
        assert not replace(true, drawn=replace(true.drawn, truth=truth)).holds
    missed = [replace(true, coverage=0.95, in_interval=at < 80) for at in range(100)]
    assert not enough_in_intervals(missed)


def test_a_number_of_a_seed_is_always_the_same_gateway() -> None:
    assert str(drawn(1, 5)) == str(drawn(1, 5))
    assert str(drawn(1, 5)) != str(drawn(2, 5))


@pytest.mark.parametrize("metric", ["connection-rate", "transaction-rate", "validated-connection-rate"])
def test_at_most_is_no_less_than_the_rate(metric: str) -> None:
    """Of 10,000 connections queues may have raised the rate by 40 %; the device has none."""
    found = of(Gateway(establishes=200_000, forwards=1e6), metric, 200_000)
    assert found.form == "at most"
    assert found.lower == 0
    assert 200_000 <= found.upper < 205_000
    assert "at most 20" in found.line


@pytest.mark.parametrize(("gateway", "metric"), [
    (Gateway(forwards=349_797.09, establishes=349_797.09, seed=38_545, rare_loss=0.1), "throughput"),
    (Gateway(forwards=1_237_934.7, establishes=1_237_934.7, seed=893_870, rare_loss=0.3), "mlrsearch"),
])  # fmt: skip
def test_a_lost_frame_that_made_the_upper_bound_twice_is_no_limit(gateway: Gateway, metric: str) -> None:
    """225,626 frames/s were printed of a device of 349,797, with no doubt: one frame of 450,000 was lost, two times."""
    asked = {"search": "mlrsearch", "goals": "rfc2544"} if metric == "mlrsearch" else {}
    found = of(gateway, "throughput", gateway.forwards, 101_584 if asked else 60_287, **asked)
    assert found.holds
    assert found.form == "at least"


@pytest.mark.parametrize("connections", [25_819, 149_416])
def test_a_bucket_is_seen_in_trials_of_more_than_a_second_too(connections: int) -> None:
    """118,021 connections/s were printed of a gateway that lets 88,999 pass for long: a trial lasted 1.3 s."""
    found = of(Policed(establishes=2e6, forwards=2e6, lasting=connections / 1.5, burst=int(0.3 * connections)),
               "connection-rate", connections / 1.5, connections)  # fmt: skip
    assert found.form == "at most"
    assert found.holds
