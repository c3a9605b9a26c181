# SPDX-License-Identifier: Apache-2.0
"""Packets that are too big for the outside: RFC 4787 section 10."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from typing import Final

from natgauge.audits.kit.errors import provoked
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import Flow, datagram
from natgauge.audits.kit.packets import UDP, Packet
from natgauge.audits.kit.requirement import Finding, NotApplicableError, Requirement
from natgauge.words import Transport

#: MTU of the gateway's outside link during the examination; IPv6 needs 1280.
_MTU: Final = 1300
_DATA_OCTETS: Final = 1380
_UDP_HEADER_OCTETS: Final = 8


def _narrowed(examiner: Examiner) -> AbstractContextManager[None]:
    if examiner.narrow is None:
        raise NotSeenError("natgauge cannot change the MTU of this gateway's outside link")
    return examiner.narrow(_MTU)


def _big(flow: Flow, *, dont_fragment: bool) -> Packet:
    return datagram(flow, secrets.token_bytes(_DATA_OCTETS), up=True, dont_fragment=dont_fragment)


def _examine_refused(examiner: Examiner, transport: Transport) -> Finding:
    flow = examiner.flow(transport)
    with _narrowed(examiner):
        since = examiner.mark
        seen = provoked(examiner, _big(flow, dont_fragment=True), "too big", "it may not be fragmented")
        _refuse_whole(examiner, since)
    if seen is None:
        return False, f"no ICMP error for a packet above the outside MTU of {_MTU}"
    mtu = seen.message.rest & 0xFFFF
    return True, f"ICMP error with MTU {mtu} from {seen.packet.source} for a packet above the outside MTU of {_MTU}"


def _refuse_whole(examiner: Examiner, since: int) -> None:
    """Refuse a verdict where the link takes more than the MTU that was set."""
    for arrival in examiner.network.arrivals[since:]:
        if arrival.side == "responder" and len(arrival.packet.octets()) > _MTU:
            raise NotSeenError(f"the gateway's outside link passed more than the MTU of {_MTU} that was set")


def _examine_cut(examiner: Examiner, transport: Transport) -> Finding:
    flow = examiner.flow(transport)
    if flow.inside.address.version == 6:
        raise NotApplicableError("the inside uses IPv6, whose routers fragment nothing")
    with _narrowed(examiner):
        for _ in range(2):
            since, packet = examiner.mark, _big(flow, dont_fragment=False)
            examiner.network.send("initiator", packet, "it may be fragmented")
            parts = examiner.parts("responder", since, lambda seen: seen.is_fragment and seen.protocol == UDP)
            _refuse_whole(examiner, since)
            if sum(len(part.payload) for part in parts) == _DATA_OCTETS + _UDP_HEADER_OCTETS:
                offsets = [part.offset for part in parts]
                return (
                    offsets == sorted(offsets),
                    f"{len(parts)} fragments{'' if offsets == sorted(offsets) else ', out of order'}",
                )
    return False, "a packet that may be fragmented was dropped"


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-13", "MUST", "packets that are too big get an ICMP error", ("udp",), _examine_refused),
    Requirement(4787, "REQ-13a", "MUST", "packets that may be fragmented are", ("udp",), _examine_cut),
)
