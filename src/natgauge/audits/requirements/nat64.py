# SPDX-License-Identifier: Apache-2.0
"""Translation between IPv6 and IPv4: RFC 6146 section 3.4, RFC 7915 sections 4 and 5."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Final

from natgauge.audits.kit.datagrams import carry
from natgauge.audits.kit.errors import MTU_IN_ERRORS, send_error
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import UdpSegment, is_right, make_packet
from natgauge.audits.kit.requirement import NAT64, Finding, requires

#: IPv6 links pass packets of this size without fragmentation (RFC 8200 section 5).
_LEAST_MTU: Final = 1280
#: Up to this size of the IPv4 packet, a translator lets it be fragmented (RFC 7915 section 5.1).
_SMALL: Final = 1260
_HEADERS4: Final = 28
_LARGE: Final = 1400
#: Sizes of the IPv4 packet whose DF is looked at: both sides of the border, and far above it.
_DF_SIZES: Final = (_SMALL, _SMALL + 1, _LARGE)
#: An IPv6 header is 20 octets longer than an IPv4 header.
_LONGER: Final = 20
#: Declares what a translator between IPv6 and IPv4 has to do.
_translates: Final = partial(requires, flows=Flows(2), profiles=NAT64)


def _flow(examiner: Examiner) -> Flow:
    if examiner.prefix is None:
        raise NotApplicableError("the gateway does not translate between IPv6 and IPv4")
    return examiner.flow()


@_translates("UDP without a checksum gets one", (6146, "3.4-checksum", "MUST", "udp"))
def _examine_checksum(examiner: Examiner) -> Finding:
    ends = _flow(examiner).ends(up=False)
    packet = make_packet(*ends, UdpSegment(examiner.tag(), checksum=0))
    with examiner.network.damaged_too():
        frame = examiner.deliver(packet, up=False, note="without a checksum")
    if frame is None:
        return False, "UDP without a checksum was dropped"
    right = is_right(frame.packet)
    return right, f"UDP without a checksum arrived with a {'right' if right else 'wrong'} one"


@_translates("DF is set above 1260 octets, and not below", (7915, "5.1-DF", "MUST", "udp"))
def _examine_may_be_cut(examiner: Examiner) -> Finding:
    flow, bits = _flow(examiner), dict[int, bool]()
    for octets in _DF_SIZES:
        packet = flow.packet(secrets.token_bytes(octets - _HEADERS4), up=True)
        frame = examiner.deliver(packet, up=True, note=f"{octets} octets as IPv4")
        if frame is None:
            raise NotSeenError(f"UDP of {octets} octets did not arrive outside")
        bits[octets] = frame.packet.dont_fragment
    words = " and ".join(f"{octets} octets: DF={int(bit)}" for octets, bit in bits.items())
    return all(bit == (octets > _SMALL) for octets, bit in bits.items()), words


@_translates("the MTU of Packet Too Big is 20 octets larger", (7915, "4.2-MTU", "MUST", "udp"))
def _examine_mtu(examiner: Examiner) -> Finding:
    seen = send_error(examiner, _flow(examiner), "too big")
    if seen is None:
        return False, "Fragmentation Needed was dropped"
    words = f"Fragmentation Needed with MTU {MTU_IN_ERRORS} became Packet Too Big with MTU {seen.message.rest}"
    return seen.message.rest == MTU_IN_ERRORS + _LONGER, words


@_translates("IPv4 packets without DF are fragmented to 1280 octets", (7915, "4-1280", "SHOULD", "udp"))
def _examine_cut(examiner: Examiner) -> Finding:
    flow, note = _flow(examiner), f"{_LARGE} octets that may be fragmented"
    carried = carry(examiner, flow, _LARGE - _HEADERS4, up=False, note=note)
    if not carried.packets:
        return False, f"IPv4 of {_LARGE} octets without DF {carried}"
    sizes = [len(part.octets()) for part in carried.packets]
    words = f"IPv4 of {_LARGE} octets without DF became IPv6 of {', '.join(map(str, sizes))} octets"
    return max(sizes) <= _LEAST_MTU, words
