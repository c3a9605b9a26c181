# SPDX-License-Identifier: Apache-2.0
"""Classes of mapping, filtering and ports: RFC 4787 sections 4, 5 and 7, RFC 5382 and 5508, RFC 6888 section 3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering, mapping, overloading
from natgauge.audits.kit.crowd import CROWD, MANY, Crowd
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.requirement import CGN, Finding, requires
from natgauge.audits.kit.rivals import ALONE
from natgauge.audits.kit.unseen import NotApplicableError, NotSeenError

_DIFFERENT: Final = "two inside hosts with the same source port had different outside endpoints"
_MAPPING, _FILTERING, _OVERLOADING = Flows(9), Flows(3), Flows(4)


@requires("one mapping of a query identifier for all remote hosts", (5508, "REQ-1a", "SHOULD", "icmp"), flows=_MAPPING)
@requires(
    "one mapping of an inside endpoint for all remote endpoints",
    (4787, "REQ-1", "MUST", "udp"),
    (5382, "REQ-1", "MUST", "tcp"),
    flows=_MAPPING,
)
def _examine_mapping(examiner: Examiner) -> Finding:
    seen = examiner.once(mapping)
    return seen.kind == "endpoint-independent", seen.words


@requires(
    "filtering that is endpoint-independent or address-dependent",
    (4787, "REQ-8", "SHOULD", "udp"),
    (5382, "REQ-3", "SHOULD", "tcp"),
    flows=_FILTERING,
)
def _examine_filtering(examiner: Examiner) -> Finding:
    seen = examiner.once(filtering)
    return seen != "address and port-dependent", seen


@requires(
    "filtering that is endpoint-independent", (6888, "REQ-7", "SHOULD", "udp", "tcp"), flows=_FILTERING, profiles=CGN
)
def _examine_open_filtering(examiner: Examiner) -> Finding:
    seen = examiner.once(filtering)
    return seen == "endpoint-independent", seen


@requires(
    "no outside endpoint that two inside hosts have at one time",
    (4787, "REQ-3", "MUST", "udp"),
    (5382, "REQ-7", "MUST", "tcp"),
    flows=_OVERLOADING,
)
def _examine_overloading(examiner: Examiner) -> Finding:
    shared = examiner.once(overloading)
    if shared is None:
        return True, _DIFFERENT
    return False, f"two inside hosts had the outside endpoint {shared[0]} at one time, to two remote hosts"


@requires(
    "two inside hosts have one outside endpoint only for different remote endpoints",
    (7857, "3", "MAY", "udp", "tcp"),
    flows=_OVERLOADING,
)
def _examine_overlap(examiner: Examiner) -> Finding:
    """RFC 7857 section 3 allows what the older RFCs call overloading, but only for different remote endpoints."""
    shared = examiner.once(overloading)
    if shared is None:
        raise NotApplicableError(_DIFFERENT)
    return not shared[1], f"two inside hosts had {shared[0]} to {'one' if shared[1] else 'two'} remote hosts"


@requires("mapping and filtering do not change", (4787, "REQ-11", "MUST", "udp"), flows=CROWD, strain=1)
def _examine_changes(examiner: Examiner) -> Finding:
    """Compare mapping and filtering before and after another host opened many flows."""
    seen = examiner.once(mapping)
    if seen.alone not in (None, seen.kind):
        return False, f"mapping is {seen.alone}, and {seen.kind} while another host uses the same source port"
    crowd = examiner.once(Crowd)
    # The hosts of the crowd are others, and may have another outside address.
    seen = mapping(examiner)
    before = seen.kind, filtering(examiner)
    words = f"mapping and filtering were {' and '.join(before)}"
    crowd.grow(examiner, MANY)
    try:
        after = mapping(examiner).kind, filtering(examiner)
    except NotSeenError as error:
        raise NotSeenError(f"{words}; with {len(crowd.mapped)} more mappings {error}") from error
    if seen.outside[0][1].address not in crowd.addresses:
        raise NotSeenError(f"{words}; the {len(crowd.mapped)} more mappings had another outside address; {ALONE}")
    more = f"with {len(crowd.mapped)} more mappings"
    return before == after, f"{words}, also {more}" if before == after else f"{words}, and {more} {' and '.join(after)}"
