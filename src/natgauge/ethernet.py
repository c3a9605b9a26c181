# SPDX-License-Identifier: Apache-2.0
"""The frames that a link of Ethernet carries at most."""

from __future__ import annotations

from typing import Final

#: Preamble and gap between frames, in octets (RFC 5180 appendix A.1).
BETWEEN_FRAMES: Final = 20


def theoretical_maximum(megabits: int, octets: int) -> float:
    """Frames/s of one direction at the minimum gap (RFC 5180 appendix A.1).

    Args:
        megabits: speed of the link, Mbit/s.
        octets: frame size with FCS.
    """
    return megabits * 1e6 / (8 * (octets + BETWEEN_FRAMES))
