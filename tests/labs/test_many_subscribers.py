# SPDX-License-Identifier: Apache-2.0
"""The reference BR and lwAFTR with many subscribers: each one's own ports pass both ways, no other's do.

The test plays the customer edges itself, so nothing keeps it from sending from the wrong set; no NAT stands before the
BR. Expected addresses are computed from the standards, not with what the devices or the plan use.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import pytest
from tests.labs.datagrams import Datagram, parse
from tests.labs.program import own
from tests.labs.wire import Tap

from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import load
from natgauge.labs.common.addresses import NAT64_PREFIX, OUTSIDE
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.common.namespaces import inside
from natgauge.labs.netns.lab import NetnsLab

pytestmark = pytest.mark.waits

#: So many frames are on their way at one time.
TOGETHER: Final = 250
SERVER: Final = OUTSIDE["ipv4"].host(0)
BR: Final = IPv6Address("2001:db8:ffff::1")
#: Of the packets that a softwire carries: next header 4 (RFC 2473 section 3), hop limit 64.
_OUTER: Final = struct.pack("!I", 6 << 28)


def share_of(number: int) -> tuple[IPv4Address, int]:
    """A subscriber's address and PSID: 31 sets of 2048 ports on each address, the first set is the system's."""
    return IPv4Address("198.18.0.1") + number // 31, 1 + number % 31


def own_port(number: int, psid: int) -> int:
    """One of a set's ports, another one for neighbours: a is 0 and m is 11 in RFC 7597 section 5.1."""
    return psid * 2048 + number % 2048


def map_address(number: int) -> IPv6Address:
    """By RFC 7597 sections 5.2 and 6 for the rule 2001:db8::/40, 198.18.0.0/16, 21 EA bits: 61 bits, 3 of subnet 0."""
    address, psid = share_of(number)
    embedded = (int(address) & 0xFFFF) << 5 | psid
    prefix = int(IPv6Address("2001:db8::")) | embedded << 67
    return IPv6Address(prefix | int(address) << 16 | psid)


class Edges:
    """The customers' side of the BR: raw frames on the link before it."""

    def __init__(self, lab: NetnsLab) -> None:
        ce, br = lab.devices
        assert isinstance(ce, NamespaceDevice)
        # What comes for the edges is the test's; the kernel there keeps silent.
        for setting in ("ipv6/conf/all/forwarding", "ipv4/ip_forward"):
            assert ce.run(f"echo 0 > /proc/sys/net/{setting}").status == 0
        everything = socket.htons(0x0003)
        self.socket = inside(ce.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, everything))
        self.socket.bind((ce.outside, 0x0003))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self.own: bytes = self.socket.getsockname()[4]
        self.far = bytes.fromhex(br.run('cat "/sys/class/net/$NG_INSIDE/address"').stdout.strip().replace(":", ""))

    def receive(self, count: int, seconds: float = 3.0) -> list[bytes]:
        """IPv6 packets that come from the BR with UDP or IPv4 in them."""
        found: list[bytes] = []
        deadline = time.monotonic() + seconds
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                frame = self.socket.recv(4096)
            except TimeoutError:
                break
            if frame[:6] == self.own and frame[12:14] == b"\x86\xdd" and frame[20] in {4, 17}:
                found.append(frame[14:])
        return found

    def send(self, packets: Sequence[bytes]) -> None:
        """Send IPv6 packets to the BR."""
        for packet in packets:
            self.socket.send(self.far + self.own + b"\x86\xdd" + packet)


class Technology:
    """What crosses the link between edge and BR for one subscriber's datagram, and back."""

    def __init__(self, name: str) -> None:
        self.translates = name == "map-t"

    def up(self, number: int, port: int) -> bytes:
        """From the subscriber's edge."""
        own, payload = map_address(number), b"%08d" % number
        if self.translates:
            far = NAT64_PREFIX.network_address + int(SERVER)
            return Datagram(own, port, far, 7, payload).frame("00" * 6, "00" * 6)[14:]
        inner = Datagram(share_of(number)[0], port, SERVER, 7, payload).frame("00" * 6, "00" * 6)[14:]
        return _OUTER + struct.pack("!HBB", len(inner), 4, 64) + own.packed + BR.packed + inner

    def read(self, packet: bytes) -> tuple[IPv6Address, Datagram]:
        """The edge that it comes for, and the datagram."""
        ethertype, carried = (b"\x86\xdd", packet) if self.translates else (b"\x08\x00", packet[40:])
        read = parse(b"\0" * 12 + ethertype + carried)
        assert read is not None
        assert read.checksums_right
        return IPv6Address(packet[24:40]), read


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


#: These subscribers need numbers of more than 16 bits.
MANY = pytest.param(
    100_000, marks=[pytest.mark.soak, pytest.mark.slow("sends and reads 200,000 frames with sockets of Python")]
)


@pytest.mark.parametrize("subscribers", [2_000, MANY])
@pytest.mark.parametrize("name", ["map-t", "map-e", "lw4o6"])
def test_each_subscriber_has_its_own_ports_and_no_others(name: str, subscribers: int, stack: ExitStack) -> None:
    technology, recipe = Technology(name), load(name)
    names = [part.device for part in recipe.chain]
    lab = stack.enter_context(
        NetnsLab(own("test-many"), initiator_family="ipv4", responder_family="ipv4", devices=names)
    )
    relay = stack.enter_context(Gateway(recipe.of_devices(0)[1], lab.devices[1]))
    relay.prepare(
        DeviceDemand(subscribers, phase1_seconds=60, source_addresses=subscribers, port_sets=recipe.port_sets)
    )
    relay.start()
    edges, responder = Edges(lab), stack.enter_context(Tap(lab.responder))
    stack.callback(edges.socket.close)
    server = f"{SERVER} lladdr {responder.mac.hex(':')} dev {lab.devices[1].outside} nud permanent"
    assert lab.devices[1].run(f"ip neigh replace {server}").status == 0
    edges.send([technology.up(0, own_port(0, share_of(0)[1]))])
    assert len(responder.receive(1)) == 1
    violations = lost = 0
    for begin in range(0, subscribers, TOGETHER):
        numbers = range(begin, min(begin + TOGETHER, subscribers))
        edges.send([technology.up(k, own_port(k, share_of(k)[1])) for k in numbers])
        seen = {int(one.payload): one for one in responder.receive(len(numbers))}
        for number, one in seen.items():
            address, psid = share_of(number)
            violations += (one.source, one.source_port >> 11) != (address, psid)
        responder.send(one.reply() for one in seen.values())
        back = dict(technology.read(packet) for packet in edges.receive(len(seen)))
        lost += len(numbers) - len(seen) + len(seen) - len(back)
        # Each answer came to the edge whose subscriber had asked.
        assert {address: int(one.payload) for address, one in back.items()} == {map_address(k): k for k in seen}
    assert (violations, lost) == (0, 0)
    assert {cause: number for cause, number in relay.faults().items() if number} == {}
    # The next one's set, from each of a thousand edges all over the sets.
    strangers = range(0, subscribers, subscribers // 1000)
    edges.send([technology.up(k, own_port(k, 1 + share_of(k)[1] % 31)) for k in strangers])
    assert responder.receive(1, seconds=0.5) == []
    faults = {cause: number for cause, number in relay.faults().items() if number}
    assert sum(faults.values()) == len(strangers)
    assert set(faults) <= {"wrong_port_set", "no_subscriber"}
