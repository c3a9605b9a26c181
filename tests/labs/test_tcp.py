# SPDX-License-Identifier: Apache-2.0
"""TCP through real devices: every handshake and segment, and what the device's own list says of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.labs.hosts import captured
from tests.labs.last_runs import playable_of
from tests.labs.program import own
from tests.labs.trying import decided, passing
from tests.plans import PlanOfTrial
from tests.unit.counted import arrivals

from natgauge.agreement.generated import MessageCounts
from natgauge.labs.common.device import NamespaceDevice
from natgauge.procedures.expiry import ExpirySettings
from natgauge.procedures.kit.phases import left_in
from natgauge.records.store import Memory
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan
from natgauge.words import Close, TcpState, Verdict

N = 500
#: The most that a test captures.
MANY = 10_000
FRAMES = 1_000
OPEN = PlanOfTrial(N, 5_000.0)
ONCE = replace(OPEN, phase2=Phase2Plan(0.0, 5_000.0, 0.1, reading_order="once"))
BOTH = replace(OPEN, phase2=Phase2Plan(5_000.0, 5_000.0, FRAMES / 5_000.0))
#: What the expert system of an analyser may say of them, and the method of TCP says: connections are opened and closed,
#: and each segment of data of phase 2 has the first sequence number of its connection.
OPENED = ("Connection establish request (SYN)", "Connection establish acknowledge (SYN+ACK)")
REPEATED = ("(suspected) retransmission", "(suspected) spurious retransmission")
CLOSED = ("Connection finish (FIN)", "connection closing", "Connection reset (RST)")


def handshake(connections: int) -> tuple[MessageCounts, ...]:
    """What arrives when all connections are opened."""
    return tuple(arrivals(name, connections) for name in ("syn", "syn-ack", "ack"))


@contextmanager
def opening(
    gateway: str, connections: int = N, metric: str = "throughput", **others: Any
) -> Iterator[tuple[Bench, LabMeasurer]]:
    """A device that is ready for TCP."""
    rate = {} if metric == "table-capacity" else {"connection_rate": 5_000.0}
    question = ask(
        metric, gateway, {"lab_name": own("tcp"), "connections": connections, "transport": "tcp", **rate, **others}
    )
    bench = Bench(question.cell, rates=HighestRates(1e6, 1e6))
    planned = bench.plan(metric, question.settings)
    with bench:
        yield bench, bench.ready(planned, Memory()).measurer


@pytest.fixture(scope="module")
def nat44() -> Iterator[tuple[Bench, LabMeasurer]]:
    """A NAT44 that is ready for TCP, for all tests that want no other."""
    with opening("nftables-nat44", MANY, lab_name=own("tcp-nat44")) as made:
        yield made


SOAK = [
    pytest.param(name, marks=pytest.mark.soak)
    for name in (
        "iptables-nat44", "iptables-nat66", "nftables-nat66", "nftables-nptv6",
        "linux-ipv6", "tayga-siit", "tayga-iptables-nat64", "464xlat-tayga", "map-e", "map-t", "lw4o6",
    )
]  # fmt: skip
BUILT = playable_of("vpp-nat44-ed", "vpp-nat64", "vpp-det44")


@pytest.mark.parametrize(
    "gateway", ["nftables-nat44", pytest.param("tayga-nat64", marks=pytest.mark.soak), "linux-ipv4", *SOAK, *BUILT]
)
def test_every_handshake_and_segment_passes_and_each_connection_is_established(gateway: str) -> None:
    with opening(gateway) as (bench, measurer):
        stateless = not bench.recipe.stateful
        plans = [replace(BOTH, stateless=True)] if stateless else [OPEN, ONCE, BOTH]
        outcomes = [decided(measurer, plan) for plan in plans]
    for outcome, plan in zip(outcomes, plans, strict=True):
        assert outcome.verdict is Verdict.PASS, outcome.reason
        if not stateless:
            assert tuple(outcome.phase1.messages) == handshake(N)
            assert (outcome.phase1.received_frames, outcome.stored) == (N, N)
            # VPP's NAT64 does not show the state of a connection.
            listed = N if bench.recipe.verbs.count_established else None
            assert (outcome.table_count, outcome.readings.established) == (N, listed)
        for direction, counts in outcome.phase2.items():
            assert counts.offered_frames == (N if plan is ONCE else FRAMES), direction
            assert tuple(counts.messages) == (arrivals("segment", counts.offered_frames),)
    assert set(outcomes[-1].phase2) == {Direction.INITIATOR, Direction.RESPONDER}


#: SYNs in phase 1, and their SYN-ACKs in phase 2.
HALF_OPEN = replace(ONCE, half_open=True)


# It stands above those that share a NAT44, whose table must not be made smaller meanwhile.
@pytest.mark.alone
def test_a_full_table_evicts_half_open_connections_but_no_established_ones() -> None:
    size, more = 2_000, 500
    rates = Phase2Plan(0.0, 5_000.0, (size + more) / 5_000.0, reading_order="once")
    with opening("nftables-nat44", size + more, "table-capacity", table_size=size) as (_, measurer):
        opened, half_open = (
            decided(measurer, replace(HALF_OPEN, connections=size + more, phase2=rates, half_open=half))
            for half in (False, True)
        )
    for outcome in (opened, half_open):
        assert (outcome.verdict, outcome.limited_by) == (Verdict.FAIL, "table"), outcome.reason
    # The limit is that of the whole namespace, in which other entries are rare.
    assert size - 2 <= opened.phase1.received_frames <= size
    assert opened.readings.established == opened.table_count == opened.phase1.received_frames
    assert (opened.readings.faults["drop"], opened.phase1.lost) == (more, more)
    # Linux looks for a half-open connection in few of its buckets, so it refuses some new ones even then.
    assert half_open.readings.faults["early_drop"] > 0
    # Above 95 % of the limit Linux's garbage collector removes half-open connections, too, and does not count them.
    assert half_open.table_count is not None
    assert (
        0.94 * size
        <= half_open.table_count
        <= half_open.phase1.received_frames - half_open.readings.faults["early_drop"]
    )
    assert half_open.readings.established == 0


def test_half_open_connections_stay_so_and_each_gets_its_syn_ack_once(nat44: tuple[Bench, LabMeasurer]) -> None:
    bench, measurer = nat44
    for plan, state in ((replace(HALF_OPEN, phase2=None), "SYN_SENT"), (HALF_OPEN, "SYN_RECV")):
        outcome = decided(measurer, plan)
        assert outcome.verdict is Verdict.PASS, outcome.reason
        assert tuple(outcome.phase1.messages) == (arrivals("syn", N),)
        assert (outcome.stored, outcome.table_count, outcome.readings.established) == (N, N, 0)
        assert in_state(bench, state) == N, state
    assert tuple(outcome.phase2[Direction.RESPONDER].messages) == (arrivals("syn-ack", N),)


@pytest.mark.parametrize(
    ("state", "listed"),
    [
        ("half-open", "SYN_RECV"),
        pytest.param("fin", "TIME_WAIT", marks=pytest.mark.soak),
        pytest.param("rst", "CLOSE", marks=pytest.mark.soak),
    ],
)
def test_each_state_has_a_time_out_of_its_own(state: TcpState, listed: str) -> None:
    settings = ExpirySettings(connections=N, placement="shared", state=state)
    with opening("nftables-nat44", metric="expiry", udp_timeout=5, state=state) as (bench, measurer):
        plan = left_in(state, settings.phase1_plan(5_000.0), 5_000.0)
        assert passing(measurer, plan).table_count == N
        assert in_state(bench, listed) == N
        (device,) = bench.lab.devices
        established = device.run("cat /proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established")
        assert int(established.stdout) > 60
        # The list leaves out expired connections, which Linux counts until it walks its table.
        deadline = time.monotonic() + 60
        while in_state(bench, listed) and time.monotonic() < deadline:
            time.sleep(0.5)
        assert in_state(bench, listed) == 0


#: Seven segments, as FD.io's CSIT has them.
TRANSACTIONS = replace(OPEN, close="fin", request_octets=0)


def in_state(bench: Bench, state: str) -> int:
    """Connections of the device in this state, by its own list."""
    listed = bench.lab.devices[0].run(f"conntrack -L -p tcp --state {state} 2> /dev/null | wc -l")
    assert listed.status == 0, listed
    return int(listed.stdout)


def test_each_transaction_leaves_an_entry_that_is_closed_and_each_connection_can_be_closed_later(
    nat44: tuple[Bench, LabMeasurer],
) -> None:
    bench, measurer = nat44
    later = replace(OPEN, phase2=Phase2Plan(5_000.0, 0.0, N / 5_000.0))
    for plan, state in (
        (TRANSACTIONS, "TIME_WAIT"),
        (replace(TRANSACTIONS, request_octets=1360), "TIME_WAIT"),
        (replace(TRANSACTIONS, close="rst"), "CLOSE"),
        (replace(later, close="fin"), "TIME_WAIT"),
        (replace(later, close="rst"), "CLOSE"),
    ):
        outcome = decided(measurer, plan)
        assert outcome.verdict is Verdict.PASS, outcome.reason
        counts = outcome.phase1 if plan.phase2 is None else outcome.phase2[Direction.INITIATOR]
        assert {message.received for message in counts.messages} == {N}
        assert (outcome.stored, outcome.table_count, outcome.readings.established) == (N, N, 0)
        assert in_state(bench, state) == N, state


#: With plan and rate: data once in each direction, and both ways of closing.
CAPTURED = [
    pytest.param(None, None, 20, id="data"),
    pytest.param("fin", 100, 20, id="transactions"),
    pytest.param("rst", 100, 20, id="transactions that are reset"),
    pytest.param(None, None, MANY, id="data of many", marks=pytest.mark.soak),
    pytest.param("fin", 0, MANY, id="transactions of many", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("close", "octets", "connections"), CAPTURED)
def test_an_analyser_finds_every_checksum_right_and_nothing_that_the_method_does_not_say(
    close: Close | None, octets: int | None, connections: int, nat44: tuple[Bench, LabMeasurer], tmp_path: Path
) -> None:
    file, rate = tmp_path / "tcp.pcap", 500.0 if connections < 1000 else 1_000.0
    once = Phase2Plan(rate, rate, connections / rate)
    plan = PlanOfTrial(connections, rate, once if close is None else None, close=close, request_octets=octets)
    bench, measurer = nat44
    device = bench.lab.devices[0]
    assert isinstance(device, NamespaceDevice)
    # A late sender sends all segments, too, so the verdict does not matter.
    with captured(device.netns, device.inside, file):
        outcome = measurer.measure(plan)
    streams = [outcome.phase1, *outcome.phase2.values()]
    assert {message.received for stream in streams for message in stream.messages} == {connections}
    fields = ["tcp.flags.str", "tcp.checksum.status", "_ws.expert.message"]
    # Many ports are those of protocols that would find fault with the test frames' data.
    options = ["-d", "tcp.port==1-65535,data", "-o", "tcp.check_checksum:TRUE", "-T", "fields", "-E", "occurrence=a"]
    command = ["tshark", "-r", str(file), *options]
    command += [word for field in fields for word in ("-e", field)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    assert len(rows) == connections * sum(len(stream.messages) for stream in streams)
    assert {checksum for _, checksum, _ in rows} == {"1"}
    said = {message for *_, messages in rows for message in messages.split(",") if message}
    # A response without data is an acknowledgment that only scales the window of the SYN-ACK.
    without_data = ("TCP window update",) if octets == 0 else ()
    foretold = (*OPENED, *(REPEATED if close is None else CLOSED), *without_data)
    assert all(any(one in message for one in foretold) for message in said), said
