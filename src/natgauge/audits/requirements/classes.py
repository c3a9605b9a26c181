# SPDX-License-Identifier: Apache-2.0
"""Classes of mapping, filtering and ports: RFC 4787 sections 4, 5 and 7, RFC 5382 and 5508, RFC 6888 section 3."""

from __future__ import annotations

from functools import partial
from typing import Final

from natgauge.audits.kit.classes import Dependence, filtering, mapping, overloading
from natgauge.audits.kit.crowd import MANY, Crowd
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.requirement import CGN, Finding, NotApplicableError, Requirement
from natgauge.words import Transport


def _examine_mapping(examiner: Examiner, transport: Transport) -> Finding:
    seen = examiner.once(mapping, transport)
    return seen.kind == "endpoint-independent", seen.words


def _examine_filtering(allowed: set[Dependence], examiner: Examiner, transport: Transport) -> Finding:
    seen = examiner.once(filtering, transport)
    return seen in allowed, seen


def _examine_overloading(examiner: Examiner, transport: Transport) -> Finding:
    shared = examiner.once(overloading, transport)
    if shared is None:
        return True, _DIFFERENT
    return False, f"two inside hosts had the outside endpoint {shared[0]} at one time, to two remote hosts"


def _examine_overlap(examiner: Examiner, transport: Transport) -> Finding:
    """RFC 7857 section 3 allows what the older RFCs call overloading, but only for different remote endpoints."""
    shared = examiner.once(overloading, transport)
    if shared is None:
        raise NotApplicableError(_DIFFERENT)
    return not shared[1], f"two inside hosts had {shared[0]} to {'one' if shared[1] else 'two'} remote hosts"


def _examine_changes(examiner: Examiner, transport: Transport) -> Finding:
    """Compare mapping and filtering before and after another host opened many flows."""
    seen = examiner.once(mapping, transport)
    before = seen.kind, examiner.once(filtering, transport)
    words = f"mapping and filtering were {' and '.join(before)}"
    if seen.alone not in (None, seen.kind):
        return False, f"mapping is {seen.alone}, and {seen.kind} while another host uses the same source port"
    crowd = examiner.once(Crowd)
    crowd.grow(examiner, MANY)
    try:
        after = mapping(examiner, transport).kind, filtering(examiner, transport)
    except NotSeenError as error:
        raise NotSeenError(f"{words}; with {len(crowd.mapped)} more mappings {error}") from error
    more = f"with {len(crowd.mapped)} more mappings"
    return before == after, f"{words}, also {more}" if before == after else f"{words}, and {more} {' and '.join(after)}"


_lenient: Final = partial(_examine_filtering, {"endpoint-independent", "address-dependent"})
_strict: Final = partial(_examine_filtering, {"endpoint-independent"})
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
    Requirement(4787, "REQ-8", "SHOULD", _FILTERING, ("udp",), _lenient),
    Requirement(4787, "REQ-11", "MUST", "mapping and filtering do not change", ("udp",), _examine_changes, strain=1),
    Requirement(5382, "REQ-1", "MUST", _MAPPING, ("tcp",), _examine_mapping),
    Requirement(5382, "REQ-3", "SHOULD", _FILTERING, ("tcp",), _lenient),
    Requirement(5382, "REQ-7", "MUST", _OVERLOADING, ("tcp",), _examine_overloading),
    Requirement(5508, "REQ-1a", "SHOULD", _QUERY, ("icmp",), _examine_mapping),
    Requirement(6888, "REQ-7", "SHOULD", _OPEN_FILTERING, ("udp", "tcp"), _strict, CGN),
    Requirement(7857, "3", "MAY", _OVERLAP, ("udp", "tcp"), _examine_overlap),
)
