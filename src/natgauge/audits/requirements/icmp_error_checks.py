# SPDX-License-Identifier: Apache-2.0
"""What is checked of an ICMP error from outside: RFC 5508 section 4.1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from natgauge.audits.kit.errors import send_error
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.packets import ErrorMessage, Packet, checksum, make_error
from natgauge.audits.kit.requirement import Finding, NotApplicableError, requires
from natgauge.words import Transport

#: Two options of IPv4 that do nothing, and the end of the list.
_OPTIONS: Final = b"\x01\x01\x00\x00"
#: Length to which the quoted packet is padded before extensions (RFC 4884 section 4.6).
_QUOTED_OCTETS: Final = 128
#: An extension structure with one object, an MPLS label (RFC 4884 section 7, RFC 4950), and its checksum.
_OBJECT: Final = b"\x00\x08\x01\x01\x00\x01\x01\x40"
_EXTENSIONS: Final = b"\x20\x00" + checksum(b"\x20\x00\x00\x00" + _OBJECT).to_bytes(2, "big") + _OBJECT
_Change = Callable[[Packet], Packet]


def _examine(  # noqa: PLR0913 - what differs between the checks, each by its name
    examiner: Examiner,
    transport: Transport,
    words: str,
    *,
    sent: _Change = lambda packet: packet,
    quoted: _Change = lambda packet: packet,
    must_pass: bool = False,
    inside: bool = False,
) -> Finding:
    """Send an ICMP error without a change, and another one with it.

    Args:
        examiner: examines the gateway.
        transport: transport of the quoted packet.
        words: what is special about the error.
        sent: changes the packet of the error.
        quoted: changes the packet that the error quotes.
        must_pass: whether the gateway must deliver the error; otherwise it must drop it.
        inside: whether the quoted source must be the inside endpoint.
    """
    if send_error(examiner, examiner.flow(transport), "port unreachable") is None:
        raise NotSeenError("the gateway delivers no ICMP error of this kind at all")
    # An error may end a mapping, so the verdict gets one of its own.
    flow, words = examiner.flow(transport), f"an error {words}"
    seen = send_error(examiner, flow, "port unreachable", sent=sent, quoted=quoted, note=words)
    if seen is None:
        return not must_pass, f"{words} was dropped"
    met = must_pass and (seen.source == flow.inside or not inside)
    return met, f"{words} was delivered, with the quoted source {seen.source}"


@requires("errors with a wrong checksum are dropped", (5508, "REQ-3", "SHOULD", "udp"))
def _examine_checksum(examiner: Examiner, transport: Transport) -> Finding:
    return _examine(examiner, transport, "with a wrong checksum", sent=_breaks(2))


@requires("errors that quote a wrong IP checksum are dropped", (5508, "REQ-3a", "SHOULD", "udp"))
def _examine_header(examiner: Examiner, transport: Transport) -> Finding:
    _refuse_ipv6(examiner)
    sent = _alters(lambda quoted: _broken(quoted, 10))
    return _examine(examiner, transport, "that quotes an IP header with a wrong checksum", sent=sent)


@requires("IP options of the quoted packet are passed over", (5508, "REQ-3b", "MUST", "udp"))
def _examine_options(examiner: Examiner, transport: Transport) -> Finding:
    """Quote a packet whose ports come after options."""
    _refuse_ipv6(examiner)
    words = "that quotes IP options"
    return _examine(examiner, transport, words, quoted=_with_options, must_pass=True, inside=True)


@requires("the checksum of the quoted segment is not verified", (5508, "REQ-3c", "SHOULD", "udp"))
def _examine_segment(examiner: Examiner, transport: Transport) -> Finding:
    return _examine(examiner, transport, "that quotes a wrong UDP checksum", quoted=_breaks(6), must_pass=True)


@requires("padding and ICMP extensions are no part of the quoted segment", (5508, "REQ-3d", "MUST", "udp"))
def _examine_extensions(examiner: Examiner, transport: Transport) -> Finding:
    _refuse_ipv6(examiner)
    sent = _alters(lambda quoted: quoted.ljust(_QUOTED_OCTETS, b"\0") + _EXTENSIONS, (_QUOTED_OCTETS // 4) << 16)
    return _examine(examiner, transport, "with ICMP extensions", sent=sent, must_pass=True)


def _refuse_ipv6(examiner: Examiner) -> None:
    if examiner.host(0, "responder").version != 4:
        raise NotApplicableError("the outside uses IPv6, whose header has neither checksum nor options")


def _broken(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 0xFF,)) + octets[place + 1 :]


def _breaks(place: int) -> _Change:
    """Return the change of one octet of a packet's payload."""
    return lambda packet: replace(packet, payload=_broken(packet.payload, place))


def _alters(change: Callable[[bytes], bytes], rest: int = 0) -> _Change:
    """Return a change of what an error quotes; the error's own checksum is right."""

    def altered(packet: Packet) -> Packet:
        error = packet.segment
        if not isinstance(error, ErrorMessage):
            return packet
        return make_error(packet.source, packet.destination, replace(error, rest=rest, quoted=change(error.quoted)))

    return altered


def _with_options(packet: Packet) -> Packet:
    return replace(packet, options=_OPTIONS)
