# SPDX-License-Identifier: Apache-2.0
"""Flows of an audit: endpoints, and the segments that open a flow, go over it, and try to enter it from outside."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
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
class Flow:
    """A flow through the gateway.

    Attributes:
        transport: its transport.
        inside: the inside endpoint.
        remote: the outside host's endpoint.
        mapped: the inside endpoint as the outside sees it.
        up_next: next sequence number of the inside, as the inside writes it (TCP).
        up_seen: the same number as the outside sees it; a gateway may change sequence numbers.
        down_next: next sequence number of the outside, as the outside writes it.
        down_seen: the same number as the inside sees it.
    """

    transport: Transport
    inside: Endpoint
    remote: RemoteEndpoint
    mapped: Endpoint
    up_next: int = 0
    up_seen: int = 0
    down_next: int = 0
    down_seen: int = 0

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
    source, destination = flow.ends(up=up)
    if flow.transport == "udp":
        return UdpSegment(source.port, destination.port, tag)
    if flow.transport == "icmp":
        port = flow.inside.port if up else flow.mapped.port
        return EchoMessage(is_request=up, identifier=port, sequence=2, data=tag)
    segment = numbered(flow, PSH | ACK, up=up, data=tag)
    if up:
        flow.up_next += len(tag)
        flow.up_seen += len(tag)
    else:
        flow.down_next += len(tag)
        flow.down_seen += len(tag)
    return segment


def numbered(flow: Flow, flags: int, *, up: bool, back: int = 0, data: bytes = b"") -> TcpSegment:
    """Return the next TCP segment of a flow; with `back`, its sequence number is one that was used already."""
    source, destination = flow.ends(up=up)
    sequence, acknowledgement = (flow.up_next, flow.down_seen) if up else (flow.down_next, flow.up_seen)
    return TcpSegment(source.port, destination.port, flags, sequence - back, acknowledgement, data)


def datagram(flow: Flow, data: bytes, *, up: bool, dont_fragment: bool = False) -> Packet:
    """Return a UDP datagram over a flow, with an identification from 1024 on that changes from call to call."""
    source, destination = flow.ends(up=up)
    packet = make_packet(source.address, destination.address, UdpSegment(source.port, destination.port, data))
    number = 1024 + secrets.randbelow(65536 - 1024)
    return replace(packet, dont_fragment=dont_fragment, identification=number)


def source_of(packet: Packet) -> Endpoint | None:
    """Return the source endpoint of a packet; None where it has none."""
    segment = read_segment(packet)
    if isinstance(segment, UdpSegment | TcpSegment):
        return Endpoint(packet.source, segment.source_port)
    return Endpoint(packet.source, segment.identifier) if isinstance(segment, EchoMessage) else None


def destination_of(packet: Packet) -> Endpoint | None:
    """Return the destination endpoint of a packet; None where it has none."""
    segment = read_segment(packet)
    if isinstance(segment, UdpSegment | TcpSegment):
        return Endpoint(packet.destination, segment.destination_port)
    return Endpoint(packet.destination, segment.identifier) if isinstance(segment, EchoMessage) else None


def carries(packet: Packet, transport: Transport, tag: bytes) -> bool:
    """Whether a packet is the one with this tag; a TCP segment without data has it in its sequence number."""
    if packet.protocol not in _PROTOCOLS[transport]:
        return False
    segment = read_segment(packet)
    if isinstance(segment, TcpSegment):
        return segment.data == tag or (not segment.data and segment.sequence == int.from_bytes(tag[-4:], "big"))
    return isinstance(segment, UdpSegment | EchoMessage) and segment.data[: len(tag)] == tag
