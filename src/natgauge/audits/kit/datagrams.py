# SPDX-License-Identifier: Apache-2.0
"""Large datagrams of an audit: sent whole or in fragments, and put together where they arrive."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Final

from natgauge.audits.kit.capture import CapturedFrame
from natgauge.audits.kit.examiner import SETTLE_SECONDS, TRIES, Examiner
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.network import sides
from natgauge.audits.kit.packets import UDP, Packet, is_right

_UDP_HEADER_OCTETS: Final = 8


@dataclass(frozen=True, slots=True)
class Carried:
    """How a datagram went through a gateway.

    Attributes:
        packets: packets in which it arrived as it was sent, in their order; empty = it did not.
    """

    packets: tuple[Packet, ...] = ()
    is_changed: bool = False

    def __str__(self) -> str:
        """What happened to it, as the end of a sentence."""
        return "was delivered" if self.packets else "arrived with other data" if self.is_changed else "was dropped"


def carry(  # noqa: PLR0913 - one datagram, each property by its name
    examiner: Examiner, flow: Flow, octets: int, *, up: bool, cut: int = 0, backwards: bool = False, note: str = ""
) -> Carried:
    """Send a UDP datagram over a flow, several times if it does not arrive as it was sent.

    Args:
        octets: octets of its data.
        cut: octets of the fragments in which it is sent; 0 = it is sent whole, and may be fragmented.
    """
    end, is_changed, network = flow.remote if up else flow.inside, False, examiner.network
    for _ in range(TRIES):
        data, since = secrets.token_bytes(octets), examiner.mark
        whole = flow.datagram(data, up=up)
        parts = whole.cut(cut) if cut else (whole,)
        for part in reversed(parts) if backwards else parts:
            examiner.send(part, up=up, note=note)
        examiner.control()
        network.pause(network.now() + SETTLE_SECONDS)
        frames = []
        for frame in network.arrived(since, sides(up=up)[1]):
            # Only the first fragment has the ports. Another flow, such as that of control frames, may have this end.
            is_own = frame.packet.receiver in (end, None) and (not up or frame.packet.sender in (flow.mapped, None))
            if _data(frame.packet) and is_own:
                network.received(frame)
                frames.append(frame)
        arrived = b"".join(_data(frame.packet) for frame in _ordered(frames))
        if arrived == data and not _whole_is_right(frames):
            for frame in frames:
                network.damage(frame)
        elif arrived == data:
            examiner.fragments_entered |= bool(cut) and not up
            return Carried(tuple(frame.packet for frame in frames))
        is_changed |= arrived != data and len(arrived) == len(data)
    return Carried(is_changed=is_changed)


def _ordered(frames: list[CapturedFrame]) -> list[CapturedFrame]:
    return sorted(frames, key=lambda frame: frame.packet.offset)


def _whole_is_right(frames: list[CapturedFrame]) -> bool:
    """Whether the checksum of a datagram is right that arrived in fragments; that of a whole one was looked at."""
    packets = [frame.packet for frame in _ordered(frames)]
    if not packets[0].is_fragment:
        return True
    payload = b"".join(packet.payload for packet in packets)
    return is_right(replace(packets[0], payload=payload, more_fragments=False))


def _data(packet: Packet) -> bytes:
    """Return the data of a UDP datagram that are in one of its fragments; empty where a packet is none."""
    payload = packet.payload if packet.offset else packet.payload[_UDP_HEADER_OCTETS:]
    return payload if packet.protocol == UDP else b""
