# SPDX-License-Identifier: Apache-2.0
"""Bits of the frames that one unit of a rate has, on the wire and of IP packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from natgauge.analysis.unit_frames import UnitFrame, frames_of
from natgauge.ethernet import BETWEEN_FRAMES, FRAME_OVERHEAD
from natgauge.records.parameters import Parameters
from natgauge.words import Side

Way = Literal["one", "each", "busier"]
_SIDES: Final[tuple[Side, ...]] = get_args(Side)


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of the frames of one unit in its busier direction, on one link: on the wire, and of their IP packets alone.

    Attributes:
        wire: with FCS, preamble and the least gap between frames (RFC 5180 appendix A.1).
        way: "one" = all frames of a unit go one way; "each" = the other direction has as many bits; "busier" = fewer.
    """

    wire: float
    packets: float
    frames: float
    way: Way

    @property
    def frame_octets(self) -> float:
        """Mean octets with FCS of a frame."""
        return self.packets / self.frames / 8 + FRAME_OVERHEAD


def bits_of_unit(metric: str, parameters: Parameters) -> Bits | None:
    """Return the bits of one unit of a metric's value; None where it is no rate of frames with a known size.

    They are those on the Initiator's link, where its frames' octets are known, or else on the Responder's.
    """
    frames = frames_of(metric, parameters)
    side = next((side for side in _SIDES if frames and all(side in frame.octets for frame in frames)), None)
    if side is None:
        return None
    ways = [[frame for frame in frames if frame.sender == sender] for sender in _SIDES]
    busier, other = sorted((_octets(way, side) for way in ways), reverse=True)
    octets, number = busier
    way: Way = "each" if busier == other else "busier" if other[1] else "one"
    return Bits(8 * (octets + number * BETWEEN_FRAMES), 8 * (octets - number * FRAME_OVERHEAD), number, way)


def _octets(frames: Sequence[UnitFrame], side: Side) -> tuple[float, float]:
    """Octets with FCS of frames on a link, and their number."""
    return sum(frame.share * frame.octets[side] for frame in frames), sum(frame.share for frame in frames)
