# SPDX-License-Identifier: Apache-2.0
"""Measurements without a state: no phase 1 is measured or slowed down, and the tester must be able to."""

from __future__ import annotations

import pytest
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError
from natgauge.measurer import Ability
from natgauge.procedures import frame_loss, get, latency, throughput

ABLE = frozenset({Ability.STATELESS})


def test_throughput_without_a_state_has_no_phase_1() -> None:
    gateway = Gateway(establishes=1.0, forwards=300_000, abilities=ABLE, placement="shared")
    settings = throughput.ThroughputSettings(connections=1000, placement="shared", repeat=1, stateless=True)
    result = throughput.PROCEDURE.measure(gateway, settings)
    assert result.summary.median == pytest.approx(300_000, rel=0.012)
    assert all(plan.stateless and plan.phase2 is not None for plan in gateway.plans)
    assert any("there was no phase 1" in note.text for note in result.notes)


def test_latency_and_loss_are_stateless_all_the_way() -> None:
    for metric in (latency, frame_loss):
        gateway = Gateway(establishes=1.0, forwards=300_000, abilities=ABLE, placement="shared")
        settings = metric.PROCEDURE.settings(connections=1000, placement="shared", repeat=1, stateless=True)
        metric.PROCEDURE.measure(gateway, settings)
        assert gateway.plans
        assert all(plan.stateless for plan in gateway.plans)


@pytest.mark.parametrize("metric", ["throughput", "latency", "pdv", "frame-loss"])
def test_the_tester_must_be_able_to(metric: str) -> None:
    procedure, gateway = get(metric), Gateway()
    settings = procedure.settings(connections=1000, placement="isolated", stateless=True)
    with pytest.raises(UsageError, match=f"metric {metric}: this tester lacks trials without a state table"):
        procedure.measure(gateway, settings, lambda _: None)
    assert not gateway.plans
