# SPDX-License-Identifier: Apache-2.0
"""ICMP queries and the gateway's own ICMP: RFC 5508 sections 3 and 7."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.errors import provoked
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import datagram
from natgauge.audits.kit.requirement import Finding, Requirement
from natgauge.words import Transport


def _examine_query(examiner: Examiner, transport: Transport) -> Finding:
    flow = examiner.flow(transport)
    return True, f"query and reply passed, with the identifier {flow.mapped.port} outside"


def _examine_ttl(examiner: Examiner, transport: Transport) -> Finding:
    flow = examiner.flow(transport)
    packet = replace(datagram(flow, examiner.tag(), up=True), ttl=1)
    seen = provoked(examiner, packet, "time exceeded", "a TTL of 1 does not allow to forward it")
    if seen is None:
        return False, "no Time Exceeded for a packet with TTL 1"
    return True, f"Time Exceeded from {seen.packet.source} for a packet with TTL 1"


REQUIREMENTS: Final = (
    Requirement(5508, "REQ-1", "MUST", "ICMP queries and their replies pass", ("icmp",), _examine_query),
    Requirement(5508, "REQ-10a", "MUST", "ICMP Time Exceeded is made", ("udp",), _examine_ttl),
)
