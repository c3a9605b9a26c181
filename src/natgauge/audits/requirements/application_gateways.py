# SPDX-License-Identifier: Apache-2.0
"""Application level gateways are off: RFC 4787 section 7, RFC 5382 section 7.3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.observations import NotSeenError
from natgauge.audits.kit.packets import Packet, TcpSegment, UdpSegment
from natgauge.audits.kit.requirement import Finding, requires

_SIP: Final = 5060


@requires(
    "application level gateways are off",
    (4787, "REQ-10", "SHOULD", "udp"),
    (5382, "REQ-6", "SHOULD", "tcp"),
    flows=Flows(2),
)
def _examine(examiner: Examiner) -> Finding:
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
