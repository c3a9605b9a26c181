# SPDX-License-Identifier: Apache-2.0
"""Fragments from outside and inside: RFC 4787 section 11."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import Flow, datagram
from natgauge.audits.kit.network import sides
from natgauge.audits.kit.packets import UDP, Packet
from natgauge.audits.kit.requirement import Finding, Requirement
from natgauge.words import Transport

_DATA_OCTETS: Final = 800
_FRAGMENT_OCTETS: Final = 400
#: Lone fragments that attack a gateway, which waits for the rest of each of them.
_LONE: Final = 1000
_HEADER_OCTETS: Final = 8


def _delivered(examiner: Examiner, flow: Flow, *, up: bool, backwards: bool = False) -> bool:
    """Whether a datagram arrives whole whose fragments are sent one by one; it may arrive in fragments, too."""
    sending, receiving = sides(up=up)
    target = flow.remote.own.address if up else flow.inside.address
    for _ in range(2):
        data, since = secrets.token_bytes(_DATA_OCTETS), examiner.mark
        parts = datagram(flow, data, up=up).cut(_FRAGMENT_OCTETS)
        for part in reversed(parts) if backwards else parts:
            examiner.network.send(sending, part)
        found = examiner.parts(
            receiving,
            since,
            lambda seen: seen.destination == target and _is_part(seen, data),  # noqa: B023 - called in this turn
        )
        ordered = sorted(found, key=lambda one: one.offset)
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


def _examine(examiner: Examiner, transport: Transport) -> Finding:
    seen = examiner.once(_orders, transport)
    words = "; ".join(f"{name}: {'delivered' if passed else 'dropped'}" for name, passed in seen.items())
    return all(seen.values()), words


def _examine_attack(examiner: Examiner, transport: Transport) -> Finding:
    if not examiner.once(_orders, transport)["from outside, in order"]:
        raise NotSeenError("the gateway delivers no fragments from outside at all")
    flow = examiner.flow(transport)
    packet = datagram(flow, bytes(_DATA_OCTETS), up=False)
    lone = [replace(packet, identification=number + 1).cut(_FRAGMENT_OCTETS)[1] for number in range(_LONE)]
    examiner.network.send("responder", lone[0], f"the first of {_LONE} lone fragments")
    with examiner.network.aside():
        for part in lone[1:]:
            examiner.network.send("responder", part)
    whole = examiner.passes(flow, up=False)
    cut = _delivered(examiner, flow, up=False)
    words = f"after {_LONE} lone fragments, a whole datagram {'passed' if whole else 'was dropped'}, and one in "
    return whole and cut, f"{words}fragments {'passed' if cut else 'was dropped'}"


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-14", "MUST", "fragments pass in order and out of order", ("udp",), _examine),
    Requirement(4787, "REQ-14a", "MUST", "lone fragments do not stop others", ("udp",), _examine_attack),
)
