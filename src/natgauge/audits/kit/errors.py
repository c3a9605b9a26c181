# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of an audit: made for a flow on either side of the gateway, and read where they arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Endpoint, Flow, destination_of, plain_segment, source_of
from natgauge.audits.kit.packets import (
    ACK,
    ErrorMessage,
    Packet,
    Segment,
    TcpSegment,
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
        packet: the packet that has the error.
        message: the error.
    """

    kind: ErrorKind
    packet: Packet
    message: ErrorMessage

    @property
    def numbers_kept(self) -> bool:
        """Whether type and code are those that were sent, or their translation."""
        return (self.message.kind, self.message.code) == _NUMBERS[self.kind][self.packet.source.version]

    @property
    def source(self) -> Endpoint | None:
        """Source of the quoted packet."""
        return None if self.message.packet is None else source_of(self.message.packet)

    @property
    def destination(self) -> Endpoint | None:
        """Destination of the quoted packet."""
        return None if self.message.packet is None else destination_of(self.message.packet)


def error_about(packet: Packet, sender: Address, kind: ErrorKind) -> Packet:
    """Return an ICMP error that quotes a packet, to the packet's source."""
    number, code = _NUMBERS[kind][packet.source.version]
    rest = MTU_IN_ERRORS if kind == "too big" else 0
    return make_packet(sender, packet.source, ErrorMessage(number, code, rest, packet.octets()))


def quoting(packet: Packet, sources: Collection[Endpoint]) -> ErrorMessage | None:
    """Return the ICMP error of a packet, if it quotes a packet of one of these sources; None = it does not."""
    message = read_segment(packet)
    if not isinstance(message, ErrorMessage) or message.packet is None:
        return None
    return message if source_of(message.packet) in sources else None


def packet_up(flow: Flow, *, outside: bool) -> Packet:
    """Return a packet of the flow from the inside, as the outside or as the inside sees it."""
    source, destination = (flow.mapped, flow.remote.own) if outside else (flow.inside, flow.remote.written)
    return make_packet(source.address, destination.address, _segment(flow, source, destination, up=True))


def packet_down(flow: Flow) -> Packet:
    """Return a packet of the flow from the outside, as the inside sees it."""
    source, destination = flow.remote.written, flow.inside
    return make_packet(source.address, destination.address, _segment(flow, source, destination, up=False))


def _segment(flow: Flow, source: Endpoint, destination: Endpoint, *, up: bool) -> Segment:
    if flow.transport != "tcp":
        return plain_segment(flow.transport, source, destination, _DATA, up=up)
    own, other = flow.numbers(up=up)
    return TcpSegment(source.port, destination.port, ACK, own.seen, other.written)


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
    source = flow.inside.address
    packet = error_about(packet_down(flow), source, kind)
    return _error(examiner, packet, kind, up=True, sentence=f"{source} sends an ICMP error: {kind}, {flow}")


def _error(examiner: Examiner, packet: Packet, kind: ErrorKind, *, up: bool, sentence: str) -> ErrorSeen | None:
    arrival = examiner.delivered(
        lambda _tag: examiner.network.send("initiator" if up else "responder", packet, sentence),
        "responder" if up else "initiator",
        lambda seen, _tag: isinstance(read_segment(seen), ErrorMessage),
        "the gateway delivers the error",
    )
    message = None if arrival is None else read_segment(arrival.packet)
    if arrival is None or not isinstance(message, ErrorMessage):
        return None
    return ErrorSeen(kind, arrival.packet, message)
