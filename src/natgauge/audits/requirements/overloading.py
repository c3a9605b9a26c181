# SPDX-License-Identifier: Apache-2.0
"""No port overloading: RFC 4787 section 4.2.1, RFC 5382 section 7.1."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import overloading
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets

_TEXT: Final = "no outside endpoint that two inside hosts have at one time"


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    shared = examiner.once(overloading, transport)
    if shared is None:
        return meets("two inside hosts with the same source port had different outside endpoints")
    return fails(f"two inside hosts had the outside endpoint {shared} at one time, to two remote hosts")


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-3", "MUST", _TEXT, ("udp",), _examine),
    Requirement(5382, "REQ-7", "MUST", _TEXT, ("tcp",), _examine),
)
