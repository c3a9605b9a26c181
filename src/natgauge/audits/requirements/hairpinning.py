# SPDX-License-Identifier: Apache-2.0
"""Hairpinning: RFC 4787 section 6, RFC 5382 section 7.2, RFC 5508 section 4.3 (see RFC 7857 section 12)."""

from __future__ import annotations

from natgauge.audits.kit.classes import hairpinned, hairpinning
from natgauge.audits.kit.errors import error_about, quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import ErrorMessage
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.audits.kit.unseen import NotApplicableError


@requires(
    "hairpinning between inside hosts", (4787, "REQ-9", "MUST", "udp"), (5382, "REQ-8", "MUST", "tcp"), flows=Flows(2)
)
def _examine(examiner: Examiner) -> Finding:
    seen = examiner.once(hairpinning)
    words = "a frame to the outside endpoint of another inside host"
    return seen != "none", f"{words} was {'not delivered' if seen == 'none' else 'delivered'}"


@requires(
    "hairpinned frames with the external source address and port",
    (4787, "REQ-9a", "MUST", "udp"),
    (5382, "REQ-8a", "MUST", "tcp"),
    flows=Flows(2),
)
def _examine_source(examiner: Examiner) -> Finding:
    seen = examiner.once(hairpinning)
    if seen == "none":
        raise NotApplicableError("the gateway does not hairpin")
    return seen == "external source", f"a hairpinned frame has an {seen}"


@requires("ICMP errors are hairpinned, too", (5508, "REQ-7", "MUST", "udp"), flows=Flows(2))
def _examine_error(examiner: Examiner) -> Finding:
    """Answer a hairpinned frame with an ICMP error, which must reach the inside host that sent the frame."""
    seen = examiner.once(hairpinned)
    if seen is None:
        raise NotApplicableError("the gateway does not hairpin")
    source, packet = seen[0].inside, seen[1]
    frame = examiner.deliver(
        error_about(packet, packet.destination, "port unreachable"),
        up=True,
        to="initiator",
        wanted=lambda one: isinstance(one.segment, ErrorMessage) and one.destination == source.address,
        note="the answer to the hairpinned frame",
    )
    if frame is None:
        return False, "an ICMP error about a hairpinned frame was dropped"
    met = quoting(frame.packet, [source]) is not None
    return met, f"an ICMP error about a hairpinned frame quotes {'its' if met else 'another'} source"
