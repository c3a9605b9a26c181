# SPDX-License-Identifier: Apache-2.0
"""ICMP queries, and ICMP errors that the gateway itself makes: RFC 5508 sections 3 and 7, RFC 4787 section 10."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from natgauge.audits.kit.datagrams import Carried, carry
from natgauge.audits.kit.errors import provoked
from natgauge.audits.kit.examiner import PATIENCE_SECONDS, Examiner
from natgauge.audits.kit.flows import is_same, lone_packet
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError, UntranslatedError
from natgauge.audits.kit.requirement import Finding, requires

#: MTU of the gateway's outside link during the examination; IPv6 needs 1280.
_MTU: Final = 1300
_DATA_OCTETS: Final = 1380
#: Queries, each between other hosts.
_QUERIES: Final = 2


@requires(
    "ICMP queries and their replies pass", (5508, "REQ-1", "MUST", "icmp"), flows=Flows(2), needs_forwarding=False
)
def _examine_query(examiner: Examiner) -> Finding:
    """Send a query and its reply between the first hosts of both sides, and between the second ones."""
    seen = list[str]()
    for turn in range(_QUERIES):
        met, words = _query(examiner, turn)
        if not met:
            return False, words
        seen.append(words)
    return True, "; ".join(seen)


def _query(examiner: Examiner, turn: int) -> Finding:
    """Send a query and its reply; new flows by UDP show that the gateway serves the host that sent the query."""
    inside, outside = (turn % len(examiner.hosts(side)) for side in ("initiator", "responder"))
    try:
        flow = examiner.open(examiner.endpoint(inside), examiner.remote(outside))
    except UntranslatedError:
        raise
    except NotSeenError:
        if "icmp" in examiner.forwarded and not turn:
            # This query was lost, or the gateway refuses further mappings of this host.
            raise
        # Raises if UDP does not pass either.
        examiner.flow("udp", turn=turn)
        examiner.control()
        return (
            False,
            f"queries to {examiner.host(outside, 'responder')} were dropped, while UDP of the same host passed",
        )
    words = f"a query to {flow.remote.address} passed, with the identifier {flow.mapped.port} outside"
    packet = lone_packet("icmp", *flow.ends(up=False), examiner.tag(), up=False)
    if examiner.deliver(packet, up=False, wanted=lambda seen: is_same(seen, packet)) is None:
        return False, f"{words}; its reply was dropped"
    return True, f"{words}, and its reply"


@requires("ICMP Time Exceeded is made", (5508, "REQ-10a", "MUST", "udp"), flows=Flows(2))
def _examine_ttl(examiner: Examiner) -> Finding:
    packet = replace(examiner.flow().datagram(examiner.tag(), up=True), ttl=1)
    since = examiner.mark
    seen = provoked(examiner, packet, "time exceeded", "a TTL of 1 does not allow to forward it")
    if seen is not None:
        return True, f"Time Exceeded from {seen.packet.source} for a packet with TTL 1"
    for frame in examiner.network.arrived(since, "responder"):
        if is_same(frame.packet, packet):
            examiner.network.received(frame)
            raise NotApplicableError("the gateway forwards a packet with TTL 1, and must report only what it discards")
    return False, f"no Time Exceeded for a packet with TTL 1 within {PATIENCE_SECONDS:g} s"


@requires("packets that are too big get an ICMP error", (4787, "REQ-13", "MUST", "udp"), flows=Flows(2))
def _examine_refused(examiner: Examiner) -> Finding:
    packet = examiner.flow().datagram(secrets.token_bytes(_DATA_OCTETS), up=True, dont_fragment=True)
    with _narrowed(examiner):
        since = examiner.mark
        seen = provoked(examiner, packet, "too big", "it may not be fragmented")
        _refuse_whole(examiner, since)
    if seen is None:
        return False, f"no ICMP error for a packet above the outside MTU of {_MTU} within {PATIENCE_SECONDS:g} s"
    mtu = seen.message.rest & 0xFFFF
    return True, f"ICMP error with MTU {mtu} from {seen.packet.source} for a packet above the outside MTU of {_MTU}"


def _cut(examiner: Examiner) -> Carried:
    """Send a packet that may be fragmented to a link that is too narrow for it."""
    flow = examiner.flow()
    if flow.inside.address.version == 6:
        raise NotApplicableError("the inside uses IPv6, whose routers fragment nothing")
    with _narrowed(examiner):
        since = examiner.mark
        carried = carry(examiner, flow, _DATA_OCTETS, up=True, note="it may be fragmented")
        _refuse_whole(examiner, since)
    return carried


def _fragments(carried: Carried) -> Finding:
    """Whether fragments are in order, and both in words."""
    offsets = [part.offset for part in carried.packets]
    ordered = offsets == sorted(offsets)
    return ordered, f"{len(offsets)} fragments{'' if ordered else ', out of order'}"


@requires("packets that may be fragmented are", (4787, "REQ-13a", "MUST", "udp"), flows=Flows(2))
def _examine_cut(examiner: Examiner) -> Finding:
    carried = examiner.once(_cut)
    if not carried.packets:
        return False, f"a packet that may be fragmented {carried}"
    return True, _fragments(carried)[1]


@requires("fragments are sent in order", (4787, "REQ-13a-order", "SHOULD", "udp"), flows=Flows(2))
def _examine_order(examiner: Examiner) -> Finding:
    carried = examiner.once(_cut)
    if not carried.packets:
        raise NotSeenError(f"a packet that may be fragmented {carried}")
    return _fragments(carried)


def _narrowed(examiner: Examiner) -> AbstractContextManager[None]:
    if examiner.narrow is None:
        raise NotSeenError("natgauge cannot change the MTU of this gateway's outside link")
    return examiner.narrow(_MTU)


def _refuse_whole(examiner: Examiner, since: int) -> None:
    """Refuse a verdict where the link takes more than the MTU that was set."""
    if any(len(frame.packet.octets()) > _MTU for frame in examiner.network.arrived(since, "responder")):
        raise NotSeenError(f"the gateway's outside link passed more than the MTU of {_MTU} that was set")
