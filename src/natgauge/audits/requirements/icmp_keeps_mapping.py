# SPDX-License-Identifier: Apache-2.0
"""ICMP errors end no mapping: RFC 4787 section 8, RFC 5382 section 7.5."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.errors import ERROR_KINDS, error_down
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    ended = []
    for kind in ERROR_KINDS:
        flow = examiner.established(transport, examiner.endpoint(), examiner.remote(), "I1")
        error_down(examiner, flow, kind)
        if not examiner.passes(flow, up=False, name="S1"):
            ended.append(kind)
    if ended:
        return fails(f"frames from outside stopped after the ICMP error {', '.join(ended)}")
    return meets(f"the mapping stayed after each ICMP error: {', '.join(ERROR_KINDS)}")


_TEXT: Final = "ICMP errors do not end a mapping"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-12", "MUST", _TEXT, ("udp",), _examine),
    Requirement(5382, "REQ-10", "MUST", _TEXT, ("tcp",), _examine),
)
