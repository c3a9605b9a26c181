# SPDX-License-Identifier: Apache-2.0
"""Segments that leave with a private source address: RFC 1918 section 3.

A gateway that tracks TCP connections finds some segments invalid. Linux does not translate such a segment. It forwards
the segment as it is, unless a rule drops it (`ct state invalid drop`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, SequenceNumber, Transport, destination_of, numbered, source_of
from natgauge.audits.kit.packets import ACK, FIN, PSH, RST, SYN, Packet, TcpSegment, read_segment
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets
from natgauge.words import Address

_PRIVATE: Final = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
#: Farther away than any window with a usual scale factor.
_OUT_OF_WINDOW: Final = 1 << 29


def _unknown(examiner: Examiner, flags: int) -> tuple[Flow, TcpSegment]:
    """Return a segment of a connection that the gateway does not know."""
    inside, remote = examiner.endpoint(), examiner.remote()
    up, down = (SequenceNumber(number, number) for number in (1 + secrets.randbelow(2**31) for _ in range(2)))
    flow = Flow("tcp", inside, remote, inside, up=up, down=down)
    return flow, numbered(flow, flags, up=True, data=b"mid-stream" if flags & PSH else b"")


def _out_of_window(examiner: Examiner, flags: int) -> tuple[Flow, TcpSegment]:
    """Return a segment of an open connection whose sequence number the receiver does not expect."""
    flow = examiner.flow("tcp")
    return flow, numbered(flow, flags, up=True, back=-_OUT_OF_WINDOW, data=b"too early" if flags & PSH else b"")


def _on_time_wait(examiner: Examiner, flags: int) -> tuple[Flow, TcpSegment]:
    """Return a segment of a connection that both ends have closed."""
    flow = examiner.flow("tcp")
    examiner.close(flow, named=True)
    return flow, TcpSegment(flow.inside.port, flow.remote.written.port, flags, flow.up.written + _OUT_OF_WINDOW)


def _examine(
    examiner: Examiner,
    _transport: Transport,
    *,
    case: Callable[[Examiner, int], tuple[Flow, TcpSegment]],
    flags: int,
    words: str,
) -> RequirementFinding:
    outside = examiner.once(_outside)
    flow, segment = case(examiner, flags)

    def wanted(packet: Packet, _tag: bytes) -> bool:
        seen = read_segment(packet)
        return isinstance(seen, TcpSegment) and seen.flags == flags and destination_of(packet) == flow.remote.own

    arrival = examiner.delivered(
        lambda _tag: examiner.send(flow, segment, up=True, name=words), "responder", wanted, "the gateway forwards it"
    )
    if arrival is None:
        return meets(f"{words} was dropped")
    source = arrival.packet.source
    leaks = source == flow.inside.address or (_is_private(source) and not _is_private(outside))
    return (fails if leaks else meets)(f"{words} left from {source_of(arrival.packet)}")


def _outside(examiner: Examiner) -> Address:
    """Return an address that the gateway translates to."""
    return examiner.flow("tcp").mapped.address


def _is_private(address: Address) -> bool:
    return isinstance(address, IPv4Address) and any(address in network for network in _PRIVATE)


#: Name, first part of the requirement, case, and flags of the segment.
_CASES: Final = (
    ("mid-stream", "data of an unknown connection", _unknown, PSH | ACK),
    ("ACK", "an ACK of an unknown connection", _unknown, ACK),
    ("SYN-ACK", "a SYN and ACK of an unknown connection", _unknown, SYN | ACK),
    ("FIN", "a FIN of an unknown (expired) connection", _unknown, FIN | ACK),
    ("RST", "a reset of an unknown connection", _unknown, RST),
    ("window", "data out of the window", _out_of_window, PSH | ACK),
    ("RST-window", "a reset with a wrong sequence number", _out_of_window, RST),
    ("TIME-WAIT", "a SYN for a closed connection", _on_time_wait, SYN),
)

# RFC 1918 is older than RFC 2119; its word is "should not".
REQUIREMENTS: Final = tuple(
    Requirement(
        1918,
        f"3-{name}",
        "SHOULD",
        f"{words} does not leave from a private address",
        ("tcp",),
        partial(_examine, case=case, flags=flags, words=words),
    )
    for name, words, case, flags in _CASES
)
