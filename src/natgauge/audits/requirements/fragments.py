# SPDX-License-Identifier: Apache-2.0
"""Fragments from outside and inside: RFC 4787 section 11."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, Transport, datagram
from natgauge.audits.kit.packets import UDP, Packet
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged
from natgauge.audits.kit.undecided import NotSeenError
from natgauge.words import Side

_DATA_OCTETS: Final = 800
_FRAGMENT_OCTETS: Final = 400
#: Lone fragments that attack a gateway, which waits for the rest of each of them.
_LONE: Final = 1000
_HEADER_OCTETS: Final = 8


def _delivered(examiner: Examiner, flow: Flow, *, up: bool, backwards: bool = False) -> bool:
    """Whether a datagram arrives whole whose fragments are sent one by one; it may arrive in fragments, too."""
    source, destination = flow.ends(up=up)
    sending: Side = "initiator" if up else "responder"
    receiving: Side = "responder" if up else "initiator"
    target = flow.remote.own.address if up else flow.inside.address
    for _ in range(2):
        data, since = secrets.token_bytes(_DATA_OCTETS), examiner.mark
        parts = datagram(flow, data, up=up).cut(_FRAGMENT_OCTETS)
        for part in reversed(parts) if backwards else parts:
            place = f"octets {part.offset} to {part.offset + len(part.payload) - 1}"
            examiner.network.send(sending, part, f"a fragment from {source} to {destination}: {place}")
        found = examiner.parts(
            receiving,
            since,
            lambda seen: seen.destination == target and _is_part(seen, data),  # noqa: B023 - called in this turn
            "the gateway delivers this part",
        )
        ordered = sorted((arrival.packet for arrival in found), key=lambda one: one.offset)
        if b"".join(one.payload for one in ordered)[_HEADER_OCTETS:] == data:
            return True
    return False


def _is_part(packet: Packet, data: bytes) -> bool:
    payload = packet.payload if packet.offset else packet.payload[_HEADER_OCTETS:]
    return packet.protocol == UDP and payload in data


def _orders(examiner: Examiner, transport: Transport) -> dict[str, bool]:
    """Return by direction and order whether a fragmented datagram arrives."""
    flow = examiner.flow(transport)
    return {
        f"{direction}, {order}": _delivered(
            examiner, flow, up=direction == "from inside", backwards=order == "out of order"
        )
        for direction in ("from inside", "from outside")
        for order in ("in order", "out of order")
    }


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(_orders, transport)
    words = "; ".join(f"{name}: {'delivered' if passed else 'dropped'}" for name, passed in seen.items())
    return judged(all(seen.values()), words)


def _examine_attack(examiner: Examiner, transport: Transport) -> RequirementFinding:
    if not examiner.once(_orders, transport)["from outside, in order"]:
        raise NotSeenError("the gateway delivers no fragments from outside at all")
    flow = examiner.flow(transport)
    packet = datagram(flow, bytes(_DATA_OCTETS), up=False)
    for number in range(_LONE):
        lone = replace(packet, identification=number + 1).cut(_FRAGMENT_OCTETS)[1]
        examiner.network.send("responder", lone, "" if number else f"the first of {_LONE} lone fragments")
    whole = examiner.passes(flow, up=False, name="S1")
    cut = _delivered(examiner, flow, up=False)
    words = f"after {_LONE} lone fragments, a whole datagram {'passed' if whole else 'was dropped'}, and one in "
    return judged(whole and cut, f"{words}fragments {'passed' if cut else 'was dropped'}")


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-14", "MUST", "fragments pass in order and out of order", ("udp",), _examine),
    Requirement(4787, "REQ-14a", "MUST", "lone fragments do not stop others", ("udp",), _examine_attack),
)
