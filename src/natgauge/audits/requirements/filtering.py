# SPDX-License-Identifier: Apache-2.0
"""Filtering: RFC 4787 section 5, RFC 5382 section 4.3, RFC 6888 section 3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged

_TEXT: Final = "filtering that is endpoint-independent or address-dependent"


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(filtering, transport)
    return judged(seen != "address and port-dependent", seen)


def _examine_cgn(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(filtering, transport)
    return judged(seen == "endpoint-independent", seen)


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-8", "SHOULD", _TEXT, ("udp",), _examine),
    Requirement(5382, "REQ-3", "SHOULD", _TEXT, ("tcp",), _examine),
    Requirement(
        6888,
        "REQ-7",
        "SHOULD",
        "filtering that is endpoint-independent",
        ("udp", "tcp"),
        _examine_cgn,
        profiles=frozenset({"cgn"}),
    ),
)
