# SPDX-License-Identifier: Apache-2.0
"""ICMP queries and the gateway's own ICMP: RFC 5508 sections 3 and 7."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.errors import packet_up, quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.packets import Packet
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets

#: Types of Time Exceeded by IP version.
_TIME_EXCEEDED: Final = {4: 11, 6: 3}


def _examine_query(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    return meets(f"query and reply passed, with the identifier {flow.mapped.port} outside")


def _examine_ttl(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    packet = replace(packet_up(flow, outside=False), ttl=1)

    def wanted(seen: Packet, _tag: bytes) -> bool:
        error = quoting(seen, [flow.inside])
        return error is not None and error.kind == _TIME_EXCEEDED[seen.source.version]

    words = "I1 sends a packet that may not be forwarded: its TTL is 1"
    arrival = examiner.delivered(
        lambda _: examiner.network.send("initiator", packet, words),
        "initiator",
        wanted,
        "the gateway answers with Time Exceeded",
    )
    if arrival is None:
        return fails("no Time Exceeded for a packet with TTL 1")
    return meets(f"Time Exceeded from {arrival.packet.source} for a packet with TTL 1")


REQUIREMENTS: Final = (
    Requirement(5508, "REQ-1", "MUST", "ICMP queries and their replies pass", ("icmp",), _examine_query),
    Requirement(5508, "REQ-10a", "MUST", "ICMP Time Exceeded is made", ("udp",), _examine_ttl),
)
