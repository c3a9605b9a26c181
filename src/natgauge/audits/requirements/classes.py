# SPDX-License-Identifier: Apache-2.0
"""Classes of mapping, filtering and ports, protocols apart, and hairpinning.

RFC 4787 sections 4 to 7, RFC 5382, RFC 5508, RFC 6888 section 3, RFC 7857 sections 3, 5 and 6.
"""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import (
    MAPPING_FLOWS,
    OVERLOADING_FLOWS,
    OverloadingSeen,
    filtering,
    hairpin_of,
    hairpinned,
    hairpinning,
    mapping,
    overloading,
)
from natgauge.audits.kit.crowd import CROWD, MANY, Crowd
from natgauge.audits.kit.datagrams import error_about, quoting
from natgauge.audits.kit.examiner import ALONE, Examiner, NotApplicableError, NotSeenError, compete
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Endpoint, ErrorMessage
from natgauge.audits.requirements import CGN, Finding, requires

_MAPPING, _FILTERING, _OVERLOADING = Flows(MAPPING_FLOWS), Flows(3), Flows(MAPPING_FLOWS + OVERLOADING_FLOWS)
#: Flows of hairpinning.
_HAIRPINS: Final = Flows(7)
#: By chance, UDP and TCP have one port in all of these tries in less than one case of 10^6, with 1000 ports for a host.
_TRIES: Final = 2


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


def _overloading(examiner: Examiner) -> OverloadingSeen:
    """Return what was seen, where it decides: an outside endpoint of all remote endpoints is left to no other host."""
    seen = examiner.once(overloading)
    if seen.doubt and examiner.once(mapping).kind != "endpoint-independent":
        raise NotSeenError(f"{seen.words}, which can be chance: {seen.doubt}")
    return seen


@requires(
    "no outside endpoint that two inside hosts have at one time",
    (4787, "REQ-3", "MUST", "udp"),
    (5382, "REQ-7", "MUST", "tcp"),
    flows=_OVERLOADING,
)
def _examine_overloading(examiner: Examiner) -> Finding:
    seen = _overloading(examiner)
    return seen.shared is None, seen.words


@requires(
    "two inside hosts have one outside endpoint only for different remote endpoints",
    (7857, "3", "MAY", "udp", "tcp"),
    flows=_OVERLOADING,
)
def _examine_overlap(examiner: Examiner) -> Finding:
    """RFC 7857 section 3 allows what the older RFCs call overloading, but only for different remote endpoints."""
    seen = _overloading(examiner)
    if seen.shared is None:
        raise NotApplicableError(seen.words)
    return not seen.to_one, seen.words


@requires("mapping and filtering do not change", (4787, "REQ-11", "MUST", "udp"), flows=CROWD, strain=1)
def _examine_changes(examiner: Examiner) -> Finding:
    """Compare mapping and filtering before and after another host opened many flows."""
    seen = examiner.once(mapping)
    if seen.alone not in (None, seen.kind):
        return False, f"mapping is {seen.alone}, and {seen.kind} while another flow has the same port"
    # A lost frame can make another class. Beside the crowd nothing is examined again, so both classes are looked at
    # twice.
    first = seen.kind, examiner.once(filtering)
    crowd = examiner.once(Crowd)
    # The hosts of the crowd are others, and may have another outside address.
    seen = mapping(examiner)
    before = seen.kind, filtering(examiner)
    words = f"mapping and filtering were {' and '.join(before)}"
    crowd.grow(examiner, MANY)
    try:
        after = mapping(examiner).kind, filtering(examiner)
    except NotSeenError as error:
        raise NotSeenError(f"{words}; after {len(crowd.mapped)} more were opened {error}") from error
    if not crowd.mapped:
        raise NotSeenError(f"{words}; no further mapping was made")
    if seen.outside[0][1].address not in crowd.addresses:
        raise NotSeenError(f"{words}; the {len(crowd.mapped)} more mappings had another outside address; {ALONE}")
    more = f"after {len(crowd.mapped)} more mappings were opened"
    if before == after:
        return True, f"{words}, also {more}"
    words += f", and {more} {' and '.join(after)}"
    try:
        again = mapping(examiner).kind, filtering(examiner)
    except NotSeenError as error:
        raise NotSeenError(f"{words}; looked at once more, {error}") from error
    if (before, after) != (first, again):
        seen_else = f"they were {' and '.join(first)} before and {' and '.join(again)} after that"
        raise NotSeenError(f"{words}; looked at once more, {seen_else}")
    return False, words


@requires("UDP and TCP of one inside endpoint have two mappings", (7857, "5", "SHOULD", "udp"), flows=Flows(2 * _TRIES))
def _examine_protocols(examiner: Examiner) -> Finding:
    """Open UDP and TCP from one inside endpoint, whose port another host has already for UDP to this remote endpoint.

    A gateway that keeps ports must then change the port for UDP. It has no reason to change the port for TCP, unless
    both protocols have one mapping.
    """
    seen: list[tuple[Endpoint, Endpoint]] = []
    for _ in range(_TRIES):
        inside, remote = examiner.endpoint(), examiner.remote()
        flow = examiner.open(inside, remote, "udp")
        rival = compete(examiner, flow, remote)
        udp, tcp = rival.mapped, examiner.open(rival.inside, remote, "tcp").mapped
        if udp.port == inside.port:
            raise NotSeenError("UDP kept a port that another host had, so TCP would have the same port in any case")
        seen.append((udp, tcp))
    shared = all(udp == tcp for udp, tcp in seen)
    return not shared, f"one inside endpoint had {seen[-1][0]} for UDP and {seen[-1][1]} for TCP"


@requires("mappings and filters of UDP admit no TCP", (7857, "6", "SHOULD", "tcp"), flows=Flows(4))
def _examine_filter_of_protocols(examiner: Examiner) -> Finding:
    """Let a SYN try to enter where only UDP has gone out.

    If all outside endpoints may enter a mapping, the SYN goes to the mapping of UDP. Otherwise it goes to a mapping of
    TCP, from an outside endpoint that only UDP admitted.
    """
    if examiner.once(filtering) == "endpoint-independent":
        flow = examiner.flow("udp")
        source, where = flow.remote, "to the outside endpoint of a UDP mapping"
    else:
        inside, admitted = examiner.endpoint(), examiner.remote(0)
        flow = examiner.established(inside, examiner.remote(1, transport="tcp"), "tcp")
        if examiner.enters(admitted, flow.mapped, inside):
            raise NotSeenError("a SYN from an outside endpoint that nothing had admitted was delivered as well")
        examiner.established(inside, admitted, "udp")
        source, where = admitted, "from an outside endpoint that UDP had admitted"
    entered = examiner.enters(source, flow.mapped, flow.inside)
    return not entered, f"a SYN {where} was {'delivered' if entered else 'dropped'}"


@requires(
    "hairpinning between inside hosts", (4787, "REQ-9", "MUST", "udp"), (5382, "REQ-8", "MUST", "tcp"), flows=_HAIRPINS
)
def _examine_hairpinning(examiner: Examiner) -> Finding:
    seen = examiner.once(hairpinned)
    if seen.dropped is None:
        number = len(seen.delivered)
        return True, f"{number} frames to the outside endpoint of another inside host were delivered, each way"
    words = "a frame of {} to the outside endpoint of {} was not delivered".format(*seen.dropped)
    return False, f"{words}; {len(seen.delivered)} between other hosts were" if seen.delivered else words


@requires(
    "hairpinned frames with the external source address and port",
    (4787, "REQ-9a", "MUST", "udp"),
    (5382, "REQ-8a", "MUST", "tcp"),
    flows=_HAIRPINS,
)
def _examine_hairpin_source(examiner: Examiner) -> Finding:
    seen = examiner.once(hairpinned)
    if seen.dropped is not None:
        raise NotApplicableError(f"the gateway does not hairpin{' between all hosts' * bool(seen.delivered)}")
    kind = examiner.once(hairpinning)
    source, packet = hairpin_of(examiner, seen)
    words = f"a hairpinned frame of a host that had {source.mapped} outside came from {packet.sender}"
    return kind == "external source", f"{words}: {kind}"


@requires("ICMP errors are hairpinned, too", (5508, "REQ-7", "MUST", "udp"), flows=_HAIRPINS)
def _examine_hairpinned_error(examiner: Examiner) -> Finding:
    """Answer a hairpinned frame with an ICMP error, which must reach the inside host that sent the frame."""
    # The mappings of an earlier look can have expired.
    seen = hairpinned(examiner)
    if not seen.delivered:
        raise NotApplicableError("the gateway does not hairpin")
    source, packet = seen.delivered[0][0].inside, seen.delivered[0][1]
    frame = examiner.deliver(
        error_about(packet, packet.destination, "port unreachable"),
        up=True,
        to="initiator",
        wanted=lambda one: isinstance(one.segment, ErrorMessage) and one.destination == source.address,
        note="the answer to the hairpinned frame",
    )
    if frame is None:
        return False, "an ICMP error about a hairpinned frame was dropped"
    met = quoting(frame.packet, [source]) is not None
    return met, f"an ICMP error about a hairpinned frame quotes {'its' if met else 'another'} source"
