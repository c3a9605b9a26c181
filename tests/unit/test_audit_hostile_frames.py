# SPDX-License-Identifier: Apache-2.0
"""No frame of a device ends an audit, whatever is in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulated_nat import Behaviour, examiner_of

from natgauge.audits.kit.capture import pcapng
from natgauge.audits.kit.errors import quoting
from natgauge.audits.kit.flows import described, is_same, is_tcp
from natgauge.audits.kit.network import _MOST_KEPT, _MOST_OCTETS, AuditSide, Missed, Network
from natgauge.audits.kit.observations import NotSeenError
from natgauge.audits.kit.packets import (
    ACK,
    SYN,
    EchoMessage,
    Endpoint,
    ErrorMessage,
    Packet,
    TcpSegment,
    UdpSegment,
    is_right,
    make_error,
    make_packet,
    read_packet,
)
from natgauge.words import Side

MAC = b"\x02\0\0\0\0\x01"
#: Random frames of each family.
FRAMES = 50_000


class QuietPorts:
    """Ports at which nothing arrives by itself."""

    def now(self) -> float:
        return 0.0

    def mac(self, side: Side) -> bytes:
        assert side in ("initiator", "responder")
        return MAC

    def send(self, side: Side, octets: bytes) -> None: ...

    def receive(self, until: float) -> None: ...

    def missed(self) -> Missed:
        return Missed()


def network(version: int = 4) -> Network:
    inside = ("10.0.0.2", "10.0.0.1") if version == 4 else ("2001:2::2", "2001:2::1")
    host, gateway = map(ip_address, inside)
    outside = AuditSide((ip_address("198.19.0.2"),), ip_address("198.19.0.1"))
    return Network(QuietPorts(), {"initiator": AuditSide((host,), gateway), "responder": outside})


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
