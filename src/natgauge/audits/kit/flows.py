# SPDX-License-Identifier: Apache-2.0
"""Flows of an audit: endpoints, and the segments that open a flow, go over it, and try to enter it from outside."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.audits.kit.packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    EchoMessage,
    ErrorMessage,
    Packet,
    Segment,
    TcpSegment,
    UdpSegment,
    make_packet,
    read_segment,
)
from natgauge.words import Address, Transport

TRANSPORTS: Final[tuple[Transport, ...]] = ("udp", "tcp", "icmp")
_FLAGS: Final = {SYN: "SYN", FIN: "FIN", RST: "RST", ACK: "ACK"}


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address with a port; of ICMP, the port is the identifier of the query."""

    address: Address
    port: int

    def __str__(self) -> str:
        """Return the endpoint as people write it."""
        return f"[{self.address}]:{self.port}" if self.address.version == 6 else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """An endpoint on the outside.

    Attributes:
        own: as the outside writes it.
        written: as the inside writes it; another one behind a NAT64 prefix.
    """

    own: Endpoint
    written: Endpoint

    def __str__(self) -> str:
        """Return the endpoint as the outside writes it."""
        return str(self.own)


@dataclass(slots=True)
class SequenceNumber:
    """Next TCP sequence number of one end of a flow, as it writes the number, and as the other end sees it.

    A gateway may change sequence numbers.
    """

    written: int = 0
    seen: int = 0

    def advance(self, octets: int) -> None:
        """Add octets; SYN and FIN count as one."""
        self.written += octets
        self.seen += octets


@dataclass(slots=True)
class Flow:
    """A flow through the gateway.

    Attributes:
        transport: its transport.
        inside: the inside endpoint.
        remote: the outside host's endpoint.
        mapped: the inside endpoint as the outside sees it.
        since: number of arrivals before the flow was opened.
        up: next sequence number of the inside (TCP).
        down: next sequence number of the outside (TCP).
    """

    transport: Transport
    inside: Endpoint
    remote: RemoteEndpoint
    mapped: Endpoint
    since: int = 0
    up: SequenceNumber = field(default_factory=SequenceNumber)
    down: SequenceNumber = field(default_factory=SequenceNumber)

    def numbers(self, *, up: bool) -> tuple[SequenceNumber, SequenceNumber]:
        """Return the numbers of the sender of this direction and of the receiver."""
        return (self.up, self.down) if up else (self.down, self.up)

    def ends(self, *, up: bool) -> tuple[Endpoint, Endpoint]:
        """Return source and destination as the sender of this direction writes them."""
        return (self.inside, self.remote.written) if up else (self.remote.own, self.mapped)


def simple_segment(transport: Transport, source: Endpoint, destination: Endpoint, tag: bytes, *, up: bool) -> Segment:
    """Return a segment that needs none before it: a UDP datagram, a SYN, an echo request (up) or reply (down)."""
    if transport == "udp":
        return UdpSegment(source.port, destination.port, tag)
    if transport == "tcp":
        return TcpSegment(source.port, destination.port, SYN, int.from_bytes(tag[-4:], "big"))
    return EchoMessage(is_request=up, identifier=source.port if up else destination.port, sequence=1, data=tag)


def along(flow: Flow, tag: bytes, *, up: bool) -> Segment:
    """Return a segment that goes over an open flow; of TCP, the numbers advance by its data."""
    if flow.transport != "tcp":
        return simple_segment(flow.transport, *flow.ends(up=up), tag, up=up)
    segment = numbered(flow, PSH | ACK, up=up, data=tag)
    flow.numbers(up=up)[0].advance(len(tag))
    return segment


def numbered(flow: Flow, flags: int, *, up: bool, back: int = 0, data: bytes = b"") -> TcpSegment:
    """Return the next TCP segment of a flow; with `back`, its sequence number is one that was used already."""
    (source, destination), (own, other) = flow.ends(up=up), flow.numbers(up=up)
    acknowledged = other.seen if flags & ACK else 0
    return TcpSegment(source.port, destination.port, flags, own.written - back, acknowledged, data)


def number_after_syn(packet: Packet) -> int:
    """Return the sequence number behind a SYN."""
    segment = read_segment(packet)
    return segment.sequence + 1 if isinstance(segment, TcpSegment) else 0


def datagram(flow: Flow, data: bytes, *, up: bool, dont_fragment: bool = False) -> Packet:
    """Return a UDP datagram over a flow, with an identification from 1024 on that changes from call to call."""
    source, destination = flow.ends(up=up)
    packet = make_packet(source.address, destination.address, UdpSegment(source.port, destination.port, data))
    number = 1024 + secrets.randbelow(65536 - 1024)
    return replace(packet, dont_fragment=dont_fragment, identification=number)


def source_of(packet: Packet) -> Endpoint | None:
    """Return the source endpoint of a packet; None where it has none."""
    ports = _ports(packet)
    return None if ports is None else Endpoint(packet.source, ports[0])


def destination_of(packet: Packet) -> Endpoint | None:
    """Return the destination endpoint of a packet; None where it has none."""
    ports = _ports(packet)
    return None if ports is None else Endpoint(packet.destination, ports[1])


def _ports(packet: Packet) -> tuple[int, int] | None:
    segment = read_segment(packet)
    if isinstance(segment, UdpSegment | TcpSegment):
        return segment.source_port, segment.destination_port
    return (segment.identifier, segment.identifier) if isinstance(segment, EchoMessage) else None


def carries(packet: Packet, tag: bytes) -> bool:
    """Whether a packet is the one with this tag; a TCP segment without data has it in its sequence number."""
    segment = read_segment(packet)
    if isinstance(segment, TcpSegment) and not segment.data:
        return segment.sequence == int.from_bytes(tag[-4:], "big")
    return isinstance(segment, UdpSegment | TcpSegment | EchoMessage) and segment.data[: len(tag)] == tag


def is_tcp(packet: Packet, target: Endpoint, flags: int) -> bool:
    """Whether a packet is a TCP segment to this endpoint that has just these flags, beside PSH."""
    segment = read_segment(packet)
    same = isinstance(segment, TcpSegment) and segment.flags & sum(_FLAGS) == flags & sum(_FLAGS)
    return same and destination_of(packet) == target


def described(packet: Packet) -> str:
    """Return a packet in words, as a part of a sentence."""
    segment = read_segment(packet)
    where = f"from {source_of(packet) or packet.source} to {destination_of(packet) or packet.destination}"
    if packet.is_fragment:
        return f"octets {packet.offset} to {packet.offset + len(packet.payload) - 1} of a packet {where}"
    if isinstance(segment, ErrorMessage):
        quoted = "" if segment.packet is None else f", which quotes {described(segment.packet)}"
        return f"an ICMP error with type {segment.kind} and code {segment.code} {where}{quoted}"
    if isinstance(segment, EchoMessage):
        return f"an echo {'request' if segment.is_request else 'reply'} {where}"
    if isinstance(segment, TcpSegment):
        flags = " and ".join(name for flag, name in _FLAGS.items() if segment.flags & flag)
        return f"TCP {flags}{' with data' * bool(segment.data)} {where}"
    return f"UDP of {len(packet.payload)} octets {where}"
