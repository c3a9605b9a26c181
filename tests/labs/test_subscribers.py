# SPDX-License-Identifier: Apache-2.0
"""Customers who share addresses: each keeps to its own ports, and whoever does not is dropped and named."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from tests.labs.datagrams import Datagram, checksum
from tests.labs.program import own
from tests.labs.trying import decided
from tests.labs.wire import Tap
from tests.plans import PlanOfTrial

from natgauge.errors import BrokenError
from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Recipe, load
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.labs.netns.lab import NetnsLab
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import Verdict

pytestmark = pytest.mark.waits

soak = pytest.mark.soak
#: A tunnel with a table of bindings, and a translator with a rule; a tunnel with a rule is in `make soak`.
KINDS = ("lw4o6", pytest.param("map-e", marks=soak), "map-t")
SUBSCRIBERS = 1000
#: Connections/s that each of these devices opens without loss.
OPENING_RATE = 20_000.0
SERVER = OUTSIDE["ipv4"].host(0)


def right_set(source: IPv4Address) -> tuple[IPv4Address, range]:
    """Address and ports of the subscriber at a source, counted by hand: 31 sets of 2048 ports on each address."""
    number = int(source) - int(INSIDE["ipv4"].host(0))
    first = 2048 * (1 + number % 31)
    return IPv4Address("198.18.0.1") + number // 31, range(first, first + 2048)


class Stand:
    """A chain with some subscribers, started, and both taps."""

    def __init__(self, recipe: Recipe, subscribers: int, connections: int, stack: ExitStack) -> None:
        names = [part.device for part in recipe.chain]
        hosts = subscribers + 1
        self.lab = stack.enter_context(
            NetnsLab(own("test-subs"), initiator_family="ipv4", responder_family="ipv4", devices=names, hosts=hosts)
        )
        players = [Gateway(one, device) for one, device in zip(recipe.of_devices(0), self.lab.devices, strict=True)]
        self.chain = stack.enter_context(Chain(players, recipe.holder))
        self.initiator, self.responder = (
            stack.enter_context(Tap(port)) for port in (self.lab.initiator, self.lab.responder)
        )
        plan = DeviceDemand(
            connections=connections,
            phase1_seconds=20,
            after_seconds=5,
            source_addresses=subscribers,
            port_sets=recipe.port_sets,
        )
        self.chain.start(plan)
        self._introduce(subscribers)

    def _introduce(self, subscribers: int) -> None:
        first, last = self.lab.devices[0], self.lab.devices[-1]
        mac = self.initiator.mac.hex(":")
        hosts = "".join(
            f"neigh replace {INSIDE['ipv4'].host(k)} lladdr {mac} dev {first.inside} nud permanent\n"
            for k in range(subscribers)
        )
        assert first.run(f"ip -batch - <<HOSTS\n{hosts}HOSTS\n").status == 0
        server = f"{SERVER} lladdr {self.responder.mac.hex(':')} dev {last.outside} nud permanent"
        assert last.run(f"ip neigh replace {server}").status == 0
        # What is on its way while the devices look for each other waits, up to a hundred frames of it.
        self.initiator.send([Datagram(INSIDE["ipv4"].host(0), 1, SERVER, 9, b"first")])
        assert len(self.responder.receive(1)) == 1


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_subscribers_keep_to_their_ports_and_get_their_answers(name: str, stack: ExitStack) -> None:
    stand = Stand(load(name), SUBSCRIBERS, 3 * SUBSCRIBERS, stack)
    # The same source port of all, which only one of 31 can keep.
    sent = [
        Datagram(INSIDE["ipv4"].host(k), port, SERVER, 7, b"%05d %05d" % (k, port))
        for port in (3000, 3001)
        for k in range(SUBSCRIBERS)
    ]
    seen, back = [], []
    for begin in range(0, len(sent), 500):
        stand.initiator.send(sent[begin : begin + 500])
        some = stand.responder.receive(500)
        stand.responder.send(one.reply() for one in some)
        seen += some
        back += stand.initiator.receive(500)
    assert len(seen) == len(sent)
    source_of = {one.payload: one.source for one in sent}
    violations = []
    for one in seen:
        address, ports = right_set(IPv4Address(source_of[one.payload]))
        if one.source != address or one.source_port not in ports:
            violations.append(one)
    assert violations == []
    assert len({(one.source, one.source_port) for one in seen}) == len(sent)
    assert {one.payload: one for one in back} == {one.payload: one.reply() for one in sent}
    assert stand.chain.count() == len(sent) + 1
    assert stand.chain.strays() == {}
    assert {cause: count for cause, count in stand.chain.faults().items() if count} == {}


#: A table that the search for a rate and the reading of the list take long for.
LARGE = pytest.param(100_000, marks=[soak, pytest.mark.slow("each trial opens and removes 100,000 entries")])


@pytest.mark.parametrize("connections", [5_000, LARGE])
@pytest.mark.parametrize("name", [pytest.param("lw4o6", marks=soak), "map-t"])
def test_many_connections_of_a_thousand_subscribers_stay_in_their_sets(
    name: str, connections: int, tmp_path: Path
) -> None:
    asked = {"lab_name": own("e2e-subs"), "subscribers": SUBSCRIBERS, "connections": connections}
    question = ask("connection-rate", name, asked)
    bench = Bench(question.cell)
    assert bench.traffic.source_addresses.count == SUBSCRIBERS
    with bench:
        measurer = bench.ready(bench.plan("connection-rate", question.settings), Memory()).measurer
        outcome = decided(measurer, PlanOfTrial(connections, OPENING_RATE))
        assert (outcome.verdict, outcome.table_count) == (Verdict.PASS, connections), outcome.reason
        assert bench.device is not None
        assert bench.device.strays() == {}
        # Through a file: of what a snippet prints, the first octets are kept only.
        listing = tmp_path / "table"
        assert bench.lab.devices[0].run(f"conntrack -L -p udp > {listing} 2> /dev/null").status == 0
    entry = re.compile(r"src=(10\.\S+) .* src=198\.19\.\S+ dst=(198\.18\.\S+) sport=\d+ dport=(\d+)")
    entries = [match for line in listing.read_text().splitlines() if (match := entry.search(line))]
    assert len(entries) == connections
    violations = 0
    for inside, outside, port in (one.groups() for one in entries):
        address, ports = right_set(IPv4Address(inside))
        violations += IPv4Address(outside) != address or int(port) not in ports
    assert violations == 0


def map_t_before_the_reference() -> str:
    """A chain whose customer edge looks at no ports, before the reference as BR."""
    before, br, _ = load("map-t-tayga").origin.read_text().partition('recipe = "tayga-map-br"')
    assert br
    return f'{before}recipe = "reference-br"\nenvironment.REFERENCE_TECHNOLOGY = "map-t"\n'


def foreign_edge(tmp_path: Path, name: str) -> Path:
    """One whose NAT gives out the ports of the next set, behind the tunnel or translator of its own."""
    text = map_t_before_the_reference() if name == "map-t-tayga" else load(name).origin.read_text()
    good = 'verbs.start = \'ip route replace "$NG_RESPONDER_NETWORK4" via "$NG_OUTSIDE_PEER4"\''
    assert good in text
    bad = good.replace(
        "4\"'",
        '4"; nft flush map ip natgauge sets; '
        'nft add element ip natgauge sets "{ 10.0.0.2 : 198.18.0.1 . 4096-6143 }"\'',
    )
    path = tmp_path / f"{name}-foreign.toml"
    path.write_text(text.replace(good, bad).replace(f'name = "{name}"', f'name = "{name}-foreign"'))
    return path


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        # RFC 7596 section 6.2: without a binding of its own the next set is nobody's; a MAP rule knows its owner.
        ("lw4o6-kernel", "no_subscriber"),
        ("map-e-kernel", "wrong_port_set"),
        pytest.param("map-t-tayga", "wrong_port_set", marks=soak),
        pytest.param("lw4o6-tunnels", "wrong_port_set", marks=soak),
        pytest.param("map-e-tunnels", "wrong_port_set", marks=soak),
    ],
)
def test_a_customer_edge_that_sends_from_anothers_ports_is_dropped_and_named(
    name: str, cause: str, tmp_path: Path
) -> None:
    path = foreign_edge(tmp_path, name)
    question = ask("connection-rate", str(path), {"lab_name": own("e2e-subs"), "connections": 100})
    bench = Bench(question.cell)
    with bench, pytest.raises(BrokenError) as error:
        bench.ready(bench.plan("connection-rate", question.settings), Memory())
    said = str(error.value)
    assert "device does not forward: phase 1, from inside: 0 of 8 frames came back" in said
    assert re.search(rf"the device counted \d+ x (br|lwaftr) {cause}", said)
    assert "\n" not in said


@pytest.mark.parametrize(("name", "carries"), [("lw4o6", 40), pytest.param("map-e", 40, marks=soak), ("map-t", 20)])
def test_what_is_too_big_for_the_softwire_is_answered_with_icmp(name: str, carries: int, stack: ExitStack) -> None:
    stand = Stand(load(name), 1, 10, stack)
    mtu = int(stand.lab.devices[0].run('cat "/sys/class/net/$NG_OUTSIDE/mtu"').stdout)
    largest = mtu - carries - 28
    sent = [Datagram(INSIDE["ipv4"].host(0), 2000, SERVER, 7, b"x" * octets) for octets in (largest, largest + 1)]
    stand.initiator.send(sent)
    seen = stand.responder.receive(2, seconds=0.5)
    assert [len(one.payload) for one in seen] == [largest]
    answer = icmp(stand.initiator)
    # Type 3, code 4, and the MTU of the next hop (RFC 1191 section 4); then the header that was too much.
    assert struct.unpack("!BB2xHH", answer[:8]) == (3, 4, 0, mtu - carries)
    assert checksum(answer) == 0
    assert answer[24:28] == SERVER.packed


def icmp(tap: Tap) -> bytes:
    """The first ICMP message of IPv4 that comes to a tap."""
    tap._socket.settimeout(2)
    while True:
        frame = tap._socket.recv(8192)
        if frame[:6] == tap.mac and frame[12:14] == b"\x08\x00" and frame[23] == 1:
            return frame[34 : 14 + int.from_bytes(frame[16:18], "big")]
