# SPDX-License-Identifier: Apache-2.0
"""Flows of an audit: endpoints, and the segments that open a flow, go over it, and try to enter it from outside."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from natgauge.audits.kit.packets import (
    ACK,
    ICMP,
    ICMPV6,
    PSH,
    SYN,
    TCP,
    UDP,
    EchoMessage,
    Packet,
    Segment,
    TcpSegment,
    UdpSegment,
    make_packet,
    read_segment,
)
from natgauge.words import Address

Transport = Literal["udp", "tcp", "icmp"]
TRANSPORTS: Final[tuple[Transport, ...]] = ("udp", "tcp", "icmp")
_PROTOCOLS: Final = {"udp": (UDP,), "tcp": (TCP,), "icmp": (ICMP, ICMPV6)}


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

    def __str__(self) -> str:
        """Return the flow in words."""
        return f"about {self.transport.upper()} from {self.mapped} to {self.remote}"


def opening(transport: Transport, source: Endpoint, destination: Endpoint, tag: bytes) -> Segment:
    """Return the segment that opens a flow from the inside."""
    if transport == "udp":
        return UdpSegment(source.port, destination.port, tag)
    if transport == "tcp":
        return TcpSegment(source.port, destination.port, SYN, int.from_bytes(tag[-4:], "big"))
    return EchoMessage(is_request=True, identifier=source.port, sequence=1, data=tag)


def entering(transport: Transport, source: Endpoint, destination: Endpoint, tag: bytes) -> Segment:
    """Return a segment with which an outside host tries to enter through an endpoint of the gateway."""
    if transport != "icmp":
        return opening(transport, source, destination, tag)
    return EchoMessage(is_request=False, identifier=destination.port, sequence=1, data=tag)


def along(flow: Flow, tag: bytes, *, up: bool) -> Segment:
    """Return a segment that goes over an open flow; of TCP, the numbers advance by its data."""
    if flow.transport != "tcp":
        return plain_segment(flow.transport, *flow.ends(up=up), tag, up=up)
    segment = numbered(flow, PSH | ACK, up=up, data=tag)
    flow.numbers(up=up)[0].advance(len(tag))
    return segment


def plain_segment(transport: Transport, source: Endpoint, destination: Endpoint, data: bytes, *, up: bool) -> Segment:
    """Return a segment of an open UDP or ICMP flow between these endpoints."""
    if transport == "udp":
        return UdpSegment(source.port, destination.port, data)
    return EchoMessage(is_request=up, identifier=source.port if up else destination.port, sequence=2, data=data)


def numbered(flow: Flow, flags: int, *, up: bool, back: int = 0, data: bytes = b"") -> TcpSegment:
    """Return the next TCP segment of a flow; with `back`, its sequence number is one that was used already."""
    (source, destination), (own, other) = flow.ends(up=up), flow.numbers(up=up)
    return TcpSegment(source.port, destination.port, flags, own.written - back, other.seen, data)


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


def carries(packet: Packet, transport: Transport, tag: bytes) -> bool:
    """Whether a packet is the one with this tag; a TCP segment without data has it in its sequence number."""
    if packet.protocol not in _PROTOCOLS[transport]:
        return False
    segment = read_segment(packet)
    if isinstance(segment, TcpSegment):
        return segment.data == tag or (not segment.data and segment.sequence == int.from_bytes(tag[-4:], "big"))
    return isinstance(segment, UdpSegment | EchoMessage) and segment.data[: len(tag)] == tag
