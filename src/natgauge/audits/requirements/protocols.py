# SPDX-License-Identifier: Apache-2.0
"""Mappings and filters of one protocol serve no other: RFC 7857 sections 5 and 6."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged
from natgauge.audits.kit.undecided import NotApplicableError


def _examine_mapping(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    entered = examiner.enters("tcp", flow.remote.own, flow.mapped, flow.inside, "S1, by TCP,")
    return judged(not entered, f"a SYN to the outside endpoint of a UDP mapping was {_WORDS[entered]}")


def _examine_filter(examiner: Examiner, _transport: Transport) -> RequirementFinding:
    """Open UDP to one outside host and TCP to another one, both from one inside endpoint."""
    if examiner.once(filtering, "tcp") == "endpoint-independent":
        raise NotApplicableError("the filters of TCP admit every outside endpoint")
    inside, admitted = examiner.endpoint(), examiner.remote(0)
    examiner.established("udp", inside, admitted, "I1, by UDP,")
    flow = examiner.established("tcp", inside, examiner.remote(1), "I1, by TCP,")
    entered = examiner.enters("tcp", admitted.own, flow.mapped, inside, "S1, by TCP,")
    return judged(not entered, f"a SYN from an outside endpoint that UDP had admitted was {_WORDS[entered]}")


_WORDS: Final = {True: "delivered", False: "dropped"}
REQUIREMENTS: Final = (
    Requirement(7857, "5", "SHOULD", "a mapping of UDP serves no TCP", ("udp",), _examine_mapping),
    Requirement(7857, "6", "SHOULD", "a filter opened by UDP admits no TCP", ("tcp",), _examine_filter),
)
