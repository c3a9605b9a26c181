# SPDX-License-Identifier: Apache-2.0
"""Flows of an audit: their endpoints, and the packets that open a flow, go over it, and try to enter it."""

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
    Endpoint,
    ErrorMessage,
    Packet,
    Query,
    TcpSegment,
    UdpSegment,
    make_packet,
)
from natgauge.words import Transport

TRANSPORTS: Final[tuple[Transport, ...]] = ("udp", "tcp", "icmp")
_FLAGS: Final = {SYN: "SYN", FIN: "FIN", RST: "RST", ACK: "ACK"}


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
        written: the outside host's endpoint as the inside writes it; another one behind a NAT64 prefix.
    """

    transport: Transport
    inside: Endpoint
    remote: Endpoint
    written: Endpoint
    mapped: Endpoint
    since: int = 0
    up: SequenceNumber = field(default_factory=SequenceNumber)
    down: SequenceNumber = field(default_factory=SequenceNumber)

    def numbers(self, *, up: bool) -> tuple[SequenceNumber, SequenceNumber]:
        """Return the numbers of the sender of this direction and of the receiver."""
        return (self.up, self.down) if up else (self.down, self.up)

    def ends(self, *, up: bool) -> tuple[Endpoint, Endpoint]:
        """Return source and destination as the sender of this direction writes them."""
        return (self.inside, self.written) if up else (self.remote, self.mapped)

    def packet(self, data: bytes, *, up: bool) -> Packet:
        """Return a packet with data over the open flow; of TCP, the numbers advance by its data."""
        if self.transport != "tcp":
            return lone_packet(self.transport, *self.ends(up=up), data, up=up)
        packet = self.tcp(PSH | ACK, up=up, data=data)
        self.numbers(up=up)[0].advance(len(data))
        return packet

    def tcp(self, flags: int, *, up: bool, back: int = 0, data: bytes = b"") -> Packet:
        """Return the next TCP segment; with `back`, its sequence number is one that was used already."""
        own, other = self.numbers(up=up)
        acknowledged = other.seen if flags & ACK else 0
        return make_packet(*self.ends(up=up), TcpSegment(flags, own.written - back, acknowledged, data))

    def datagram(self, data: bytes, *, up: bool, dont_fragment: bool = False) -> Packet:
        """Return a UDP datagram, with an identification from 1024 on that changes from call to call."""
        number = 1024 + secrets.randbelow(65536 - 1024)
        packet = make_packet(*self.ends(up=up), UdpSegment(data))
        return replace(packet, dont_fragment=dont_fragment, identification=number)


def lone_packet(
    transport: Transport, source: Endpoint, destination: Endpoint, data: bytes, *, up: bool = True
) -> Packet:
    """Return a packet that needs none before it: a UDP datagram, a SYN, an echo request (up) or reply (down).

    A SYN has the last four octets of the data as its sequence number.
    """
    segments: dict[Transport, Query] = {
        "udp": UdpSegment(data),
        "tcp": TcpSegment(SYN, int.from_bytes(data[-4:], "big")),
        "icmp": EchoMessage(is_request=up, data=data),
    }
    return make_packet(source, destination, segments[transport])


def after_syn(packet: Packet) -> int:
    """Return the sequence number behind a SYN."""
    segment = packet.segment
    return segment.sequence + 1 if isinstance(segment, TcpSegment) else 0


def is_same(packet: Packet, sent: Packet) -> bool:
    """Whether a packet begins with the data of another one, or of TCP without data, has its sequence number."""
    seen, own = packet.segment, sent.segment
    if isinstance(own, TcpSegment) and not own.data:
        return isinstance(seen, TcpSegment) and not seen.data and seen.sequence == own.sequence
    return isinstance(seen, Query) and isinstance(own, Query) and seen.data[: len(own.data)] == own.data


def is_tcp(packet: Packet, target: Endpoint, flags: int) -> bool:
    """Whether a packet is a TCP segment to this endpoint that has just these flags, whether or not it has PSH."""
    segment = packet.segment
    same = isinstance(segment, TcpSegment) and segment.flags & sum(_FLAGS) == flags & sum(_FLAGS)
    return same and packet.receiver == target


def described(packet: Packet, *, is_quoted: bool = False) -> str:
    """Return a packet in words, as a part of a sentence; `is_quoted` = another one quotes it.

    What a quoted packet quotes is left out: a device can nest quotations as deeply as a frame is long.
    """
    segment = packet.segment
    where = f"from {packet.sender or packet.source} to {packet.receiver or packet.destination}"
    if packet.is_fragment:
        return f"octets {packet.offset} to {packet.offset + len(packet.payload) - 1} of a packet {where}"
    if isinstance(segment, ErrorMessage):
        quotes = None if is_quoted else segment.packet
        quoted = "" if quotes is None else f", which quotes {described(quotes, is_quoted=True)}"
        return f"an ICMP error with type {segment.kind} and code {segment.code} {where}{quoted}"
    if isinstance(segment, EchoMessage):
        return f"an echo {'request' if segment.is_request else 'reply'} {where}"
    if isinstance(segment, TcpSegment):
        flags = " and ".join(name for flag, name in _FLAGS.items() if segment.flags & flag)
        return f"TCP {flags}{' with data' * bool(segment.data)} {where}"
    return f"UDP of {len(packet.payload)} octets {where}"
