# SPDX-License-Identifier: Apache-2.0
"""Measurements without a state: no phase 1 is measured or slowed down, and the device must keep no connections."""

from __future__ import annotations

import pytest
from tests import simulated_lab
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError


@pytest.mark.parametrize("metric", ["throughput", "latency", "frame-loss", "pdv"])
def test_no_trial_of_a_stateless_measurement_has_a_phase_1(metric: str) -> None:
    truth = Gateway(establishes=1.0, forwards=300_000, placement="shared")
    found = simulated_lab.measure(metric, truth, gateway=simulated_lab.ROUTING, connections=1000, stateless=True)
    assert found.plans("stateless") == {True}
    assert all(trial["result"].get("phase1") is None and trial["plan"]["phase2"] for trial in found.trials)
    if metric == "throughput":
        assert found.median == pytest.approx(300_000, rel=0.012)
        assert found.notes("there was no phase 1")


@pytest.mark.parametrize("metric", ["throughput", "latency", "pdv", "frame-loss"])
def test_a_device_that_replaces_the_source_needs_its_state(metric: str, golden: Golden) -> None:
    truth = Gateway()
    with golden.raises(UsageError):
        simulated_lab.measure(metric, truth, connections=1000, stateless=True)
    assert not truth.plans
