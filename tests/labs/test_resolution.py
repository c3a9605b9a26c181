# SPDX-License-Identifier: Apache-2.0
"""DNS queries through real devices: counts against known loss, and what crosses the wire against dnspython."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import dns.flags
import dns.message
import dns.rrset
import pytest
from tests.labs.datagrams import Datagram, parse
from tests.labs.nat44 import with_rules
from tests.labs.program import own
from tests.labs.trying import decided, passing
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import arrivals

import natgauge
from natgauge.agreement.generated import StreamCounts
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.common.namespaces import inside
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Observer
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan
from natgauge.words import Verdict

soak = pytest.mark.soak

NAME = own("resolution")
#: Half of what a port set of `map-t` has.
N = 500
QUERIES = 5_000
#: A quarter of a second of queries at a rate that any device keeps up with.
PLAN = PlanOfTrial(
    N,
    10_000.0,
    Phase2Plan(20_000.0, 0.0, 0.25),
    frame_timeout_seconds=0.25,
    loss_tolerance=0.0001,
    query="aaaa",
)


@contextmanager
def asking(
    gateway: str | Path, connections: int = N, observer: Observer | None = None, **choices: object
) -> Iterator[tuple[Bench, LabMeasurer]]:
    """A device that is ready for queries."""
    asked = {"lab_name": NAME, "connections": connections, "connection_rate": 10_000.0, **choices}
    question = ask("resolution-rate", gateway, asked)
    bench = Bench(question.cell, observer)
    planned = bench.plan("resolution-rate", question.settings)
    with bench:
        yield bench, bench.ready(planned, Memory()).measurer


def queries_of(outcome: OneTrial) -> StreamCounts:
    return outcome.phase2[Direction.INITIATOR]


def every_one_answered(outcome: OneTrial, queries: int) -> None:
    """All of phase 1 and so many of phase 2, each once and right."""
    assert outcome.verdict is Verdict.PASS, outcome.reason
    counts = queries_of(outcome)
    assert (counts.offered_frames, counts.received_frames) == (queries, queries)
    assert tuple(counts.messages) == (arrivals("query", queries), arrivals("response", queries))
    assert (counts.duplicates, counts.late, counts.damaged) == (0, 0, 0)
    assert (outcome.phase1.received_frames, outcome.phase1.messages[0].received, outcome.stored) == (N, N, N)
    assert outcome.table_count in {None, N}


#: test_far_side.py has IPv6 and a chain in `make test`.
OTHERS = [pytest.param(name, marks=soak) for name in ("nftables-nat66", "map-t", "linux-ipv4", "linux-ipv6")]


@pytest.mark.parametrize("gateway", ["nftables-nat44", *OTHERS])
def test_every_query_is_answered_once_and_counted_exactly(gateway: str) -> None:
    with asking(gateway) as (_, measurer):
        for query in ("aaaa", "a"):
            outcome = decided(measurer, replace(PLAN, query=query))
            every_one_answered(outcome, QUERIES)


@pytest.mark.parametrize(("port", "back"), [("NG_OUTSIDE", False), ("NG_INSIDE", True)])
def test_a_known_loss_is_counted_and_its_way_is_known(port: str, tmp_path: Path, *, back: bool) -> None:
    """Of each 1000 frames that leave by this port one is dropped, those that prove forwarding among them."""
    lossy = with_rules(tmp_path, "lossy", f'oifname "${port}" numgen inc mod 1000 0 drop')
    with asking(lossy) as (_, measurer):
        failed = decided(measurer, replace(PLAN, loss_tolerance=0.0001, phase1_rate=1000.0))
        tolerated = decided(measurer, replace(PLAN, loss_tolerance=0.01))
    assert (failed.verdict, failed.limited_by) == (Verdict.FAIL, "device")
    assert tolerated.verdict is Verdict.PASS, tolerated.reason
    counts = queries_of(tolerated)
    assert counts.offered_frames == QUERIES
    assert counts.lost == pytest.approx(QUERIES / 1000, abs=1)
    assert counts.messages[0].received == (counts.offered_frames if back else counts.received_frames)
    assert sum(message.wrong for message in counts.messages) == 0
    assert any(
        f"{counts.lost} of {QUERIES} exchanges of messages were not completed" in remark for remark in tolerated.remarks
    )


@soak
@pytest.mark.alone
@pytest.mark.slow("searches for a rate with trials of half a second")
def test_the_highest_rate_is_found_by_trials_whose_counts_are_exact(tmp_path: Path) -> None:
    found = natgauge.measure(
        "resolution-rate",
        "nftables-nat44",
        profile="quick",
        connection_rate=50_000.0,
        lab_name=NAME,
        results=tmp_path,
    )
    assert found.unit == "queries/s"
    assert found.median > 20_000
    traffic = found.document()["parameters"]["traffic"]
    assert (traffic["destination_ports"], traffic["frame_size"]) == ("53-53", 114)
    trials = [json.loads(line) for line in (found.folder / "trials.jsonl").read_text().splitlines()]
    passed = [trial["result"]["phase2"]["initiator"] for trial in trials if trial["verdict"] == "PASS"]
    assert passed
    for counts in passed:
        lost = counts["offered_frames"] - counts["received_frames"]
        assert 0 <= lost <= counts["offered_frames"] / 10_000
        query, response = counts["messages"]
        assert query["received"] >= response["received"] == counts["received_frames"]
        assert response["wrong"] == 0


def captured(device: NamespaceDevice, trial: Callable[[], OneTrial]) -> list[Datagram]:
    """What crosses the device's link towards the Initiator in a trial, both ways."""
    everything = socket.htons(0x0003)
    with inside(device.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, everything)) as handle:
        handle.bind((device.inside, 0x0003))
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        handle.settimeout(0)
        assert trial().verdict is Verdict.PASS
        found: list[Datagram] = []
        while True:
            try:
                datagram = parse(handle.recv(4096))
            except BlockingIOError:
                return found
            if datagram is not None and 53 in (datagram.source_port, datagram.destination_port):
                found.append(datagram)


@pytest.fixture(scope="module")
def few() -> Iterator[tuple[Bench, LabMeasurer]]:
    """A NAT44 of which each query can be looked at."""
    with asking("nftables-nat44", 50, lab_name=own("resolution-few")) as made:
        yield made


@pytest.mark.parametrize(("query", "address"), [("a", "198.18.0.53"), ("aaaa", "2001:2::53")])
def test_a_library_of_others_writes_the_same_queries_and_answers_octet_by_octet(
    query: str, address: str, few: tuple[Bench, LabMeasurer]
) -> None:
    plan = replace(PLAN, connections=50, phase1_rate=500.0, phase2=Phase2Plan(500.0, 0.0, 0.2), query=query)  # type: ignore[arg-type]
    bench, measurer = few
    device = bench.lab.devices[0]
    assert isinstance(device, NamespaceDevice)
    seen = captured(device, lambda: passing(measurer, plan))
    asked = [one for one in seen if one.destination_port == 53]
    answered = {one.payload: one for one in seen if one.source_port == 53}
    names = set()
    for one in asked:
        assert one.checksums_right
        read = dns.message.from_wire(one.payload)
        (question,) = read.question
        names.add(question.name)
        own = dns.message.make_query(question.name, query, id=read.id)
        assert own.to_wire() == one.payload
        answer = dns.message.make_response(own)
        answer.flags |= dns.flags.AA
        answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", query, address))
        found = answered[answer.to_wire()]
        assert (found.destination, found.destination_port) == (one.source, one.source_port)
        assert found.checksums_right
    # 50 of phase 1 and 100 of phase 2, each with a name of its own.
    assert len(asked) >= 150
    assert len(names) == len(asked) == len(answered)
