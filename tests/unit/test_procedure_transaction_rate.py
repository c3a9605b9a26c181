# SPDX-License-Identifier: Apache-2.0
"""The transaction rate against simulated gateways of known truth."""

from __future__ import annotations

from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.counted import arrivals, change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import UsageError

N = 100_000
SEGMENTS = ("syn", "syn-ack", "ack", "response", "fin", "fin-ack", "last-ack")


def closing(answers: float) -> Gateway:
    """A gateway that loses FINs, and with them whole transactions, above 100,000 transactions/s.

    The Initiator gets all SYN-ACKs up to `answers` connections/s.
    """

    def segments(_number: int, trial: Any) -> Any:
        counts = trial.phase1
        opened = counts.offered_frames if trial.plan.phase1_rate <= answers else counts.received_frames
        arrived = [opened if at < 4 else counts.received_frames for at in range(len(SEGMENTS))]
        messages = tuple(arrivals(name, number) for name, number in zip(SEGMENTS, arrived, strict=True))
        return change_trial(trial, phase1=change_counts(counts, messages=messages))

    return Gateway(establishes=1e5, alters=segments)


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return simulated_lab.measure("transaction-rate", truth, **{"connections": N, **others}).result


def test_a_transaction_counts_when_its_last_segment_arrived() -> None:
    gateway = closing(3e5)
    result = measure(gateway)
    assert result.median == pytest.approx(1e5, rel=0.011)
    assert "half_open_rate" not in result.figures
    assert result.figures["established"].median == 0
    assert result.limited_by == "device"
    assert {(plan.close, plan.request_octets, plan.phase2) for plan in gateway.plans} == {("fin", 0, None)}


def test_requests_and_the_closing_segment_are_settings(golden: Golden) -> None:
    gateway = closing(1e5)
    result = measure(gateway, request_octets=100, close="rst")
    assert {(plan.close, plan.request_octets) for plan in gateway.plans} == {("rst", 100)}
    golden(result.notes)


def test_a_lasting_rate_needs_a_table_for_the_closed_connections(golden: Golden) -> None:
    result = measure(closing(1e5), gateway=simulated_lab.LINGERING)
    assert result.figures["lingering_entries"].median == 120 * result.median
    golden(result.notes)
    assert "lingering_entries" not in measure(closing(1e5)).figures


@pytest.mark.parametrize("choices", [{"transport": "udp"}, {"frame_size": 128}])
def test_transactions_are_of_tcp_and_choose_their_frame_sizes(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        natgauge.measure("transaction-rate", "nftables-nat44", **choices)
