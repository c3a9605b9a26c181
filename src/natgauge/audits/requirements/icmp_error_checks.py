# SPDX-License-Identifier: Apache-2.0
"""What is checked of an ICMP error from outside: RFC 5508 section 4.1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from natgauge.audits.kit.errors import ErrorSeen, error_about, pass_error, received, send_error
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Endpoint, Packet, checksum
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.audits.kit.unseen import NotApplicableError, NotSeenError

#: Two options of IPv4 that do nothing, and the end of the list.
_OPTIONS: Final = b"\x01\x01\x00\x00"
#: Length to which the quoted packet is padded before extensions (RFC 4884 section 4.6).
_QUOTED_OCTETS: Final = 128
_FLOWS: Final = Flows(3)
#: An extension structure with one object, an MPLS label (RFC 4884 section 7, RFC 4950), and its checksum.
_OBJECT: Final = b"\x00\x08\x01\x01\x00\x01\x01\x40"
_EXTENSIONS: Final = b"\x20\x00" + checksum(b"\x20\x00\x00\x00" + _OBJECT).to_bytes(2, "big") + _OBJECT


def _send(
    examiner: Examiner, words: str, error_of: Callable[[Packet], Packet]
) -> tuple[Endpoint, ErrorSeen | None, str]:
    """Send an ICMP error that is special, after one that is not.

    Returns:
        The inside endpoint of the flow, the error as it arrives (None = it was dropped), and both in words.
    """
    if send_error(examiner, examiner.flow(), "port unreachable") is None:
        raise NotSeenError("the gateway delivers no ICMP error of this kind at all")
    # An error may end a mapping, so the verdict gets one of its own.
    flow, words = examiner.flow(), f"an error {words}"
    seen = pass_error(examiner, error_of(received(flow, up=False)), "port unreachable", note=words)
    said = "dropped" if seen is None else f"delivered, with the quoted source {seen.source}"
    return flow.inside, seen, f"{words} was {said}"


def _about(packet: Packet, *, quoted: bytes | None = None, rest: int = 0) -> Packet:
    return error_about(packet, packet.destination, "port unreachable", quoted=quoted, rest=rest)


def _broken(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 0xFF,)) + octets[place + 1 :]


def _with_broken(packet: Packet, place: int) -> Packet:
    return replace(packet, payload=_broken(packet.payload, place))


def _refuse_ipv6(examiner: Examiner) -> None:
    if examiner.host(0, "responder").version != 4:
        raise NotApplicableError("the outside uses IPv6, whose header has neither checksum nor options")


@requires("errors with a wrong checksum are dropped", (5508, "REQ-3", "SHOULD", "udp"), flows=_FLOWS)
def _examine_checksum(examiner: Examiner) -> Finding:
    words = "with a wrong checksum"
    _, seen, said = _send(examiner, words, lambda packet: _with_broken(_about(packet), 2))
    return seen is None, said


@requires("errors that quote a wrong IP checksum are dropped", (5508, "REQ-3a", "SHOULD", "udp"), flows=_FLOWS)
def _examine_header(examiner: Examiner) -> Finding:
    _refuse_ipv6(examiner)
    words = "that quotes an IP header with a wrong checksum"
    _, seen, said = _send(examiner, words, lambda packet: _about(packet, quoted=_broken(packet.octets(), 10)))
    return seen is None, said


@requires("IP options of the quoted packet are passed over", (5508, "REQ-3b", "MUST", "udp"), flows=_FLOWS)
def _examine_options(examiner: Examiner) -> Finding:
    """Quote a packet with options, which move its ports."""
    _refuse_ipv6(examiner)
    words = "that quotes IP options"
    inside, seen, said = _send(examiner, words, lambda packet: _about(replace(packet, options=_OPTIONS)))
    return seen is not None and seen.source == inside, said


@requires("the checksum of the quoted segment is not verified", (5508, "REQ-3c", "SHOULD", "udp"), flows=_FLOWS)
def _examine_segment(examiner: Examiner) -> Finding:
    words = "that quotes a wrong UDP checksum"
    _, seen, said = _send(examiner, words, lambda packet: _about(_with_broken(packet, 6)))
    return seen is not None, said


@requires(
    "padding and ICMP extensions are no part of the quoted segment", (5508, "REQ-3d", "MUST", "udp"), flows=_FLOWS
)
def _examine_extensions(examiner: Examiner) -> Finding:
    _refuse_ipv6(examiner)

    def extended(packet: Packet) -> Packet:
        quoted = packet.octets().ljust(_QUOTED_OCTETS, b"\0") + _EXTENSIONS
        return _about(packet, quoted=quoted, rest=(_QUOTED_OCTETS // 4) << 16)

    _, seen, said = _send(examiner, "with ICMP extensions", extended)
    return seen is not None, said
