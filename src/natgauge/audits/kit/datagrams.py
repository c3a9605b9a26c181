# SPDX-License-Identifier: Apache-2.0
"""Datagrams of an audit beside its flows: ICMP errors, and large datagrams, whole or in fragments."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from natgauge.audits.kit.examiner import PATIENCE_SECONDS, SETTLE_SECONDS, TRIES, Examiner
from natgauge.audits.kit.network import CapturedFrame, sides
from natgauge.audits.kit.packets import (
    ACK,
    UDP,
    Endpoint,
    ErrorMessage,
    Flow,
    Packet,
    TcpSegment,
    is_right,
    lone_packet,
    make_error,
    make_packet,
)
from natgauge.words import Address

ErrorKind = Literal["port unreachable", "host unreachable", "too big", "time exceeded"]
#: Type and code by IP version; RFC 7915 sections 4.2 and 5.2 translate each into the other.
_NUMBERS: Final[dict[ErrorKind, dict[int, tuple[int, int]]]] = {
    "port unreachable": {4: (3, 3), 6: (1, 4)},
    "host unreachable": {4: (3, 1), 6: (1, 0)},
    "too big": {4: (3, 4), 6: (2, 0)},
    "time exceeded": {4: (11, 0), 6: (3, 0)},
}
ERROR_KINDS: Final[tuple[ErrorKind, ...]] = tuple(_NUMBERS)
MTU_IN_ERRORS: Final = 1400
#: Octets behind the IP header that an ICMP error quotes at least (RFC 792).
QUOTED_OCTETS: Final = 8
_DATA: Final = b"natgauge audit"


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """An ICMP error that arrived."""

    packet: Packet
    message: ErrorMessage
    numbers_kept: bool
    source: Endpoint | None
    destination: Endpoint | None


def _seen(frame: CapturedFrame | None, kind: ErrorKind) -> ErrorSeen | None:
    """Return the ICMP error of a frame, which was sent as one of this kind; None = the frame has none."""
    message = None if frame is None else frame.packet.segment
    if frame is None or not isinstance(message, ErrorMessage):
        return None
    kept = (message.kind, message.code) == _NUMBERS[kind][frame.packet.source.version]
    quoted = message.packet
    ends = (None, None) if quoted is None else (quoted.sender, quoted.receiver)
    return ErrorSeen(frame.packet, message, kept, *ends)


def quoting(packet: Packet, sources: Collection[Endpoint | None]) -> ErrorMessage | None:
    """Return the ICMP error of a packet, if it quotes a packet of one of these sources; None = it does not."""
    message = packet.segment
    if not isinstance(message, ErrorMessage) or message.packet is None:
        return None
    return message if message.packet.sender in sources else None


def error_about(
    packet: Packet, sender: Address, kind: ErrorKind, *, quoted: bytes | None = None, rest: int | None = None
) -> Packet:
    """Return an ICMP error about a packet, to the packet's source.

    It quotes the packet, or other octets; `rest` None = the MTU where the kind has one, otherwise 0.
    """
    number, code = _NUMBERS[kind][packet.source.version]
    if rest is None:
        rest = MTU_IN_ERRORS if kind == "too big" else 0
    return make_error(sender, packet.source, ErrorMessage(number, code, rest, quoted or packet.octets()))


def received(flow: Flow, *, up: bool) -> Packet:
    """Return a packet of the flow as the sender of this direction received it."""
    destination, source = flow.ends(up=up)
    if flow.transport != "tcp":
        return lone_packet(flow.transport, source, destination, _DATA, up=not up)
    other, own = flow.numbers(up=up)
    return make_packet(source, destination, TcpSegment(ACK, own.seen, other.written))


def send_error(
    examiner: Examiner, flow: Flow, kind: ErrorKind, *, up: bool = False, is_short: bool = False
) -> ErrorSeen | None:
    """Send an ICMP error about a packet of a flow, and return it as it arrives; None = it was dropped.

    `up` = the inside host sends it; `is_short` = it quotes as little as it may, not the whole packet.
    """
    about = received(flow, up=up)
    octets = about.octets()
    quoted = octets[: len(octets) - len(about.payload) + QUOTED_OCTETS] if is_short else None
    return pass_error(examiner, error_about(about, flow.ends(up=up)[0].address, kind, quoted=quoted), kind, up=up)


def pass_error(
    examiner: Examiner, packet: Packet, kind: ErrorKind, *, up: bool = False, note: str = ""
) -> ErrorSeen | None:
    """Send a packet with an ICMP error of this kind, and return the error as it arrives; None = it was dropped."""
    frame = examiner.deliver(packet, up=up, wanted=lambda seen: isinstance(seen.segment, ErrorMessage), note=note)
    return _seen(frame, kind)


def provoked(examiner: Examiner, packet: Packet, kind: ErrorKind, note: str) -> ErrorSeen | None:
    """Send a packet from the inside, and return the gateway's error of this kind about it.

    None = there was none within `PATIENCE_SECONDS`: a gateway makes errors in a slower part than it forwards packets.
    """

    def wanted(seen: Packet) -> bool:
        error = quoting(seen, [packet.sender])
        return error is not None and (error.kind, error.code) == _NUMBERS[kind][seen.source.version]

    frame = examiner.deliver(packet, up=True, to="initiator", wanted=wanted, settle=PATIENCE_SECONDS, note=note)
    return _seen(frame, kind)


_UDP_HEADER_OCTETS: Final = 8


@dataclass(frozen=True, slots=True)
class Carried:
    """How a datagram went through a gateway.

    Attributes:
        packets: packets in which it arrived as it was sent, in their order; empty = it did not.
    """

    packets: tuple[Packet, ...] = ()
    is_changed: bool = False

    def __str__(self) -> str:
        """What happened to it, as the end of a sentence."""
        return "was delivered" if self.packets else "arrived with other data" if self.is_changed else "was dropped"


def carry(  # noqa: PLR0913 - one datagram, each property by its name
    examiner: Examiner, flow: Flow, octets: int, *, up: bool, cut: int = 0, backwards: bool = False, note: str = ""
) -> Carried:
    """Send a UDP datagram over a flow, several times if it does not arrive as it was sent.

    Args:
        octets: octets of its data.
        cut: octets of the fragments in which it is sent; 0 = it is sent whole, and may be fragmented.
    """
    end, is_changed, network = flow.remote if up else flow.inside, False, examiner.network
    for _ in range(TRIES):
        data, since = secrets.token_bytes(octets), examiner.mark
        whole = flow.datagram(data, up=up)
        parts = whole.cut(cut) if cut else (whole,)
        for part in reversed(parts) if backwards else parts:
            examiner.send(part, up=up, note=note)
        examiner.control()
        network.pause(network.now() + SETTLE_SECONDS)
        frames = []
        for frame in network.arrived(since, sides(up=up)[1]):
            # Only the first fragment has the ports. Another flow, such as that of control frames, may have this end.
            is_own = frame.packet.receiver in (end, None) and (not up or frame.packet.sender in (flow.mapped, None))
            if _data(frame.packet) and is_own:
                network.received(frame)
                frames.append(frame)
        packets = sorted((frame.packet for frame in frames), key=lambda packet: packet.offset)
        arrived = b"".join(map(_data, packets))
        if arrived == data and not _whole_is_right(packets):
            for frame in frames:
                network.damage(frame)
        elif arrived == data:
            examiner.fragments_entered |= bool(cut) and not up
            return Carried(tuple(frame.packet for frame in frames))
        is_changed |= arrived != data and len(arrived) == len(data)
    return Carried(is_changed=is_changed)


def _whole_is_right(packets: Sequence[Packet]) -> bool:
    """Whether the checksum is right of a datagram that arrived in these fragments, in order of offset.

    That of a whole one was looked at.
    """
    if not packets[0].is_fragment:
        return True
    payload = b"".join(packet.payload for packet in packets)
    return is_right(replace(packets[0], payload=payload, more_fragments=False))


def _data(packet: Packet) -> bytes:
    """Return the data of a UDP datagram that are in one of its fragments; empty where a packet is none."""
    payload = packet.payload if packet.offset else packet.payload[_UDP_HEADER_OCTETS:]
    return payload if packet.protocol == UDP else b""
