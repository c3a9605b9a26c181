# SPDX-License-Identifier: Apache-2.0
"""Interim analyses: after which rounds intervals are computed, and how much of alpha each analysis may spend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

#: From one analysis to the next the number of rounds grows by this factor.
ROUNDS_GROW: Final = 1.5
#: No comparison has as many analyses, because the rounds would be more than 10 million.
_MOST_ANALYSES: Final = 40


def alpha_spent(analysis: int, alpha: float, *, last: bool = False) -> float:
    """Alpha of analysis number `analysis`, from 1: all analyses together err with probability `alpha` at most.

    It is alpha / (k (k + 1)). These shares add up to alpha however many analyses there are. The last one may spend all
    that the analyses before it left, alpha / k, because the time is over, which is known before the analysis.
    """
    return alpha / analysis if last else alpha / (analysis * (analysis + 1))


def possible_alphas(alpha: float) -> Iterator[float]:
    """Yield what each analysis may have spent, for readers who do not know which one it was: first alpha itself."""
    for analysis in range(1, _MOST_ANALYSES):
        yield from (alpha_spent(analysis, alpha, last=last) for last in (True, False))


def rounds_before(analysis: int, first: int) -> int:
    """Number of rounds before analysis number `analysis`, from 1: 3, 5, 8, 12 ... where the first is after 3."""
    rounds = first
    for _ in range(analysis - 1):
        rounds = math.ceil(rounds * ROUNDS_GROW)
    return rounds
