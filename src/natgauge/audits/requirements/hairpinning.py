# SPDX-License-Identifier: Apache-2.0
"""Hairpinning: RFC 4787 section 6, RFC 5382 section 7.2."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import hairpinning
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged
from natgauge.audits.kit.undecided import NotApplicableError


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(hairpinning, transport)
    words = "a frame to the outside endpoint of another inside host"
    return judged(seen != "none", f"{words} was {'not delivered' if seen == 'none' else 'delivered'}")


def _examine_source(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(hairpinning, transport)
    if seen == "none":
        raise NotApplicableError("the gateway does not hairpin")
    return judged(seen == "external source", f"a hairpinned frame has an {seen}")


_TEXT: Final = "hairpinning between inside hosts"
_SOURCE: Final = "hairpinned frames with the external source address and port"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-9", "MUST", _TEXT, ("udp",), _examine),
    Requirement(4787, "REQ-9a", "MUST", _SOURCE, ("udp",), _examine_source),
    Requirement(5382, "REQ-8", "MUST", _TEXT, ("tcp",), _examine),
    Requirement(5382, "REQ-8a", "MUST", _SOURCE, ("tcp",), _examine_source),
)
