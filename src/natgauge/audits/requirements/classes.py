# SPDX-License-Identifier: Apache-2.0
"""Classes of mapping, filtering and ports: RFC 4787 sections 4 and 5, RFC 5382 and 5508, RFC 6888 section 3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering, mapping, overloading
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import CGN, Requirement, RequirementFinding, fails, judged, meets
from natgauge.audits.kit.undecided import NotApplicableError


def _examine_mapping(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(mapping, transport)
    return judged(seen.kind == "endpoint-independent", seen.words)


def _examine_filtering(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(filtering, transport)
    return judged(seen != "address and port-dependent", seen)


def _examine_open_filtering(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(filtering, transport)
    return judged(seen == "endpoint-independent", seen)


def _examine_overloading(examiner: Examiner, transport: Transport) -> RequirementFinding:
    shared = examiner.once(overloading, transport)
    if shared is None:
        return meets(_DIFFERENT)
    return fails(f"two inside hosts had the outside endpoint {shared[0]} at one time, to two remote hosts")


def _examine_overlap(examiner: Examiner, transport: Transport) -> RequirementFinding:
    """RFC 7857 section 3 allows what the older RFCs call overloading, but only for different remote endpoints."""
    shared = examiner.once(overloading, transport)
    if shared is None:
        raise NotApplicableError(_DIFFERENT)
    return judged(not shared[1], f"two inside hosts had {shared[0]} to {'one' if shared[1] else 'two'} remote hosts")


_DIFFERENT: Final = "two inside hosts with the same source port had different outside endpoints"
_MAPPING: Final = "one mapping of an inside endpoint for all remote endpoints"
_QUERY: Final = "one mapping of a query identifier for all remote hosts"
_FILTERING: Final = "filtering that is endpoint-independent or address-dependent"
_OPEN_FILTERING: Final = "filtering that is endpoint-independent"
_OVERLOADING: Final = "no outside endpoint that two inside hosts have at one time"
_OVERLAP: Final = "two inside hosts have one outside endpoint only for different remote endpoints"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-1", "MUST", _MAPPING, ("udp",), _examine_mapping),
    Requirement(4787, "REQ-3", "MUST", _OVERLOADING, ("udp",), _examine_overloading),
    Requirement(4787, "REQ-8", "SHOULD", _FILTERING, ("udp",), _examine_filtering),
    Requirement(5382, "REQ-1", "MUST", _MAPPING, ("tcp",), _examine_mapping),
    Requirement(5382, "REQ-3", "SHOULD", _FILTERING, ("tcp",), _examine_filtering),
    Requirement(5382, "REQ-7", "MUST", _OVERLOADING, ("tcp",), _examine_overloading),
    Requirement(5508, "REQ-1a", "SHOULD", _QUERY, ("icmp",), _examine_mapping),
    Requirement(6888, "REQ-7", "SHOULD", _OPEN_FILTERING, ("udp", "tcp"), _examine_open_filtering, CGN),
    Requirement(7857, "3", "MAY", _OVERLAP, ("udp", "tcp"), _examine_overlap),
)
