# SPDX-License-Identifier: Apache-2.0
"""Translation between IPv6 and IPv4: RFC 6146 section 3.4, RFC 7915 sections 4 and 5."""

from __future__ import annotations

import secrets
from typing import Final

from natgauge.audits.kit.errors import MTU_IN_ERRORS, send_error
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import Flow, along, datagram
from natgauge.audits.kit.packets import UDP, Packet, UdpSegment, is_right
from natgauge.audits.kit.requirement import NAT64, Finding, NotApplicableError, Requirement
from natgauge.words import Transport

#: IPv6 links pass packets of this size without fragmentation (RFC 8200 section 5).
_LEAST_MTU: Final = 1280
#: Up to this size of the IPv4 packet, a translator lets it be fragmented (RFC 7915 section 5.1).
_SMALL: Final = 1260
_HEADERS4: Final = 28
_LARGE: Final = 1400
#: An IPv6 header is 20 octets longer than an IPv4 header.
_LONGER: Final = 20


def _flow(examiner: Examiner, transport: Transport) -> Flow:
    if examiner.prefix is None:
        raise NotApplicableError("the gateway does not translate between IPv6 and IPv4")
    return examiner.flow(transport)


def _examine_checksum(examiner: Examiner, transport: Transport) -> Finding:
    flow = _flow(examiner, transport)

    def send(tag: bytes) -> None:
        segment = UdpSegment(flow.remote.own.port, flow.mapped.port, tag, checksum=0)
        examiner.send(flow, segment, up=False, note="without a checksum")

    arrival = examiner.delivered(send, "initiator")
    if arrival is None:
        return False, "UDP without a checksum was dropped"
    right = is_right(arrival.packet)
    return right, f"UDP without a checksum arrived with a {'right' if right else 'wrong'} one"


def _up(examiner: Examiner, flow: Flow, octets: int) -> Packet:
    """Send UDP that makes an IPv4 packet of this size, and return it as it arrives outside."""

    def send(tag: bytes) -> None:
        data = tag.ljust(octets - _HEADERS4, b"\0")
        examiner.send(flow, along(flow, data, up=True), up=True, note=f"{octets} octets as IPv4")

    arrival = examiner.delivered(send, "responder")
    if arrival is None:
        raise NotSeenError(f"UDP of {octets} octets did not arrive outside")
    return arrival.packet


def _examine_may_be_cut(examiner: Examiner, transport: Transport) -> Finding:
    flow = _flow(examiner, transport)
    small, large = (_up(examiner, flow, octets).dont_fragment for octets in (_SMALL, _LARGE))
    words = " and ".join(f"{octets} octets: DF={int(bit)}" for octets, bit in ((_SMALL, small), (_LARGE, large)))
    return not small and large, words


def _examine_mtu(examiner: Examiner, transport: Transport) -> Finding:
    seen = send_error(examiner, _flow(examiner, transport), "too big")
    if seen is None:
        return False, "Fragmentation Needed was dropped"
    expected = MTU_IN_ERRORS + _LONGER
    words = f"Fragmentation Needed with MTU {MTU_IN_ERRORS} became Packet Too Big with MTU {seen.message.rest}"
    return seen.message.rest == expected, words


def _examine_cut(examiner: Examiner, transport: Transport) -> Finding:
    flow = _flow(examiner, transport)
    for _ in range(2):
        since = examiner.mark
        packet = datagram(flow, secrets.token_bytes(_LARGE - _HEADERS4), up=False)
        examiner.network.send("responder", packet, f"{_LARGE} octets that may be fragmented")
        parts = examiner.parts(
            "initiator",
            since,
            lambda seen: (
                seen.protocol == UDP
                and seen.source == flow.remote.written.address
                and len(seen.payload) > _UDP_OF_CONTROL
            ),
        )
        if parts:
            sizes = [len(part.octets()) for part in parts]
            words = f"IPv4 of {_LARGE} octets without DF became IPv6 of {', '.join(map(str, sizes))} octets"
            return max(sizes) <= _LEAST_MTU, words
    return False, f"IPv4 of {_LARGE} octets without DF was dropped"


#: Octets of the UDP of control frames, with its header.
_UDP_OF_CONTROL: Final = 16
_CUT: Final = "IPv4 packets without DF are fragmented to 1280 octets"
_MTU: Final = "the MTU of Packet Too Big is 20 octets larger"
REQUIREMENTS: Final = (
    Requirement(6146, "3.4-checksum", "MUST", "UDP without a checksum gets one", ("udp",), _examine_checksum, NAT64),
    Requirement(7915, "4-1280", "SHOULD", _CUT, ("udp",), _examine_cut, NAT64),
    Requirement(7915, "4.2-MTU", "MUST", _MTU, ("udp",), _examine_mtu, NAT64),
    Requirement(
        7915, "5.1-DF", "MUST", "DF is set above 1260 octets, and not below", ("udp",), _examine_may_be_cut, NAT64
    ),
)
