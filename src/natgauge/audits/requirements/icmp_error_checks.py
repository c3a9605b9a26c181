# SPDX-License-Identifier: Apache-2.0
"""What is checked of an ICMP error from outside: RFC 5508 section 4.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.errors import (
    broken_checksum,
    broken_quoted_header,
    broken_segment_checksum,
    error_down,
)
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged
from natgauge.audits.kit.undecided import NotApplicableError, NotSeenError

#: Two options of IPv4 that do nothing, and the end of the list.
_OPTIONS: Final = b"\x01\x01\x00\x00"


def _flow(examiner: Examiner, transport: Transport, *, ipv4: bool = False) -> Flow:
    """Open a flow, after another one for which a right error was delivered."""
    flow = examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")
    if ipv4 and flow.mapped.address.version != 4:
        raise NotApplicableError("the outside uses IPv6, whose header has neither checksum nor options")
    if error_down(examiner, flow, "port unreachable") is None:
        raise NotSeenError("the gateway delivers no ICMP error of this kind at all")
    # An error may end a mapping, so the verdict gets one of its own.
    return examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")


def _examine_checksum(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = _flow(examiner, transport)
    seen = error_down(examiner, flow, "port unreachable", sent=broken_checksum, words=" with a wrong checksum")
    return judged(seen is None, f"an error with a wrong ICMP checksum was {'dropped' if seen is None else 'delivered'}")


def _examine_header(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = _flow(examiner, transport, ipv4=True)
    words = " that quotes an IP header with a wrong checksum"
    seen = error_down(examiner, flow, "port unreachable", sent=broken_quoted_header, words=words)
    return judged(seen is None, f"an error{words} was {'dropped' if seen is None else 'delivered'}")


def _examine_options(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = _flow(examiner, transport, ipv4=True)
    seen = error_down(
        examiner,
        flow,
        "port unreachable",
        quoted=lambda packet: replace(packet, options=_OPTIONS),
        words=" that quotes IP options",
    )
    if seen is None:
        return fails("an error that quotes a packet with IP options was dropped")
    met = seen.source == flow.inside
    return judged(met, f"an error that quotes a packet with IP options arrived with the quoted source {seen.source}")


def _examine_segment(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = _flow(examiner, transport)
    words = " that quotes a wrong UDP checksum"
    seen = error_down(examiner, flow, "port unreachable", quoted=broken_segment_checksum, words=words)
    return judged(seen is not None, f"an error{words} was {'dropped' if seen is None else 'delivered'}")


REQUIREMENTS: Final = (
    Requirement(5508, "REQ-3", "SHOULD", "errors with a wrong checksum are dropped", ("udp",), _examine_checksum),
    Requirement(
        5508, "REQ-3a", "SHOULD", "errors that quote a wrong IP checksum are dropped", ("udp",), _examine_header
    ),
    Requirement(5508, "REQ-3b", "MUST", "IP options of the quoted packet are passed over", ("udp",), _examine_options),
    Requirement(
        5508, "REQ-3c", "SHOULD", "the checksum of the quoted segment is not verified", ("udp",), _examine_segment
    ),
)
