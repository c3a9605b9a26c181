# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of an audit: made for a flow on either side of the gateway, and read where they arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Endpoint, Flow, destination_of, source_of
from natgauge.audits.kit.packets import (
    ACK,
    EchoMessage,
    ErrorMessage,
    Packet,
    Segment,
    TcpSegment,
    UdpSegment,
    make_packet,
    read_segment,
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
#: Type and code of an error for a packet that is too big, by IP version.
TOO_BIG: Final = _NUMBERS["too big"]
MTU_IN_ERRORS: Final = 1400
_DATA: Final = b"natgauge audit"


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """An ICMP error that arrived.

    Attributes:
        kind: its kind as it was sent.
        numbers_kept: whether type and code are those that were sent, or their translation.
        source: source of the quoted packet.
        destination: destination of the quoted packet.
        outer_source: source of the error itself.
        outer_destination: destination of the error itself.
        rest: 32 bits behind the checksum, such as the MTU.
    """

    kind: ErrorKind
    numbers_kept: bool
    source: Endpoint | None
    destination: Endpoint | None
    outer_source: Address
    outer_destination: Address
    rest: int


def error_about(packet: Packet, sender: Address, kind: ErrorKind) -> Packet:
    """Return an ICMP error that quotes a packet, to the packet's source."""
    number, code = _NUMBERS[kind][packet.source.version]
    rest = MTU_IN_ERRORS if kind == "too big" else 0
    return make_packet(sender, packet.source, ErrorMessage(number, code, rest, packet.octets()))


def quoting(packet: Packet, sources: Collection[Endpoint]) -> ErrorMessage | None:
    """Return the ICMP error of a packet, if it quotes a packet of one of these sources; None = it does not."""
    message = read_segment(packet)
    inner = message.packet if isinstance(message, ErrorMessage) else None
    is_quoted = inner is not None and source_of(inner) in sources
    return message if isinstance(message, ErrorMessage) and is_quoted else None


def packet_up(flow: Flow, *, outside: bool) -> Packet:
    """Return a packet of the flow from the inside, as the outside or as the inside sees it."""
    source, destination = (flow.mapped, flow.remote.own) if outside else (flow.inside, flow.remote.written)
    return make_packet(source.address, destination.address, _segment(flow, source, destination, up=True))


def packet_down(flow: Flow) -> Packet:
    """Return a packet of the flow from the outside, as the inside sees it."""
    source, destination = flow.remote.written, flow.inside
    return make_packet(source.address, destination.address, _segment(flow, source, destination, up=False))


def _segment(flow: Flow, source: Endpoint, destination: Endpoint, *, up: bool) -> Segment:
    if flow.transport == "udp":
        return UdpSegment(source.port, destination.port, _DATA)
    if flow.transport == "icmp":
        return EchoMessage(is_request=up, identifier=source.port if up else destination.port, sequence=2, data=_DATA)
    sequence, acknowledgement = (flow.up_seen, flow.down_next) if up else (flow.down_seen, flow.up_next)
    return TcpSegment(source.port, destination.port, ACK, sequence, acknowledgement)


def error_down(  # noqa: PLR0913 - each change of the error by its name
    examiner: Examiner,
    flow: Flow,
    kind: ErrorKind,
    *,
    sender: Address | None = None,
    quoted: Callable[[Packet], Packet] = lambda packet: packet,
    sent: Callable[[Packet], Packet] = lambda packet: packet,
    words: str = "",
) -> ErrorSeen | None:
    """Send an ICMP error for a flow from the outside, and return it as it arrives inside; None = it was dropped.

    Args:
        examiner: examines the gateway.
        flow: flow whose packet the error quotes.
        kind: kind of the error.
        sender: outside host that sends it; None = the flow's own.
        quoted: changes the packet that is quoted.
        sent: changes the packet of the error itself.
        words: what is special about the error.

    Raises:
        NotSeenError: control frames did not arrive.
    """
    source = flow.remote.own.address if sender is None else sender
    packet = sent(error_about(quoted(packet_up(flow, outside=True)), source, kind))
    return _error(examiner, packet, kind, up=False, sentence=f"{source} sends an ICMP error{words}: {kind}, {flow}")


def error_up(examiner: Examiner, flow: Flow, kind: ErrorKind) -> ErrorSeen | None:
    """Send an ICMP error for a flow from the inside host, and return it as it arrives outside; None = it was dropped.

    Raises:
        NotSeenError: control frames did not arrive.
    """
    packet = error_about(packet_down(flow), flow.inside.address, kind)
    return _error(
        examiner, packet, kind, up=True, sentence=f"{flow.inside.address} sends an ICMP error: {kind}, {flow}"
    )


def _error(examiner: Examiner, packet: Packet, kind: ErrorKind, *, up: bool, sentence: str) -> ErrorSeen | None:
    arrival = examiner.delivered(
        lambda _tag: examiner.network.send("initiator" if up else "responder", packet, sentence),
        "responder" if up else "initiator",
        lambda seen, _tag: isinstance(read_segment(seen), ErrorMessage),
        "the gateway delivers the error",
    )
    if arrival is None:
        return None
    message = read_segment(arrival.packet)
    inner = message.packet if isinstance(message, ErrorMessage) else None
    expected = _NUMBERS[kind][arrival.packet.source.version]
    return ErrorSeen(
        kind,
        isinstance(message, ErrorMessage) and (message.kind, message.code) == expected,
        None if inner is None else source_of(inner),
        None if inner is None else destination_of(inner),
        arrival.packet.source,
        arrival.packet.destination,
        message.rest if isinstance(message, ErrorMessage) else 0,
    )


def broken_checksum(packet: Packet) -> Packet:
    """Return an ICMP packet with a wrong checksum."""
    return replace(packet, payload=_broken(packet.payload, 2))


def broken_segment_checksum(packet: Packet) -> Packet:
    """Return a UDP packet with a wrong checksum."""
    return replace(packet, payload=_broken(packet.payload, 6))


def broken_quoted_header(packet: Packet) -> Packet:
    """Return an ICMP error whose quoted IPv4 header has a wrong checksum; the error's own checksum is right."""
    message = read_segment(packet)
    if not isinstance(message, ErrorMessage):
        return packet
    return make_packet(packet.source, packet.destination, replace(message, quoted=_broken(message.quoted, 10)))


def _broken(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 0xFF,)) + octets[place + 1 :]
