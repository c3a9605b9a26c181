# SPDX-License-Identifier: Apache-2.0
"""Application level gateways are off: RFC 4787 section 7, RFC 5382 section 7.3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import along
from natgauge.audits.kit.packets import Packet, TcpSegment, UdpSegment, read_segment
from natgauge.audits.kit.requirement import Finding, Requirement
from natgauge.words import Transport

_SIP: Final = 5060


def _examine(examiner: Examiner, transport: Transport) -> Finding:
    """Send a SIP request whose addresses a gateway for SIP would rewrite."""
    flow = examiner.established(transport, examiner.endpoint(), examiner.remote(0, _SIP))
    own = flow.inside
    texts: list[bytes] = []

    def send(tag: bytes) -> None:
        texts.append(
            f"REGISTER sip:{flow.remote.own.address} SIP/2.0\r\n"
            f"Via: SIP/2.0/{transport.upper()} {own};branch=z9hG4bK{tag.hex()}\r\n"
            f"From: <sip:a@{own.address}>;tag=1\r\nTo: <sip:a@{own.address}>\r\nCall-ID: {tag.hex()}@{own.address}\r\n"
            f"CSeq: 1 REGISTER\r\nContact: <sip:a@{own}>\r\nContent-Length: 0\r\n\r\n".encode()
        )
        examiner.send(flow, along(flow, texts[-1], up=True), up=True, note="SIP REGISTER that names the inside address")

    arrival = examiner.delivered(send, "responder", lambda packet, _: _data(packet).startswith(b"REGISTER"))
    if arrival is None:
        raise NotSeenError("a SIP request did not arrive outside")
    met = _data(arrival.packet) in texts
    return met, f"a SIP request that names the inside address was {'unchanged' if met else 'rewritten'}"


def _data(packet: Packet) -> bytes:
    segment = read_segment(packet)
    return segment.data if isinstance(segment, UdpSegment | TcpSegment) else b""


_TEXT: Final = "application level gateways are off"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-10", "SHOULD", _TEXT, ("udp",), _examine),
    Requirement(5382, "REQ-6", "SHOULD", _TEXT, ("tcp",), _examine),
)
