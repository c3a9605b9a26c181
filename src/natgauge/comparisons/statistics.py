# SPDX-License-Identifier: Apache-2.0
"""When to look at what all blocks say, and what a look may err with."""

from __future__ import annotations

import math
from typing import Final

#: Between two looks there are so many times more rounds: looks are paid for with alpha.
LOOKS_APART: Final = 1.5


def alpha_of(look: int, alpha: float, *, last: bool = False) -> float:
    """What look number `look`, from 1, may err with, so that all looks together err with `alpha` at most.

    alpha / (k (k + 1)): these add up to alpha however many looks there are. Where no other can follow, for the time is
    over, which is known before the look, it has all that the ones before it left: alpha / k.
    """
    return alpha / look if last else alpha / (look * (look + 1))


def rounds_of(look: int, first: int) -> int:
    """After how many rounds look number `look`, from 1, is due: 3, 5, 8, 12 ... where the first comes after 3."""
    rounds = first
    for _ in range(look - 1):
        rounds = math.ceil(rounds * LOOKS_APART)
    return rounds
