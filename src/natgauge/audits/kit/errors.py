# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of an audit: made for a flow on either side of the gateway, and read where they arrive."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Endpoint, Flow, destination_of, simple_segment, source_of
from natgauge.audits.kit.network import sides
from natgauge.audits.kit.packets import ACK, ErrorMessage, Packet, TcpSegment, make_packet, read_segment
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


def quoting(packet: Packet, sources: Collection[Endpoint | None]) -> ErrorMessage | None:
    """Return the ICMP error of a packet, if it quotes a packet of one of these sources; None = it does not."""
    message = read_segment(packet)
    if not isinstance(message, ErrorMessage) or message.packet is None:
        return None
    return message if source_of(message.packet) in sources else None


def received(flow: Flow, *, up: bool) -> Packet:
    """Return a packet of the flow as the sender of this direction received it."""
    destination, source = flow.ends(up=up)
    segment = simple_segment(flow.transport, source, destination, _DATA, up=not up)
    if flow.transport == "tcp":
        other, own = flow.numbers(up=up)
        segment = TcpSegment(source.port, destination.port, ACK, own.seen, other.written)
    return make_packet(source.address, destination.address, segment)


def send_error(  # noqa: PLR0913 - each change of the error by its name
    examiner: Examiner,
    flow: Flow,
    kind: ErrorKind,
    *,
    up: bool = False,
    sender: Address | None = None,
    quoted: Callable[[Packet], Packet] = lambda packet: packet,
    sent: Callable[[Packet], Packet] = lambda packet: packet,
    note: str = "",
) -> ErrorSeen | None:
    """Send an ICMP error for a flow, and return it as it arrives on the other side; None = it was dropped.

    Args:
        examiner: examines the gateway.
        flow: flow whose packet the error quotes.
        kind: kind of the error.
        up: whether the inside host sends it.
        sender: host that sends it; None = the flow's own.
        quoted: changes the packet that is quoted.
        sent: changes the packet of the error itself.
        note: what is special about the error.

    Raises:
        NotSeenError: control frames did not arrive.
    """
    source = sender or flow.ends(up=up)[0].address
    packet = sent(error_about(quoted(received(flow, up=up)), source, kind))
    sending, receiving = sides(up=up)
    arrival = examiner.delivered(
        lambda _tag: examiner.network.send(sending, packet, note),
        receiving,
        lambda seen, _tag: isinstance(read_segment(seen), ErrorMessage),
    )
    message = None if arrival is None else read_segment(arrival.packet)
    if arrival is None or not isinstance(message, ErrorMessage):
        return None
    return ErrorSeen(kind, arrival.packet, message)


def provoked(examiner: Examiner, packet: Packet, kind: ErrorKind, note: str) -> ErrorSeen | None:
    """Send a packet from the inside, and return the gateway's error of this kind about it; None = there was none.

    Raises:
        NotSeenError: control frames did not arrive.
    """
    source = source_of(packet)

    def wanted(seen: Packet, _tag: bytes) -> bool:
        error = quoting(seen, [source])
        return error is not None and ErrorSeen(kind, seen, error).numbers_kept

    arrival = examiner.delivered(lambda _: examiner.network.send("initiator", packet, note), "initiator", wanted)
    error = None if arrival is None else quoting(arrival.packet, [source])
    return None if arrival is None or error is None else ErrorSeen(kind, arrival.packet, error)
