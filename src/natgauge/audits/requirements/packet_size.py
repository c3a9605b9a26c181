# SPDX-License-Identifier: Apache-2.0
"""Packets that are too big for the outside: RFC 4787 section 10."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from typing import Final

from natgauge.audits.kit.errors import TOO_BIG, quoting
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, Transport, datagram
from natgauge.audits.kit.packets import UDP, ErrorMessage, Packet, read_segment
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged, meets
from natgauge.audits.kit.undecided import NotApplicableError, NotSeenError

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


def _examine_refused(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)

    def wanted(seen: Packet, _tag: bytes) -> bool:
        error = quoting(seen, [flow.inside])
        return error is not None and (error.kind, error.code) == TOO_BIG[seen.source.version]

    def send(_tag: bytes) -> None:
        packet = _big(flow, dont_fragment=True)
        examiner.network.send("initiator", packet, f"I1 sends {len(packet.octets())} octets that may not be cut")

    with _narrowed(examiner):
        since = examiner.mark
        arrival = examiner.delivered(send, "initiator", wanted, "the gateway answers that the packet is too big")
        _refuse_whole(examiner, since)
    if arrival is None:
        return fails(f"no ICMP error for a packet above the outside MTU of {_MTU}")
    message = read_segment(arrival.packet)
    mtu = message.rest & 0xFFFF if isinstance(message, ErrorMessage) else 0
    return meets(f"ICMP error with MTU {mtu} from {arrival.packet.source} for a packet above the outside MTU of {_MTU}")


def _refuse_whole(examiner: Examiner, since: int) -> None:
    """Refuse a verdict where the link takes more than the MTU that was set."""
    for arrival in examiner.network.arrivals[since:]:
        if arrival.side == "responder" and len(arrival.packet.octets()) > _MTU:
            raise NotSeenError(f"the gateway's outside link passed more than the MTU of {_MTU} that was set")


def _examine_cut(examiner: Examiner, transport: Transport) -> RequirementFinding:
    flow = examiner.flow(transport)
    if flow.inside.address.version == 6:
        raise NotApplicableError("the inside uses IPv6, whose routers fragment nothing")
    with _narrowed(examiner):
        for _ in range(2):
            since, packet = examiner.mark, _big(flow, dont_fragment=False)
            examiner.network.send("initiator", packet, f"I1 sends {len(packet.octets())} octets that may be cut")
            parts = examiner.parts(
                "responder",
                since,
                lambda seen: seen.is_fragment and seen.protocol == UDP,
                "the gateway sends a fragment",
            )
            _refuse_whole(examiner, since)
            if sum(len(part.packet.payload) for part in parts) == _DATA_OCTETS + _UDP_HEADER_OCTETS:
                offsets = [part.packet.offset for part in parts]
                return judged(
                    offsets == sorted(offsets),
                    f"{len(parts)} fragments{'' if offsets == sorted(offsets) else ', out of order'}",
                )
    return fails("a packet that may be fragmented was dropped")


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-13", "MUST", "packets that are too big get an ICMP error", ("udp",), _examine_refused),
    Requirement(4787, "REQ-13a", "MUST", "packets that may be fragmented are", ("udp",), _examine_cut),
)
