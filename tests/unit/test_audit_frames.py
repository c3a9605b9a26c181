# SPDX-License-Identifier: Apache-2.0
"""Frames of an audit: what no octets, flood, wrong checksum or silent neighbour may do to it."""

from __future__ import annotations

import itertools
import random
import socket
import struct
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulated_nat import Behaviour, examiner_of
from tests.unit.simulated_nat64 import INSIDE

from natgauge.audits.audit import examine, forwards, other_traffic_doubt
from natgauge.audits.kit.datagrams import quoting
from natgauge.audits.kit.examiner import FloodError, NotSeenError
from natgauge.audits.kit.network import (
    _MOST_KEPT,
    _MOST_OCTETS,
    ArrivedFrame,
    AuditSide,
    Missed,
    Network,
    PacketSockets,
    PortTraffic,
    attach,
    is_partial,
    pcapng,
    program,
)
from natgauge.audits.kit.packets import (
    ACK,
    SYN,
    EchoMessage,
    Endpoint,
    ErrorMessage,
    Packet,
    TcpSegment,
    UdpSegment,
    described,
    is_right,
    is_same,
    is_tcp,
    make_error,
    make_packet,
    read_packet,
)
from natgauge.audits.requirements import NO_FLOWS, Requirement, requirements
from natgauge.records.audit import AuditedRequirement
from natgauge.words import Side

MAC = b"\x02\0\0\0\0\x01"
#: Random frames of each family.
FRAMES = 50_000


class SilentPorts:
    """Ports at which nothing arrives; they record what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Side, bytes]] = []

    def now(self) -> float:
        return 0.0

    def mac(self, side: Side) -> bytes:
        return MAC if side == "initiator" else MAC[:-1] + b"\x02"

    def send(self, side: Side, octets: bytes) -> None:
        self.sent.append((side, octets))

    def receive(self, until: float) -> None:
        assert until >= 0

    def missed(self) -> Missed:
        return Missed()


def network(version: int = 4) -> Network:
    inside = ("10.0.0.2", "10.0.0.1") if version == 4 else ("2001:2::2", "2001:2::1")
    host, gateway = map(ip_address, inside)
    outside = AuditSide((ip_address("198.19.0.2"),), ip_address("198.19.0.1"))
    return Network(SilentPorts(), {"initiator": AuditSide((host,), gateway), "responder": outside})


def look_everywhere(packet: Packet) -> None:
    """Do with a packet that arrived what examinations do with it."""
    own = make_packet(Endpoint(packet.source, 1), Endpoint(packet.source, 2), UdpSegment(b"12345678"))
    assert described(packet)
    assert packet.octets()
    is_right(packet)
    is_same(packet, own)
    is_tcp(packet, Endpoint(packet.destination, 7), SYN | ACK)
    quoting(packet, [packet.sender, packet.receiver])
    assert isinstance(packet.is_fragment, bool)


def take(where: Network, side: Side, octets: bytes) -> None:
    """Let a frame arrive, and look at it as examinations do."""
    since = len(where.frames)
    where._take(side, octets)
    for frame in where.arrived(since, side):
        where.received(frame)
        look_everywhere(frame.packet)
    assert pcapng(where.frames[since:])


def right_packets(version: int) -> list[Packet]:
    host = ip_address("10.0.0.2") if version == 4 else ip_address("2001:2::2")
    ends = Endpoint(host, 4000), Endpoint(host, 5000)
    kind = 3 if version == 4 else 1
    datagram = make_packet(*ends, UdpSegment(b"x" * 40))
    error = make_error(host, host, ErrorMessage(kind, 1, 0, datagram.octets()))
    nested = make_error(host, host, ErrorMessage(kind, 1, 0, error.octets()))
    segments = (make_packet(*ends, TcpSegment(SYN, 9)), make_packet(*ends, EchoMessage(is_request=True, data=b"q")))
    return [datagram, *datagram.cut(16), error, nested, *segments]


KINDS = st.sampled_from([b"\x08\x00", b"\x86\xdd", b"\x08\x06", b"\x81\x00", b"\x88\xa8"])
TO = st.sampled_from([MAC, b"\xff" * 6, b"\x33\x33\0\0\0\1", b"\x02\0\0\0\0\x99"])
RIGHT = [packet.octets() for version in (4, 6) for packet in right_packets(version)]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A packet of an audit that is cut, longer, or has other octets."""
    octets = bytearray(draw(st.sampled_from(RIGHT)))
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(octets) - 1), st.integers(0, 255)), max_size=6)):
        octets[at] = value
    return bytes(octets[: draw(st.integers(0, len(octets)))]) + draw(st.binary(max_size=20))


@given(octets=st.binary(max_size=120) | mutated())
def test_no_octets_make_reading_a_packet_raise(octets: bytes) -> None:
    packet = read_packet(octets)
    if packet is not None:
        look_everywhere(packet)


@given(
    to=TO,
    kind=KINDS,
    body=st.binary(max_size=120) | mutated(),
    cut=st.integers(0, 400),
    version=st.sampled_from([4, 6]),
)
def test_no_frame_makes_the_tester_raise(to: bytes, kind: bytes, body: bytes, cut: int, version: int) -> None:
    octets = (to + MAC + kind + body)[:cut]
    take(network(version), "initiator", octets)
    take(network(version), "responder", octets)


def random_frames(chance: random.Random) -> Iterator[bytes]:
    """Frames whose first octets are those of ARP, IPv4 and IPv6, so that the rest is looked at."""
    while True:
        body = bytearray(chance.randbytes(chance.choice((0, 1, 8, 20, 28, 40, 41, 48, 60, 100))))
        kind = chance.choice((b"\x08\x06", b"\x08\0", b"\x86\xdd"))
        if kind == b"\x08\x06":
            body = bytearray(b"\0\1\x08\0\6\4") + body
        elif len(body) > 9 and kind == b"\x08\0":
            body[0] = chance.choice((0x45, 0x45, 0x4F, 0x40, 0x46))
            body[2:4] = chance.choice((0, 19, 20, 21, 28, len(body), 65535)).to_bytes(2, "big")
            body[9] = chance.choice((1, 6, 17, 58, 0))
        elif len(body) > 6:
            body[0] = 0x60
            body[4:6] = chance.choice((0, 1, 2, 4, 8, 20, len(body), 65535)).to_bytes(2, "big")
            body[6] = chance.choice((58, 17, 6, 44, 0, 43, 60, 1, 59))
        frame = chance.choice((MAC, b"\xff" * 6, chance.randbytes(6))) + chance.randbytes(6) + kind + bytes(body)
        yield frame[: chance.randrange(len(frame) + 1)] if chance.random() < 0.05 else frame


@pytest.mark.parametrize("version", [4, 6])
def test_an_audit_survives_random_frames(version: int) -> None:
    chance, where = random.Random(version), network(version)  # noqa: S311 - any frames will do
    for number, octets in zip(range(FRAMES), random_frames(chance), strict=False):
        take(where, chance.choice(("initiator", "responder")), octets)
        if not number % 1000:
            where.forget()


def test_an_icmpv6_packet_without_payload_is_a_packet_like_others() -> None:
    where = network()
    for protocol in (58, 1, 6, 17):
        empty = Packet(IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"), protocol, b"")
        take(where, "initiator", MAC + MAC + b"\x08\0" + empty.octets())
    # IPv4 has no ICMPv6: a host drops it.
    assert [(frame.packet.protocol, frame.packet.payload) for frame in where.frames] == [(1, b""), (6, b""), (17, b"")]


def test_a_packet_to_an_address_of_another_host_is_dropped_and_counted() -> None:
    where = network()
    other = make_packet(Endpoint(IPv4Address("10.0.0.1"), 1), Endpoint(IPv4Address("10.0.0.9"), 2), UdpSegment(b""))
    take(where, "initiator", MAC + MAC + b"\x08\0" + other.octets())
    assert (len(where.frames), where.load().arrived) == (0, 1)


def test_errors_that_quote_errors_are_described_however_deep_they_are() -> None:
    host, octets = IPv4Address("10.0.0.2"), b""
    while len(octets) < 65_000:
        octets = make_error(host, host, ErrorMessage(3, 1, 0, octets)).octets()
    packet = read_packet(octets)
    assert packet is not None
    assert described(packet).count("which quotes") == 1


def test_frames_that_no_verdict_needs_are_forgotten_and_others_keep_their_numbers() -> None:
    where, packet = network(), right_packets(4)[0]
    octets = MAC + MAC + b"\x08\0" + packet.octets()
    for _ in range(3):
        where._take("initiator", octets)
    where.received(where.frames[1])
    where.forget()
    assert [bool(frame.octets) for frame in where.frames] == [False, True, False]
    assert where.arrived(0, "initiator") == [where.frames[1]]


def test_no_more_frames_are_kept_than_a_verdict_can_need_and_the_others_are_counted() -> None:
    where = network()
    frame: Any = SimpleNamespace(is_told=False, octets=b"")
    for _ in range(_MOST_KEPT + 5):
        where._keep(frame)
    assert len(where.frames) == _MOST_KEPT
    assert where.load().dropped == 5
    where.forget()
    longest: Any = SimpleNamespace(is_told=False, octets=bytes(_MOST_OCTETS // 2))
    for _ in range(3):
        where._keep(longest)
    assert where.load().dropped == 6


@pytest.mark.parametrize("address", [IPv4Address("198.19.0.2"), IPv6Address("2001:2::2")])
def test_a_packet_of_another_family_opens_no_flow(address: IPv4Address | IPv6Address) -> None:
    """Endpoints of two families have no order, and a device may copy the data of one packet into another."""
    looks = examiner_of(Behaviour())
    remote = looks.remote()
    taken: list[bool] = []

    def wait(_side: Side, wanted: Callable[[Packet], bool], *_rest: object, **_more: object) -> None:
        data = looks.network.frames[-1].packet.segment
        assert isinstance(data, UdpSegment)
        copy = make_packet(Endpoint(address, 9), Endpoint(address, remote.port), UdpSegment(data.data))
        taken.append(wanted(copy))

    looks.network.wait = wait  # type: ignore[method-assign, assignment]
    with pytest.raises(NotSeenError):
        looks.open(looks.endpoint(), remote, "udp")
    assert all(taken) == any(taken) == (address.version == remote.address.version)


class Endless:
    """A packet socket that always has another frame."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def recvmsg(self, *_most: int) -> tuple[bytes, list[Any]]:
        """Return a frame; reading it takes as long as the next one needs to arrive."""
        self._clock[0] += 1e-5
        return MAC, []


def ports_of(**sockets: Any) -> PacketSockets:
    port: Any = None
    ports = PacketSockets(port, port)
    ports._sockets = sockets  # type: ignore[assignment]
    return ports


def test_receiving_ends_at_its_time_although_frames_arrive_faster_than_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("natgauge.audits.kit.network.time.monotonic", lambda: clock[0])
    ports = ports_of(initiator=Endless(clock), responder=Endless(clock))
    read = 0
    while ports.receive(0.3) is not None and clock[0] < 5.0:
        read += 1
    assert clock[0] < 0.5, "0.3 s, and what both queues hold then"
    assert read > 1000


def test_what_arrived_in_time_is_read_although_the_host_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [b"one", b"two"]

    def recvmsg(*_most: int) -> tuple[bytes, list[Any]]:
        if not left:
            raise BlockingIOError
        return left.pop(0), []

    monkeypatch.setattr("natgauge.audits.kit.network.time.monotonic", lambda: 100.0)
    ports = ports_of(initiator=SimpleNamespace(recvmsg=recvmsg))
    read = [ports.receive(1.0) for _ in range(3)]
    assert read == [ArrivedFrame("initiator", b"one"), ArrivedFrame("initiator", b"two"), None]


def run_filter(program: bytes, frame: bytes, *, vlan: bool) -> int:
    """Run classic BPF as the kernel does: a load beyond the frame ends it with 0."""
    steps = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    for _ in range(len(steps)):
        code, then, otherwise, k = steps[at]
        at += 1
        size = {0x20: 4, 0x28: 2, 0x30: 1}.get(code)
        if size is not None and k == 0xFFFFF000 + 48:
            value = int(vlan)
        elif size is not None and k + size > len(frame):
            return 0
        elif size is not None:
            value = int.from_bytes(frame[k : k + size], "big")
        elif code == 0x06:
            return int(k)
        else:
            holds = value == k if code == 0x15 else value >= k
            at += then if holds else otherwise
    raise AssertionError("the filter does not end")


def is_read(frame: bytes, *, vlan: bool) -> bool:
    """Whether an audit reads a frame: the rule, as it is written in the filter's docstring."""
    kind, ndp = frame[12:14], frame[20] == 58 and 133 <= frame[54] <= 137
    own = frame[:6] in (MAC, b"\xff" * 6)
    return not vlan and (kind == b"\x08\x06" or (kind == b"\x08\0" and own) or (kind == b"\x86\xdd" and (own or ndp)))


@given(
    to=st.sampled_from([MAC, b"\xff" * 6, b"\x33\x33\0\0\0\1", MAC[:5] + b"\2"]) | st.binary(min_size=6, max_size=6),
    kind=st.sampled_from([b"\x08\x00", b"\x86\xdd", b"\x08\x06", b"\x81\x00", b"\x88\xcc"]),
    header=st.sampled_from([58, 17, 6]),
    first=st.integers(0, 255),
    vlan=st.booleans(),
)
def test_the_filter_takes_what_an_audit_reads_and_its_opposite_counts_the_rest(
    to: bytes,
    kind: bytes,
    header: int,
    first: int,
    vlan: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    frame = to + bytes(6) + kind + bytes(6) + bytes([header]) + bytes(33) + bytes([first]) + bytes(9)
    taken, counted = (bool(run_filter(program(MAC, wanted=one), frame, vlan=vlan)) for one in (True, False))
    assert taken == is_read(frame, vlan=vlan)
    assert counted == (not taken)


def test_the_kernel_accepts_the_filter() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        attach(opened, MAC, wanted=True)


@pytest.mark.parametrize(
    ("sent", "arrived", "dropped", "seconds", "flooded"),
    [
        (10, 10, 0, 0.1, False),
        (1000, 2000, 0, 0.1, False),
        (0, 1000, 0, 0.0, False),
        (0, 1000 + 6000, 0, 6.0, False),
        (0, 1200, 0, 0.1, True),
        (10, 10, 1, 0.1, True),
        (0, 100_000, 0, 60.0, True),
    ],
)
def test_a_flood_is_frames_that_were_lost_or_far_more_than_the_audit_asked_for(
    sent: int,
    arrived: int,
    dropped: int,
    seconds: float,
    flooded: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    before = PortTraffic(5.0, 100, 200, 3)
    assert bool(PortTraffic(5.0 + seconds, 100 + sent, 200 + arrived, 3 + dropped).flood(before)) == flooded


def test_an_audit_without_other_traffic_has_no_doubt_and_its_verdict() -> None:
    looks = examiner_of(Behaviour())
    one = Requirement(4787, "REQ-0", "MUST", "no flow passes", ("udp",), lambda _: (False, "dropped"), NO_FLOWS)
    assert [found.verdict for found in examine(looks, [one])] == ["fails"]
    assert list(other_traffic_doubt(looks)) == []


def test_a_flooded_audit_decides_nothing_and_says_so() -> None:
    """The gateway dropped the frame, or the flood did: nobody can tell."""
    looks, lost = examiner_of(Behaviour()), itertools.count()
    looks.network.ports.missed = lambda: Missed(0, next(lost))  # type: ignore[method-assign]
    one = Requirement(4787, "REQ-0", "MUST", "no flow passes", ("udp",), lambda _: (False, "dropped"), NO_FLOWS)
    (found,) = examine(looks, [one])
    assert found.verdict == "not seen"
    assert "flooded" in found.measured
    assert not forwards(looks, "udp")
    (doubt,) = other_traffic_doubt(looks)
    assert (doubt.word, doubt.grade) == ("other traffic", "answer")


def test_what_was_looked_for_in_a_flood_is_looked_for_again_later() -> None:
    looks, floods = examiner_of(Behaviour()), itertools.chain([Missed()], itertools.repeat(Missed(0, 1)))
    looks.network.ports.missed = lambda: next(floods)  # type: ignore[method-assign]
    looked: list[int] = []

    def look(_examiner: object) -> int:
        looked.append(1)
        return len(looked)

    with pytest.raises(FloodError):
        looks.once(look)
    assert looks.once(look) == 2
    assert looks.once(look) == 2


#: What the RFCs require of most frames, and what a NAT with wrong checksums met.
EVERY_DAY = ("RFC4787-REQ-1", "RFC4787-REQ-9", "RFC4787-REQ-12b", "RFC5382-REQ-2", "RFC5508-REQ-1", "RFC5508-REQ-4")
#: Place of the segment's checksum, by protocol.
_PLACES = {1: 2, 6: 16, 17: 6}


def header(_packet: Packet, octets: bytes) -> bytes:
    """Return the packet with a wrong header checksum."""
    return _inverted(octets, 10)


def segment(packet: Packet, octets: bytes) -> bytes:
    """Return the packet with a wrong checksum of its segment."""
    return octets if packet.offset else _inverted(octets, len(octets) - len(packet.payload) + _PLACES[packet.protocol])


def _inverted(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes(one ^ 0xFF for one in octets[place : place + 2]) + octets[place + 2 :]


def verdicts(behaviour: Behaviour, *keys: str) -> list[AuditedRequirement]:
    wanted = [one for one in requirements() if one.key in keys]
    return list(examine(examiner_of(behaviour), wanted))


@pytest.mark.parametrize("damages", [header, segment])
def test_a_nat_whose_checksums_are_wrong_meets_nothing_and_its_frames_are_counted(
    damages: Callable[[Packet, bytes], bytes],
) -> None:
    found = verdicts(Behaviour(damages=damages), *EVERY_DAY)
    assert {one.verdict for one in found} <= {"fails", "not seen"}
    assert all("came with a wrong checksum" in one.measured for one in found), [one.measured for one in found]


def test_wrong_checksums_of_errors_alone_are_errors_that_were_dropped() -> None:
    def errors(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.protocol == 1 else octets

    (one,) = verdicts(Behaviour(damages=errors), "RFC4787-REQ-12b")
    assert one.verdict == "fails"
    assert "port unreachable was dropped" in one.measured
    assert "frames came with a wrong checksum" in one.measured


def test_a_checksum_that_the_kernel_left_to_a_card_is_no_fault_of_the_gateway() -> None:
    behaviour = Behaviour(damages=segment, leaves_checksums=True)
    assert [one.verdict for one in verdicts(behaviour, "RFC4787-REQ-1", "RFC5382-REQ-2")] == ["meets", "meets"]


def test_a_datagram_in_fragments_is_looked_at_when_it_is_whole() -> None:
    def fragments(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.is_fragment else octets

    (one,) = verdicts(Behaviour(damages=fragments), "RFC4787-REQ-14")
    assert one.verdict == "fails"
    assert "in order: a datagram was dropped" in one.measured
    assert "frames came with a wrong checksum" in one.measured


def test_an_error_that_is_let_through_with_its_wrong_checksum_was_not_dropped() -> None:
    def errors(packet: Packet, octets: bytes) -> bytes:
        # The first error shows that errors pass; the NAT makes a right checksum for it.
        return segment(packet, octets) if packet.protocol == 1 and next(number) else octets

    number = iter((0, *(1,) * 100))
    (one,) = verdicts(Behaviour(damages=errors, error_checksum_verified=False), "RFC5508-REQ-3")
    assert one.verdict != "meets", one.measured


def test_a_segment_that_leaves_untranslated_is_a_leak_whatever_its_checksum() -> None:
    def untranslated(packet: Packet, octets: bytes) -> bytes:
        return segment(packet, octets) if packet.source == INSIDE + 1 and packet.protocol == 6 else octets

    leaks = {one.key for one in requirements() if one.rfc == 1918}
    found = verdicts(Behaviour(invalid_leaks=True, damages=untranslated), *leaks)
    assert {one.verdict for one in found} == {"fails"}


def test_the_kernel_says_of_a_frame_that_its_checksum_is_left_to_a_card() -> None:
    def told(status: int) -> list[tuple[int, int, bytes]]:
        return [(263, 8, struct.pack("=IIIHHHH", status, 60, 60, 0, 14, 0, 0))]

    assert is_partial(told(1 | 8))
    assert not is_partial(told(1 | 128))
    assert not is_partial([])


GATEWAY_MAC = bytes.fromhex("026e67000002")


@pytest.mark.parametrize(("family", "count"), [(6, 2), (4, 0)])
def test_each_ipv6_host_solicits_the_gateway_once_even_if_its_address_is_known(family: int, count: int) -> None:
    """VPP's NAT64 drops advertisements to its link-local address, so its answers reached no inside host."""
    ports = SilentPorts()
    first = ip_address("2001:2::1" if family == 6 else "10.0.0.1")
    hosts = (first + 1, first + 2)
    outside = AuditSide((ip_address("198.19.0.2"),), ip_address("198.19.0.1"), GATEWAY_MAC)
    network = Network(ports, {"initiator": AuditSide(hosts, first, GATEWAY_MAC), "responder": outside})
    network.resolve()
    assert [side for side, _ in ports.sent] == ["initiator"] * count
    for host, (_, octets) in zip(hosts, ports.sent, strict=False):
        assert octets[:6] == bytes.fromhex("3333ff000001"), "the group of solicited nodes, RFC 4291 section 2.7.1"
        assert octets[22:38] == host.packed
        # Solicitation, and the host's link-layer address, from which the gateway learns (RFC 4861 section 4.3).
        assert (octets[54], octets[62:78]) == (135, first.packed)
        assert octets[78:] == b"\x01\x01" + ports.mac("initiator")
    assert network.frames == []
