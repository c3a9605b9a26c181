# SPDX-License-Identifier: Apache-2.0
"""ICMP echo through real devices: every request and reply, and what the device's own list says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.labs.last_runs import playable_of
from tests.labs.program import own
from tests.labs.trying import passing
from tests.plans import PlanOfTrial
from tests.unit.counted import arrivals

from natgauge.records.store import Memory
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan

N = 500
FRAMES = 1_000
#: Replies exactly once per connection, as RFC 9693 section 4.6 validates, and requests and replies at random.
ONCE = PlanOfTrial(N, 5_000.0, Phase2Plan(0.0, 5_000.0, 0.1, reading_order="once"))
BOTH = PlanOfTrial(N, 5_000.0, Phase2Plan(5_000.0, 5_000.0, FRAMES / 5_000.0))
SOAK = [pytest.param(name, marks=pytest.mark.soak) for name in ("iptables-nat44", "linux-ipv4", "linux-ipv6")]
BUILT = playable_of("vpp-nat44-ed", "vpp-nat64", "vpp-det44")


@contextmanager
def echoing(gateway: str) -> Iterator[tuple[Bench, LabMeasurer]]:
    """A device that is ready for echo requests."""
    asked = {"lab_name": own("icmp"), "connections": N, "connection_rate": 5_000.0, "transport": "icmp"}
    question = ask("throughput", gateway, asked)
    bench = Bench(question.cell, rates=HighestRates(1e6, 1e6))
    planned = bench.plan("throughput", question.settings)
    with bench:
        yield bench, bench.ready(planned, Memory()).measurer


@pytest.mark.parametrize("gateway", ["nftables-nat44", "tayga-nat64", *SOAK, *BUILT])
def test_every_request_and_reply_passes_and_each_identifier_is_a_connection(gateway: str) -> None:
    with echoing(gateway) as (bench, measurer):
        validated, both = passing(measurer, ONCE), passing(measurer, BOTH)
        listed = bench.device.count() if bench.device is not None else None
    for outcome in (validated, both):
        assert (outcome.phase1.received_frames, outcome.stored) == (N, N)
        assert tuple(outcome.phase1.messages) == (arrivals("request", N),)
        assert outcome.table_count in {None, N}
    assert listed in {None, N}
    assert tuple(validated.phase2[Direction.RESPONDER].messages) == (arrivals("reply", N),)
    for direction, message in ((Direction.INITIATOR, "request"), (Direction.RESPONDER, "reply")):
        assert both.phase2[direction].offered_frames == FRAMES
        assert tuple(both.phase2[direction].messages) == (arrivals(message, FRAMES),)
