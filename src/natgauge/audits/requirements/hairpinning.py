# SPDX-License-Identifier: Apache-2.0
"""Hairpinning: RFC 4787 section 6, RFC 5382 section 7.2, RFC 5508 section 4.3 (see RFC 7857 section 12)."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import hairpinned, hairpinning
from natgauge.audits.kit.errors import error_about, quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.packets import ErrorMessage, read_segment
from natgauge.audits.kit.requirement import Finding, NotApplicableError, Requirement
from natgauge.words import Transport


def _examine(examiner: Examiner, transport: Transport) -> Finding:
    seen = examiner.once(hairpinning, transport)
    words = "a frame to the outside endpoint of another inside host"
    return seen != "none", f"{words} was {'not delivered' if seen == 'none' else 'delivered'}"


def _examine_source(examiner: Examiner, transport: Transport) -> Finding:
    seen = examiner.once(hairpinning, transport)
    if seen == "none":
        raise NotApplicableError("the gateway does not hairpin")
    return seen == "external source", f"a hairpinned frame has an {seen}"


def _examine_error(examiner: Examiner, transport: Transport) -> Finding:
    """Answer a hairpinned frame with an ICMP error, which must reach the inside host that sent the frame."""
    seen = examiner.once(hairpinned, transport)
    if seen is None:
        raise NotApplicableError("the gateway does not hairpin")
    source, packet = seen[0].inside, seen[1].packet
    error = error_about(packet, packet.destination, "port unreachable")
    arrival = examiner.delivered(
        lambda _: examiner.network.send("initiator", error, "the answer to the hairpinned frame"),
        "initiator",
        lambda one, _tag: isinstance(read_segment(one), ErrorMessage) and one.destination == source.address,
    )
    if arrival is None:
        return False, "an ICMP error about a hairpinned frame was dropped"
    met = quoting(arrival.packet, [source]) is not None
    return met, f"an ICMP error about a hairpinned frame quotes {'its' if met else 'another'} source"


_TEXT: Final = "hairpinning between inside hosts"
_SOURCE: Final = "hairpinned frames with the external source address and port"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-9", "MUST", _TEXT, ("udp",), _examine),
    Requirement(4787, "REQ-9a", "MUST", _SOURCE, ("udp",), _examine_source),
    Requirement(5382, "REQ-8", "MUST", _TEXT, ("tcp",), _examine),
    Requirement(5382, "REQ-8a", "MUST", _SOURCE, ("tcp",), _examine_source),
    Requirement(5508, "REQ-7", "MUST", "ICMP errors are hairpinned, too", ("udp",), _examine_error),
)
