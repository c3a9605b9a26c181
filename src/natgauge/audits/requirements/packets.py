# SPDX-License-Identifier: Apache-2.0
"""What becomes of packets: fragments, translation between IPv6 and IPv4, and application level gateways.

RFC 4787 sections 7 and 11, RFC 5382 section 7.3, RFC 6146 section 3.4, RFC 7857 section 10 (RFC 6864 sections 4 and
5.3.1), RFC 7915 sections 4 and 5.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import partial
from typing import Final

from natgauge.audits.kit.datagrams import MTU_IN_ERRORS, Carried, carry, send_error
from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError, compete
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Flow, Packet, TcpSegment, UdpSegment, is_right, make_packet
from natgauge.audits.requirements import NAT64, Finding, requires

_DATA_OCTETS: Final = 800
_FRAGMENT_OCTETS: Final = 400
#: Octets of the data of datagrams, and of their fragments: of half a packet, and as large as a link takes them.
_SIZES: Final = ((_DATA_OCTETS, _FRAGMENT_OCTETS), (2800, 1400))
#: Lone fragments that attack a gateway, which waits for the rest of each of them.
_LONE: Final = 1000
_NUMBER: Final = 4660


def _orders(examiner: Examiner) -> dict[str, Carried]:
    """Return by size, direction and order what happens to a fragmented datagram, which may arrive whole.

    The larger one goes between other hosts. It is left out where the gateway dropped a smaller one.
    """
    seen: dict[str, Carried] = {}
    for turn, (octets, cut) in enumerate(_SIZES):
        flow = examiner.flow(turn=turn)
        for direction, up in (("from inside", True), ("from outside", False)):
            for order, backwards in (("in order", False), ("out of order", True)):
                carried = carry(examiner, flow, octets, up=up, cut=cut, backwards=backwards)
                seen[f"{octets} octets {direction}, {order}"] = carried
        if not all(carried.packets for carried in seen.values()):
            break
    return seen


@requires("fragments pass in order and out of order", (4787, "REQ-14", "MUST", "udp"), flows=Flows(2))
def _examine_fragments(examiner: Examiner) -> Finding:
    seen = examiner.once(_orders)
    words = "; ".join(f"{name}: a datagram {carried}" for name, carried in seen.items())
    return all(carried.packets for carried in seen.values()), words


@requires("lone fragments do not stop others", (4787, "REQ-14a", "MUST", "udp"), flows=Flows(3))
def _examine_lone_fragments(examiner: Examiner) -> Finding:
    # Lone fragments of an examination before can be there still, so what was delivered once is enough.
    order = f"{_DATA_OCTETS} octets from outside, in order"
    if not (examiner.fragments_entered or examiner.once(_orders)[order].packets):
        raise NotSeenError("the gateway delivers no fragments from outside at all")
    flow = examiner.flow()
    packet = flow.datagram(bytes(_DATA_OCTETS), up=False)
    second = packet.cut(_FRAGMENT_OCTETS)[1]
    lone = [replace(second, identification=number + 1) for number in range(_LONE)]
    examiner.send(lone[0], up=False, note=f"the first of {_LONE} lone fragments")
    with examiner.network.aside():
        for part in lone[1:]:
            examiner.send(part, up=False)
    whole = examiner.passes(flow, up=False)
    cut = carry(examiner, flow, _DATA_OCTETS, up=False, cut=_FRAGMENT_OCTETS)
    words = f"after {_LONE} lone fragments, a whole datagram was {'delivered' if whole else 'dropped'}"
    return whole and bool(cut.packets), f"{words}, and one in fragments {cut}"


@requires("no two hosts have one IP identification outside", (7857, "10", "SHOULD", "udp"), flows=Flows(2))
def _examine_identification(examiner: Examiner) -> Finding:
    """Let two inside hosts send to one outside host with one identification, while both packets may be under way."""
    remote, seen = examiner.remote(), list[Packet]()
    if examiner.written(remote).address.version != 4:
        raise NotApplicableError("the inside uses IPv6, whose packets have no identification")
    flow = examiner.open(examiner.endpoint(), remote)
    for one in (flow, compete(examiner, flow, remote)):
        packet = replace(one.packet(examiner.tag(), up=True), identification=_NUMBER)
        note = f"with the identification {_NUMBER} and without DF"
        frame = examiner.deliver(packet, up=True, note=note)
        if frame is None:
            raise NotSeenError("a packet that may be fragmented was dropped, which shows no identification")
        seen.append(frame.packet)
    if all(packet.dont_fragment for packet in seen):
        raise NotApplicableError("the gateway sets DF, and packets with DF need no identification of their own")
    numbers = [packet.identification for packet in seen]
    words = f"two inside hosts with one identification had {numbers[0]} and {numbers[1]} outside"
    return numbers[0] != numbers[1], words


#: IPv6 links pass packets of this size without fragmentation (RFC 8200 section 5).
_LEAST_MTU: Final = 1280
#: Up to this size of the IPv4 packet, a translator lets it be fragmented (RFC 7915 section 5.1).
_SMALL: Final = 1260
_HEADERS4: Final = 28
_LARGE: Final = 1400
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
def _examine_df(examiner: Examiner) -> Finding:
    flow, bits = _flow(examiner), dict[int, bool]()
    # Both sides of the border, and far above it.
    for octets in (_SMALL, _SMALL + 1, _LARGE):
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
def _examine_translated_size(examiner: Examiner) -> Finding:
    flow, note = _flow(examiner), f"{_LARGE} octets that may be fragmented"
    carried = carry(examiner, flow, _LARGE - _HEADERS4, up=False, note=note)
    if not carried.packets:
        return False, f"IPv4 of {_LARGE} octets without DF {carried}"
    sizes = [len(part.octets()) for part in carried.packets]
    words = f"IPv4 of {_LARGE} octets without DF became IPv6 of {', '.join(map(str, sizes))} octets"
    return max(sizes) <= _LEAST_MTU, words


_SIP: Final = 5060


@requires(
    "application level gateways are off",
    (4787, "REQ-10", "SHOULD", "udp"),
    (5382, "REQ-6", "SHOULD", "tcp"),
    flows=Flows(2),
)
def _examine_application_gateway(examiner: Examiner) -> Finding:
    """Send a SIP request whose addresses a gateway for SIP would rewrite."""
    flow = examiner.established(examiner.endpoint(), examiner.remote(0, _SIP))
    own, call = flow.inside, examiner.tag().hex()
    text = (
        f"REGISTER sip:{flow.remote.address} SIP/2.0\r\n"
        f"Via: SIP/2.0/{examiner.transport.upper()} {own};branch=z9hG4bK{call}\r\n"
        f"From: <sip:a@{own.address}>;tag=1\r\nTo: <sip:a@{own.address}>\r\nCall-ID: {call}@{own.address}\r\n"
        f"CSeq: 1 REGISTER\r\nContact: <sip:a@{own}>\r\nContent-Length: 0\r\n\r\n"
    ).encode()
    frame = examiner.deliver(
        flow.packet(text, up=True),
        up=True,
        wanted=lambda packet: _data(packet).startswith(b"REGISTER"),
        note="SIP REGISTER that names the inside address",
    )
    if frame is None:
        raise NotSeenError("a SIP request did not arrive outside")
    met = _data(frame.packet) == text
    return met, f"a SIP request that names the inside address was {'unchanged' if met else 'rewritten'}"


def _data(packet: Packet) -> bytes:
    segment = packet.segment
    return segment.data if isinstance(segment, UdpSegment | TcpSegment) else b""
