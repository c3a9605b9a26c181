# SPDX-License-Identifier: Apache-2.0
"""Endpoint-independent mapping: RFC 4787 section 4.1, RFC 5382 section 4.1, RFC 5508 section 3.1."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import mapping
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged

_TEXT: Final = "one mapping of an inside endpoint for all remote endpoints"


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(mapping, transport)
    return judged(seen.kind == "endpoint-independent", seen.words)


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-1", "MUST", _TEXT, ("udp",), _examine),
    Requirement(5382, "REQ-1", "MUST", _TEXT, ("tcp",), _examine),
    Requirement(
        5508, "REQ-1a", "SHOULD", "one mapping of a query identifier for all remote hosts", ("icmp",), _examine
    ),
)
