# SPDX-License-Identifier: Apache-2.0
"""Segments that leave with a private source address: RFC 1918 section 3.

A gateway that tracks TCP connections finds some segments invalid. Linux does not translate such a segment. It forwards
the segment as it is, unless a rule drops it (`ct state invalid drop`).
"""

from __future__ import annotations

import secrets
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Final, Literal

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, SequenceNumber, is_tcp
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import ACK, FIN, PSH, RST, SYN, Packet
from natgauge.audits.kit.requirement import Finding, requires
from natgauge.words import Address

_PRIVATE: Final = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
#: Farther away than any window with a usual scale factor.
_OUT_OF_WINDOW: Final = 1 << 29
_DATA: Final = b"of no connection"
#: State of a connection in the gateway.
_State = Literal["unknown", "open", "closed"]


def _segment(examiner: Examiner, state: _State, flags: int) -> tuple[Flow, Packet]:
    """Return a segment that does not belong to its connection, whose state in the gateway is this one."""
    if state == "unknown":
        up, down = (SequenceNumber(number, number) for number in (1 + secrets.randbelow(2**31) for _ in range(2)))
        inside, remote = examiner.endpoint(), examiner.remote()
        flow = Flow("tcp", inside, remote, examiner.written(remote), inside, up=up, down=down)
    else:
        flow = examiner.flow("tcp")
    if state == "closed":
        examiner.close(flow)
    back = 0 if state == "unknown" else -_OUT_OF_WINDOW
    return flow, flow.tcp(flags, up=True, back=back, data=_DATA if flags & PSH else b"")


def _examine(state: _State, flags: int, words: str, examiner: Examiner) -> Finding:
    outside = examiner.once(_outside)
    flow, packet = _segment(examiner, state, flags)
    frame = examiner.deliver(packet, up=True, wanted=lambda seen: is_tcp(seen, flow.remote, flags), note=words)
    if frame is None:
        return True, f"{words} was dropped"
    source = frame.packet.source
    leaks = source == flow.inside.address or (_is_private(source) and not _is_private(outside))
    return not leaks, f"{words} left from {frame.packet.sender}"


def _outside(examiner: Examiner) -> Address:
    """Return an address that the gateway translates to."""
    return examiner.flow("tcp").mapped.address


def _is_private(address: Address) -> bool:
    return isinstance(address, IPv4Address) and any(address in network for network in _PRIVATE)


#: Name, first part of the requirement, state of the connection, and flags of the segment.
_CASES: Final[tuple[tuple[str, str, _State, int], ...]] = (
    ("mid-stream", "data of an unknown connection", "unknown", PSH | ACK),
    ("ACK", "an ACK of an unknown connection", "unknown", ACK),
    ("SYN-ACK", "a SYN and ACK of an unknown connection", "unknown", SYN | ACK),
    ("FIN", "a FIN of an unknown (expired) connection", "unknown", FIN | ACK),
    ("RST", "a reset of an unknown connection", "unknown", RST),
    ("window", "data out of the window", "open", PSH | ACK),
    ("RST-window", "a reset with a wrong sequence number", "open", RST),
    ("TIME-WAIT", "a SYN for a closed connection", "closed", SYN),
)

for _name, _words, _state, _flags in _CASES:
    # RFC 1918 is older than RFC 2119; its word is "should not".
    requires(f"{_words} does not leave from a private address", (1918, f"3-{_name}", "SHOULD", "tcp"), flows=Flows(3))(
        partial(_examine, _state, _flags, _words)
    )
