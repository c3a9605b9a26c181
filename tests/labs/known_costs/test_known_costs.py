# SPDX-License-Identifier: Apache-2.0
"""Comparison finds how long a device is busy, where that is known. `python -m tests.labs.known_costs` asks for more."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.labs.known_costs.__main__ import found_ns
from tests.labs.known_costs.devices import Recipe, forwarding, nat64

import natgauge
from natgauge.host.machine import idlest_core, usable_cpus


@pytest.mark.alone
@pytest.mark.soak
@pytest.mark.slow("calibrates two programs, and compares them in three rounds at least")
@pytest.mark.parametrize("recipe", [forwarding, nat64])
def test_work_that_takes_twice_as_long_costs_twice_as_much(recipe: Recipe) -> None:
    """How long either takes moves with the host, which calibration beforehand does not know."""
    once, twice = found_ns(12.0, (300, 600), idlest_core(usable_cpus()), recipe)
    for _, found, low, high in (once, twice):
        assert 0 < low <= found <= high
    assert twice[1] / once[1] == pytest.approx(twice[0] / once[0], rel=0.2)


@pytest.mark.alone
def test_a_nat64_in_the_kernel_has_a_cost_next_to_both_forwardings_and_both_cables(tmp_path: Path) -> None:
    figures = natgauge.measure(
        "cost", str(nat64(tmp_path, "nat64", 100)), quantities="up,down", connections=5_000, repeat=1, rounds=3,
        lab_name="known-cost", results=tmp_path,
    ).figures  # fmt: skip
    found = {name: summary.median for name, summary in figures.items()}
    for quantity in ("up", "down"):
        low, value, high = (found[f"{quantity}_{name}"] for name in ("ratio_low", "ratio_to_forwarding", "ratio_high"))
        assert 1 < low < value < high
    # Only frames from the Initiator wait for the busy program.
    assert found["up_ns"] > found["up_forwarding_ns"] > found["up_tester_ns"] > 0
