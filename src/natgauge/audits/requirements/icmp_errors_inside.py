# SPDX-License-Identifier: Apache-2.0
"""ICMP errors from the inside: RFC 5508 sections 4.2 and 5."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.errors import error_up
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")
    seen = error_up(examiner, flow, "port unreachable")
    if seen is None:
        return fails("an ICMP error of the inside host was dropped")
    if seen.destination != flow.mapped:
        return fails(f"it quotes the destination {seen.destination} instead of {flow.mapped}")
    if seen.outer_source != flow.mapped.address:
        return fails(f"it comes from {seen.outer_source} instead of {flow.mapped.address}")
    return judged(seen.numbers_kept, f"delivered from {seen.outer_source} with the quoted destination {flow.mapped}")


REQUIREMENTS: Final = (
    Requirement(
        5508,
        "REQ-5",
        "MUST",
        "ICMP errors from the inside arrive with the quoted packet as the outside sent it",
        ("udp", "tcp"),
        _examine,
    ),
)
