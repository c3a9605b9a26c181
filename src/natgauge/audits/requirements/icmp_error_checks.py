# SPDX-License-Identifier: Apache-2.0
"""What is checked of an ICMP error from outside: RFC 5508 section 4.1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from natgauge.audits.kit.errors import send_error
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.packets import ErrorMessage, Packet, checksum, make_packet, read_segment
from natgauge.audits.kit.requirement import Finding, NotApplicableError, Requirement
from natgauge.records.audit import Level
from natgauge.words import Transport

#: Two options of IPv4 that do nothing, and the end of the list.
_OPTIONS: Final = b"\x01\x01\x00\x00"
#: Length to which the quoted packet is padded before extensions (RFC 4884 section 4.6).
_QUOTED_OCTETS: Final = 128
#: An extension structure with one object, an MPLS label (RFC 4884 section 7, RFC 4950), and its checksum.
_OBJECT: Final = b"\x00\x08\x01\x01\x00\x01\x01\x40"
_EXTENSIONS: Final = b"\x20\x00" + checksum(b"\x20\x00\x00\x00" + _OBJECT).to_bytes(2, "big") + _OBJECT


@dataclass(frozen=True)
class _Change:
    """A change of an ICMP error: what is special about it, the change, and whether the error must be delivered."""

    words: str
    sent: Callable[[Packet], Packet] = lambda packet: packet
    quoted: Callable[[Packet], Packet] = lambda packet: packet
    must_pass: bool = False
    ipv4: bool = False


def _examine(change: _Change, examiner: Examiner, transport: Transport) -> Finding:
    flow = examiner.flow(transport)
    if change.ipv4 and flow.mapped.address.version != 4:
        raise NotApplicableError("the outside uses IPv6, whose header has neither checksum nor options")
    if send_error(examiner, flow, "port unreachable") is None:
        raise NotSeenError("the gateway delivers no ICMP error of this kind at all")
    # An error may end a mapping, so the verdict gets one of its own.
    flow = examiner.flow(transport)
    words = f"an error {change.words}"
    seen = send_error(examiner, flow, "port unreachable", sent=change.sent, quoted=change.quoted, note=words)
    if seen is None:
        return not change.must_pass, f"{words} was dropped"
    # Options move the ports in the quoted packet.
    met = change.must_pass and (seen.source == flow.inside or change is not _PASSED_OVER)
    return met, f"{words} was delivered, with the quoted source {seen.source}"


def _broken(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 0xFF,)) + octets[place + 1 :]


def _breaks(place: int) -> Callable[[Packet], Packet]:
    """Return the change of one octet of a packet's payload."""
    return lambda packet: replace(packet, payload=_broken(packet.payload, place))


def _alters(change: Callable[[bytes], bytes], rest: int = 0) -> Callable[[Packet], Packet]:
    """Return a change of what an error quotes; the error's own checksum is right."""

    def altered(packet: Packet) -> Packet:
        error = read_segment(packet)
        if not isinstance(error, ErrorMessage):
            return packet
        return make_packet(packet.source, packet.destination, replace(error, rest=rest, quoted=change(error.quoted)))

    return altered


_CHECKSUM: Final = _Change("with a wrong checksum", sent=_breaks(2))
_HEADER: Final = _Change(
    "that quotes an IP header with a wrong checksum", sent=_alters(lambda quoted: _broken(quoted, 10)), ipv4=True
)
_PASSED_OVER: Final = _Change(
    "that quotes IP options", quoted=lambda packet: replace(packet, options=_OPTIONS), must_pass=True, ipv4=True
)
_SEGMENT: Final = _Change("that quotes a wrong UDP checksum", quoted=_breaks(6), must_pass=True)
_EXTENDED: Final = _Change(
    "with ICMP extensions",
    sent=_alters(lambda quoted: quoted.ljust(_QUOTED_OCTETS, b"\0") + _EXTENSIONS, (_QUOTED_OCTETS // 4) << 16),
    must_pass=True,
    ipv4=True,
)
#: Name in RFC 5508, level, text, change.
_TABLE: Final[tuple[tuple[str, Level, str, _Change], ...]] = (
    ("REQ-3", "SHOULD", "errors with a wrong checksum are dropped", _CHECKSUM),
    ("REQ-3a", "SHOULD", "errors that quote a wrong IP checksum are dropped", _HEADER),
    ("REQ-3b", "MUST", "IP options of the quoted packet are passed over", _PASSED_OVER),
    ("REQ-3c", "SHOULD", "the checksum of the quoted segment is not verified", _SEGMENT),
    ("REQ-3d", "MUST", "padding and ICMP extensions are no part of the quoted segment", _EXTENDED),
)
REQUIREMENTS: Final = tuple(
    Requirement(5508, name, level, text, ("udp",), partial(_examine, change)) for name, level, text, change in _TABLE
)
