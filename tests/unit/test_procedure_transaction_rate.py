# SPDX-License-Identifier: Apache-2.0
"""The transaction rate against simulated gateways of known truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.unit.simulated import Gateway

from natgauge.bench.bench import Bench
from natgauge.bench.question import ask
from natgauge.errors import UsageError
from natgauge.measurer import Arrivals, TrialOutcome, TrialPlan
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.transaction_rate import PROCEDURE, TransactionRateSettings

N = 100_000
SEGMENTS = ("syn", "syn-ack", "ack", "response", "fin", "fin-ack", "last-ack")


@dataclass(slots=True)
class Closing(Gateway):
    """A gateway that loses FINs, and with them whole transactions, above `establishes`.

    Attributes:
        answers: connections/s up to which the Initiator gets all SYN-ACKs.
    """

    answers: float = 0.0

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """The trial, with the arrivals of each segment."""
        outcome = Gateway.measure(self, plan)
        counts = outcome.phase1
        opened = counts.offered if plan.phase1_rate <= self.answers else counts.received
        arrived = [opened if at < 4 else counts.received for at in range(len(SEGMENTS))]
        messages = tuple(Arrivals(name, number) for name, number in zip(SEGMENTS, arrived, strict=True))
        return replace(outcome, phase1=replace(counts, messages=messages), established=0)


def measure(gateway: Gateway, **others: Any) -> MeasurementResult:
    settings = TransactionRateSettings(connections=N, placement=gateway.placement, repeat=1, **others)
    return PROCEDURE.measure(gateway, settings)


def test_a_transaction_counts_when_its_last_segment_arrived() -> None:
    gateway = Closing(establishes=1e5, answers=3e5)
    result = measure(gateway)
    assert result.summary.median == pytest.approx(1e5, rel=0.011)
    assert 1.1e5 < result.figures["half_open_rate"].median <= 3e5
    assert result.figures["established"].median == 0
    assert result.limited_by == "device"
    assert {(plan.close, plan.request_octets, plan.phase2) for plan in gateway.plans} == {("fin", 0, None)}


def test_requests_and_the_closing_segment_are_settings() -> None:
    gateway = Closing(establishes=1e5, answers=1e5)
    result = measure(gateway, request_octets=100, close="rst")
    assert {(plan.close, plan.request_octets) for plan in gateway.plans} == {("rst", 100)}
    assert any("request and response of 100 octets each, a reset" in note.text for note in result.notes)


@pytest.mark.parametrize("octets", [-1, 1361])
def test_a_request_that_fits_no_packet_is_refused(octets: int) -> None:
    with pytest.raises(UsageError, match="request octets"):
        measure(Gateway(), request_octets=octets)


def test_transactions_are_of_tcp_and_choose_their_frame_sizes() -> None:
    question = ask("transaction-rate", "nftables-nat44", {})
    assert question.cell.traffic.transport == "tcp"
    for choices, said in (
        ({"transport": "udp"}, "transport: udp, but transaction-rate closes TCP connections"),
        ({"frame_size": 128}, "frame size: 128, but the segments of transaction-rate"),
    ):
        with pytest.raises(UsageError, match=said):
            Bench(ask("transaction-rate", "nftables-nat44", choices).cell).plan("transaction-rate", {})
