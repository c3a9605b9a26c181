# SPDX-License-Identifier: Apache-2.0
"""Fragments and their identification: RFC 4787 section 11, RFC 7857 section 10 (RFC 6864 sections 4 and 5.3.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.datagrams import Carried, carry
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.kit.packets import Packet
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.audits.kit.rivals import compete

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
def _examine(examiner: Examiner) -> Finding:
    seen = examiner.once(_orders)
    words = "; ".join(f"{name}: a datagram {carried}" for name, carried in seen.items())
    return all(carried.packets for carried in seen.values()), words


@requires("lone fragments do not stop others", (4787, "REQ-14a", "MUST", "udp"), flows=Flows(3))
def _examine_attack(examiner: Examiner) -> Finding:
    # Lone fragments of an examination before can be there still, so what was delivered once is enough.
    if not (
        examiner.fragments_entered or examiner.once(_orders)[f"{_DATA_OCTETS} octets from outside, in order"].packets
    ):
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
