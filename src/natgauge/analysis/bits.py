# SPDX-License-Identifier: Apache-2.0
"""Bits of the frames that one unit of a rate has, on the wire and of IP packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from natgauge.analysis.unit_frames import UnitFrame, frames_of
from natgauge.ethernet import BETWEEN_FRAMES, FRAME_OVERHEAD
from natgauge.records.parameters import Parameters
from natgauge.words import Side

_SIDES: Final[tuple[Side, ...]] = get_args(Side)


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of the frames of one unit in its busier direction, on one link.

    Attributes:
        side: the side whose link has them: that of the Initiator, where its frames' octets are known.
        wire: with FCS, preamble and the least gap between frames (RFC 5180 appendix A.1).
        packets: of the IP packets alone.
        frames: number of the frames.
    """

    side: Side
    wire: float
    packets: float
    frames: float


def bits_of_unit(metric: str, parameters: Parameters) -> Bits | None:
    """Return the bits of one unit of a metric's value; None where it is no rate of frames with a known size."""
    frames = frames_of(metric, parameters)
    side = next((side for side in _SIDES if frames and all(side in frame.octets for frame in frames)), None)
    if side is None:
        return None
    directions = [[frame for frame in frames if frame.sender == sender] for sender in _SIDES]
    return max((_sum(each, side) for each in directions), key=lambda bits: bits.wire)


def _sum(frames: list[UnitFrame], side: Side) -> Bits:
    octets = sum(frame.share * frame.octets[side] for frame in frames)
    number = sum(frame.share for frame in frames)
    return Bits(side, 8 * (octets + number * BETWEEN_FRAMES), 8 * (octets - number * FRAME_OVERHEAD), number)
