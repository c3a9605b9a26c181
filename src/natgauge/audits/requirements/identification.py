# SPDX-License-Identifier: Apache-2.0
"""Identification of IPv4 packets that may be fragmented: RFC 7857 section 10, RFC 6864 sections 4 and 5.3.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Endpoint, simple_segment
from natgauge.audits.kit.packets import Packet, make_packet
from natgauge.audits.kit.requirement import Finding, NotApplicableError, Requirement
from natgauge.words import Transport

_NUMBER: Final = 4660


def _examine(examiner: Examiner, transport: Transport) -> Finding:
    """Let two inside hosts send to one outside host with one identification, while both packets may be under way."""
    remote, seen = examiner.remote(), list[Packet]()
    if remote.written.address.version != 4:
        raise NotApplicableError("the inside uses IPv6, whose packets have no identification")
    for index in range(2):
        source = Endpoint(examiner.host(index), examiner.endpoint().port)

        def send(tag: bytes, source: Endpoint = source) -> None:
            segment = simple_segment(transport, source, remote.own, tag, up=True)
            packet = replace(make_packet(source.address, remote.own.address, segment), identification=_NUMBER)
            examiner.network.send("initiator", packet, f"with the identification {_NUMBER} and without DF")

        arrival = examiner.delivered(send, "responder")
        if arrival is None:
            return False, "a packet that may be fragmented was dropped"
        seen.append(arrival.packet)
    if all(packet.dont_fragment for packet in seen):
        raise NotApplicableError("the gateway sets DF, and packets with DF need no identification of their own")
    numbers = [packet.identification for packet in seen]
    words = f"two inside hosts with one identification had {numbers[0]} and {numbers[1]} outside"
    return numbers[0] != numbers[1], words


REQUIREMENTS: Final = (
    Requirement(7857, "10", "SHOULD", "no two hosts have one IP identification outside", ("udp",), _examine),
)
