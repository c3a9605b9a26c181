# SPDX-License-Identifier: Apache-2.0
"""Comparison finds how long a device is busy, where that is known. `python -m tests.labs.known_costs` asks for more."""

from __future__ import annotations

import pytest
from tests.labs.known_costs.__main__ import found_ns

from natgauge.host.cpus import idlest_core, usable_cpus


@pytest.mark.alone
@pytest.mark.slow("calibrates two programs, and compares them in three rounds at least")
def test_work_that_takes_twice_as_long_costs_twice_as_much() -> None:
    """How long either takes moves with the host, which calibration beforehand does not know."""
    once, twice = found_ns(12.0, (300, 600), idlest_core(usable_cpus()))
    for _, found, low, high in (once, twice):
        assert 0 < low <= found <= high
    assert twice[1] / once[1] == pytest.approx(twice[0] / once[0], rel=0.2)
