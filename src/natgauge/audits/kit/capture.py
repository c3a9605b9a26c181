# SPDX-License-Identifier: Apache-2.0
"""Frames that an audit sent or received, their sentences, and the capture of those that decided a verdict."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from natgauge.audits.kit.flows import described
from natgauge.audits.kit.packets import Packet
from natgauge.words import Side

#: Blocks, options and directions of the pcapng format (draft-ietf-opsawg-pcapng).
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_COMMENT, _NAME, _FLAGS = 1, 2, 2
_INBOUND, _OUTBOUND = 1, 2
_ETHERNET: Final = 1
#: Interfaces of the capture, in order.
_INTERFACES: Final[tuple[Side, ...]] = ("initiator", "responder")


@dataclass(slots=True)
class CapturedFrame:
    """One IP frame that was sent or received.

    Attributes:
        before, behind: what its sentence says before and behind the packet; both empty = the frame decided nothing.
    """

    side: Side
    seconds: float
    octets: bytes
    packet: Packet
    sent: bool
    before: str = ""
    behind: str = ""
    damaged: bool = False

    @property
    def is_told(self) -> bool:
        """Whether it has a sentence."""
        return bool(self.before or self.behind)

    @property
    def sentence(self) -> str:
        """What the frame is, for people, made only where it is read: of most frames nobody does."""
        return f"{self.before}{described(self.packet)}{self.behind}" if self.is_told else ""


#: In place of a frame that no verdict needs any more.
FORGOTTEN: Final = CapturedFrame("initiator", 0.0, b"", Packet(IPv4Address(0), IPv4Address(0), 0, b""), sent=True)


def pcapng(frames: Iterable[CapturedFrame]) -> bytes:
    """Return a capture of these frames; interface 0 is the Initiator's port, interface 1 the Responder's."""
    blocks = [_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for side in _INTERFACES:
        options = _option(_NAME, side.encode()) + _option(0, b"")
        blocks.append(_block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + options))
    for frame in frames:
        microseconds = int(frame.seconds * 1e6)
        size = len(frame.octets)
        head = struct.pack(
            "<IIIII", _INTERFACES.index(frame.side), microseconds >> 32, microseconds & 0xFFFFFFFF, size, size
        )
        options = _option(_COMMENT, frame.sentence.encode()) if frame.sentence else b""
        options += _option(_FLAGS, struct.pack("<I", _OUTBOUND if frame.sent else _INBOUND)) + _option(0, b"")
        blocks.append(_block(_PACKET, head + _padded(frame.octets) + options))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(octets: bytes) -> bytes:
    return octets + b"\0" * (-len(octets) % 4)
