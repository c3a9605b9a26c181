# SPDX-License-Identifier: Apache-2.0
"""The transaction rate against simulated gateways of known truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from rich.console import Console
from tests.unit.counted import arrivals, change_counts
from tests.unit.simulated import Gateway, reading

from natgauge.cli.progress import ProgressDisplay
from natgauge.errors import UsageError
from natgauge.measurer import TrialOutcome, TrialPlan
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.transaction_rate import PROCEDURE, TransactionRateSettings
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

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
        opened = counts.offered_frames if plan.phase1_rate <= self.answers else counts.received_frames
        arrived = [opened if at < 4 else counts.received_frames for at in range(len(SEGMENTS))]
        messages = tuple(arrivals(name, number) for name, number in zip(SEGMENTS, arrived, strict=True))
        return reading(replace(outcome, phase1=change_counts(counts, messages=messages)), established=0)


def measure(gateway: Gateway, **others: Any) -> MeasurementResult:
    settings = TransactionRateSettings(connections=N, placement=gateway.placement, repeat=1, **others)
    return PROCEDURE.measure(gateway, settings)


def test_a_transaction_counts_when_its_last_segment_arrived() -> None:
    gateway = Closing(establishes=1e5, answers=3e5)
    result = measure(gateway)
    assert result.summary.median == pytest.approx(1e5, rel=0.011)
    assert "half_open_rate" not in result.figures
    assert result.figures["established"].median == 0
    assert result.limited_by == "device"
    assert {(plan.close, plan.request_octets, plan.phase2) for plan in gateway.plans} == {("fin", 0, None)}


def test_requests_and_the_closing_segment_are_settings() -> None:
    gateway = Closing(establishes=1e5, answers=1e5)
    result = measure(gateway, request_octets=100, close="rst")
    assert {(plan.close, plan.request_octets) for plan in gateway.plans} == {("rst", 100)}
    assert any("request and response of 100 octets each, a reset" in note.text for note in result.notes)


class Lingering(Closing):
    """A gateway that keeps closed connections for two minutes."""

    @property
    def lingering_seconds(self) -> int:
        """Two minutes."""
        return 120


def test_a_lasting_rate_needs_a_table_for_the_closed_connections() -> None:
    result = measure(Lingering(establishes=1e5, answers=1e5))
    assert result.figures["lingering_entries"].median == 120 * result.summary.median
    assert any("keeps a closed connection for 120 s" in note.text for note in result.notes)
    assert "lingering_entries" not in measure(Closing(establishes=1e5, answers=1e5)).figures


def test_a_trial_is_one_of_transactions() -> None:
    console = Console(width=400)
    gateway = Closing(establishes=1e5, answers=1e5)
    settings = TransactionRateSettings(connections=N, placement=gateway.placement, repeat=1)
    with console.capture() as shown, ProgressDisplay(console) as display:
        PROCEDURE.measure(gateway, settings, display.event)
    lines = [line for line in shown.get().splitlines() if " trial " in line]
    assert lines
    assert all(f"{N:,} transactions at " in line for line in lines)


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
