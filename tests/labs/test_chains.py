# SPDX-License-Identifier: Apache-2.0
"""Every chain of the folder in namespaces: what crosses its links, which device holds the state, what is left."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from pathlib import Path

import pytest
from tests.labs.datagrams import Datagram, parse
from tests.labs.hosts import capturing, until
from tests.labs.last_runs import playable, record
from tests.labs.test_gateways import traces
from tests.labs.wire import Tap

from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Recipe, available, load
from natgauge.labs.common.addresses import INSIDE, NAT64_PREFIX, OUTSIDE
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Device
from natgauge.labs.netns.lab import NetnsLab

#: They measure nothing and can wait for a core.
pytestmark = pytest.mark.calm
NAMES = [name for name in available() if load(name).chain and playable(load(name))]
#: In `make test` each format on the wire once, and a stop by each way of making a softwire; `make soak` has all chains.
FORMATS = {"464xlat-tayga", "ds-lite", "lw4o6", "map-e-kernel", "map-t"}
STOPPED = {"464xlat-tayga", "ds-lite", "lw4o6-kernel", "map-t"}
FLOWS = 100
IPV4_IN_IPV6 = 4
UDP = 17
#: Kinds whose inner frames are IPv4 in IPv6, and the outer addresses of both ends (RFC 6333, RFC 7597 section 6, the
#: lwAFTR's binding table).
BR = "2001:db8:ffff::1"
MAP_ADDRESS = "2001:db8:0:108:0:c612:1:1"
TUNNELS = {
    "ds-lite": ("2001:2:0:d5::b4", "2001:2:0:d5::af"),
    "map-e": (MAP_ADDRESS, BR),
    "lw4o6": (MAP_ADDRESS, BR),
}
#: Where translators have the Initiator in IPv6.
INNER_SOURCES = {"464xlat": "2001:2:0:c::/64", "map-t": f"{MAP_ADDRESS}/128"}
#: The first subscriber's ports: PSID 1 of 5 bits, for PSID 0 has the system's.
FIRST_SET = range(2048, 4096)


@dataclass
class Stand:
    """A lab with a started chain; `before` = what was in its devices when it was not yet started."""

    recipe: Recipe
    lab: NetnsLab
    chain: Chain
    before: list[dict[str, str]]

    @property
    def plan(self) -> DeviceDemand:
        return DeviceDemand(connections=FLOWS, phase1_seconds=5, after_seconds=5, port_sets=self.recipe.port_sets)

    @property
    def encapsulated(self) -> int:
        """Which of the devices sends IPv6 towards the Responder: the first that does."""
        families = [part.recipe.responder_family for part in self.recipe.chain]
        return families.index("ipv6")

    def introduce(self, initiator: Tap, responder: Tap) -> None:
        """Tell the outer devices the tester's hosts; with the engine they answer for themselves."""
        first, last = self.lab.devices[0], self.lab.devices[-1]
        for device, tap, side, interface in (
            (first, initiator, INSIDE["ipv4"], first.inside),
            (last, responder, OUTSIDE["ipv4"], last.outside),
        ):
            host = f"{side.host(0)} lladdr {tap.mac.hex(':')}"
            assert device.run(f"ip neigh replace {host} dev {interface} nud permanent").status == 0


def on(names: Collection[str]) -> pytest.MarkDecorator:
    """For these chains, in `make soak` for all others, too; one lab serves all tests of a chain."""
    chains = [pytest.param(name, marks=() if name in names else pytest.mark.soak) for name in NAMES]
    return pytest.mark.parametrize("stand", chains, indirect=True, scope="module")


@pytest.fixture(scope="module")
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    recipe = load(request.param)
    names = [part.device for part in recipe.chain]
    with NetnsLab("test-chains", initiator_family="ipv4", responder_family="ipv4", devices=names) as lab:
        players = [Gateway(one, device) for one, device in zip(recipe.of_devices(0), lab.devices, strict=True)]
        with Chain(players, recipe.holder) as chain:
            stand = Stand(recipe, lab, chain, [traces(device) for device in lab.devices])
            chain.start(stand.plan)
            yield stand


class Capture:
    """IPv6 frames that leave a device towards the Responder, or come back that way."""

    def __init__(self, device: Device) -> None:
        assert isinstance(device, NamespaceDevice)
        everything = socket.htons(0x0003)
        self.socket = inside(device.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, everything))
        self.socket.bind((device.outside, 0x0003))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)

    def frames(self, next_header: int) -> list[bytes]:
        """Those seen so far with this next header."""
        self.socket.settimeout(0.2)
        found: list[bytes] = []
        while True:
            try:
                frame = self.socket.recv(4096)
            except TimeoutError:
                self.socket.close()
                return found
            if frame[12:14] == b"\x86\xdd" and frame[20] == next_header:
                found.append(frame)


def sent() -> list[Datagram]:
    source, destination = INSIDE["ipv4"].host(0), OUTSIDE["ipv4"].host(0)
    return [Datagram(source, 2000 + i, destination, 7, b"connection %04d" % i) for i in range(FLOWS)]


def unwrapped(frame: bytes) -> Datagram | None:
    """The IPv4 datagram behind the outer header."""
    return parse(frame[:12] + b"\x08\x00" + frame[54:])


def addresses(frame: bytes) -> tuple[IPv6Address, IPv6Address]:
    return IPv6Address(frame[22:38]), IPv6Address(frame[38:54])


@on(NAMES)
def test_it_translates_both_ways_and_only_one_device_holds_the_state(stand: Stand) -> None:
    with Tap(stand.lab.initiator) as initiator, Tap(stand.lab.responder) as responder:
        stand.introduce(initiator, responder)
        # What is on its way while neighbours are looked for waits, up to a hundred frames of it.
        initiator.send(sent()[:1])
        assert len(responder.receive(1)) == 1
        capture = Capture(stand.lab.devices[stand.encapsulated])
        initiator.send(sent())
        seen = responder.receive(FLOWS)
        shares = stand.recipe.port_sets is not None
        assert {str(one.source) for one in seen} == {"198.18.0.1" if shares else str(OUTSIDE["ipv4"].device.ip)}
        assert not shares or all(one.source_port in FIRST_SET for one in seen)
        responder.send(one.reply() for one in seen)
        back = initiator.receive(FLOWS)
    expected = {one.payload: one.reply() for one in sent()}
    assert {one.payload: one for one in back} == expected
    assert stand.chain.count() == FLOWS
    assert stand.chain.strays() == {}
    tunnelled = stand.recipe.kind in TUNNELS
    frames = capture.frames(IPV4_IN_IPV6 if tunnelled else UDP)
    inner = [one for one in map(unwrapped if tunnelled else parse, frames) if one is not None]
    assert len(frames) == len(inner) == 2 * FLOWS
    assert all(one.checksums_right for one in inner)
    if tunnelled:
        near, far = map(IPv6Address, TUNNELS[stand.recipe.kind])
        assert {addresses(frame) for frame in frames} == {(near, far), (far, near)}
        carried = {one.payload: one for one in inner if one.destination_port == 7}
        # What is translated at the customer's edge is inside the tunnel as it is outside.
        assert carried == {one.payload: one for one in (seen if shares else sent())}
    else:
        up = [one for one in inner if one.destination_port == 7]
        assert {one.destination for one in up} == {NAT64_PREFIX.network_address + int(OUTSIDE["ipv4"].host(0))}
        assert all(one.source in IPv6Network(INNER_SOURCES[stand.recipe.kind]) for one in up)
    stand.chain.empty()
    assert stand.chain.count() == 0
    record(stand.recipe.name, "here", [line for one in stand.chain.gateways for line in one.version()])


class Shark:
    """What tshark makes of the frames on one interface, which is nobody's of this project."""

    #: Unless told so it does not look at checksums, for a card may fill them in later.
    CHECKS = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    GOOD = "1"
    FIELDS = (
        "ipv6.src", "ipv6.dst", "ipv6.nxt", "ipv6.plen", "ip.src", "ip.dst", "ip.len", "ip.checksum.status",
        "udp.srcport", "udp.dstport", "udp.checksum.status", "ipv6.routing.type",
    )  # fmt: skip

    def __init__(self, netns: str, interface: str, file: Path) -> None:
        self._file = file
        self._process = capturing(netns, interface, file, "ip or ip6")

    def stop(self, count: int) -> None:
        """Capture no more, once this many of the datagrams that tests send are in the file."""
        # They have passed, but tcpdump may not have written them yet.
        until(lambda: self._file.read_bytes().count(b"connection ") >= count)
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=30)

    def datagrams(self) -> list[dict[str, list[str]]]:
        """Every UDP datagram from or to port 7 that it saw: all values of each field, outermost first."""
        fields = [word for field in self.FIELDS for word in ("-e", field)]
        command = ["tshark", "-r", str(self._file), *self.CHECKS, "-Y", "udp.port == 7", "-T", "fields", *fields]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = [line.split("\t") for line in printed.splitlines()]
        return [
            {name: value.split(",") if value else [] for name, value in zip(self.FIELDS, row, strict=True)}
            for row in rows
        ]


def embedded(prefix: str, address: str) -> str:
    """An IPv4 address behind a prefix of 96 bits (RFC 6052 section 2.2)."""
    return str(IPv6Network(prefix).network_address + int(IPv4Address(address)))


@on(FORMATS)
def test_tshark_sees_the_standards_format_inside_and_right_checksums_at_both_ends(stand: Stand, tmp_path: Path) -> None:
    host, server = str(INSIDE["ipv4"].host(0)), str(OUTSIDE["ipv4"].host(0))
    first, middle, last = stand.lab.devices[0], stand.lab.devices[stand.encapsulated], stand.lab.devices[-1]
    with Tap(stand.lab.initiator) as initiator, Tap(stand.lab.responder) as responder:
        stand.introduce(initiator, responder)
        initiator.send(sent()[:1])
        assert len(responder.receive(1)) == 1
        places = ((first, first.inside), (middle, middle.outside), (last, last.outside))
        sharks = []
        for number, (device, interface) in enumerate(places):
            assert isinstance(device, NamespaceDevice)
            sharks.append(Shark(device.netns, interface, tmp_path / f"{number}.pcapng"))
        initiator.send(sent()[1:11])
        seen = responder.receive(10)
        responder.send(one.reply() for one in seen)
        assert len(initiator.receive(10)) == 10
    for shark in sharks:
        shark.stop(20)
    near, inner, far = (shark.datagrams() for shark in sharks)
    outside = {one.source_port: str(one.source) for one in seen}
    for end in (near, inner, far):
        assert len(end) == 20
        assert {one["udp.checksum.status"][0] for one in end} == {Shark.GOOD}
    for end in (near, far):
        assert all((one["ipv6.nxt"], one["ip.checksum.status"]) == ([], [Shark.GOOD]) for one in end)
    assert {one["ip.src"][0] for one in near if one["udp.dstport"] == ["7"]} == {host}
    assert {(one["ip.src"][0], int(one["udp.srcport"][0])) for one in far if one["udp.dstport"] == ["7"]} == {
        (address, port) for port, address in outside.items()
    }
    up = [one for one in inner if one["udp.dstport"] == ["7"]]
    down = [one for one in inner if one["udp.srcport"] == ["7"]]
    assert (len(up), len(down)) == (10, 10)
    # The reduced form of SRv6 has no routing header: next header 4, as ip6tnl has it.
    assert all(one["ipv6.routing.type"] == [] for one in inner)
    if stand.recipe.kind in TUNNELS:
        edge, relay = TUNNELS[stand.recipe.kind]
        assert all(one["ipv6.nxt"] == [str(IPV4_IN_IPV6)] for one in inner)
        assert all(one["ip.checksum.status"] == [Shark.GOOD] for one in inner)
        # Nothing but the IPv4 packet is behind the outer header (RFC 2473 section 3).
        assert all(one["ipv6.plen"] == one["ip.len"] for one in inner)
        carried = host if stand.recipe.port_sets is None else "198.18.0.1"
        assert {(*one["ip.src"], *one["ip.dst"]) for one in up} == {(carried, server)}
        assert {(*one["ip.src"], *one["ip.dst"]) for one in down} == {(server, carried)}
    else:
        relay = embedded(str(NAT64_PREFIX), server)
        # RFC 7757 section 3.1 for a CLAT's hosts; MAP's is computed beside its definition.
        edge = "2001:2:0:c::2" if stand.recipe.kind == "464xlat" else MAP_ADDRESS
        assert all((one["ipv6.nxt"], one["ip.src"]) == ([str(UDP)], []) for one in inner)
    ends = {(IPv6Address(one["ipv6.src"][0]), IPv6Address(one["ipv6.dst"][0])) for one in up}
    assert ends == {(IPv6Address(edge), IPv6Address(relay))}
    back = {(IPv6Address(one["ipv6.src"][0]), IPv6Address(one["ipv6.dst"][0])) for one in down}
    assert back == {(IPv6Address(relay), IPv6Address(edge))}


@on(STOPPED)
def test_stop_leaves_nothing_and_a_second_start_works(stand: Stand) -> None:
    for start in (False, True):
        for gateway in stand.chain.gateways if start else ():
            gateway.prepare(stand.plan)
            gateway.start()
        for gateway in reversed(stand.chain.gateways):
            gateway.stop()
        # The kernel learns neighbours and drops routes in its own time.
        until(lambda: [traces(device) for device in stand.lab.devices] == stand.before)
        assert [traces(device) for device in stand.lab.devices] == stand.before
