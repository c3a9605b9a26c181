# SPDX-License-Identifier: Apache-2.0
"""Medians of paired ratios, and intervals that assume no distribution.

What devices took in one block of slices, within some milliseconds, is set against each other: the ratio is free of the
host's speed in that block. The interval of the median is made of order statistics: it holds the median unless too many
of the blocks lie on one side of it, which is a matter of coins (binomial, 1/2) whatever the distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Blocks of a round whose median says something.
_LEAST_OF_A_ROUND: Final = 8


@dataclass(frozen=True, slots=True)
class Interval:
    """A median of ratios, with the ends of its interval; `blocks` is how many ratios it is the median of."""

    ratio: float
    low: float
    high: float
    blocks: int

    @property
    def half_width(self) -> float:
        """Of the interval, as a share of the dearer one's work: 0.01 = 1 % of that either way."""
        return (self.high - self.low) / 2 / max(1.0, self.ratio)


def ratio(here: float, baseline: float, tester: float, baseline_tester: float) -> float | None:
    """Ratio of two devices' work in a block, 0 to infinity; None where neither shows above the tester's own."""
    device, other = here - tester, baseline - baseline_tester
    if other <= 0:
        return math.inf if device > 0 else None
    return max(device, 0.0) / other


def interval(values: Sequence[float], alpha: float) -> Interval | None:
    """Median and its two-sided interval, which errs with `alpha` at most; None where the values are too few."""
    ordered = sorted(values)
    number = len(ordered)
    outside = _outside(number, alpha)
    if outside == 0:
        return None
    middle = (ordered[(number - 1) // 2] + ordered[number // 2]) / 2
    return Interval(middle, ordered[outside - 1], ordered[number - outside], number)


def over_rounds(rounds: Sequence[Sequence[float]], alpha: float) -> Interval | None:
    """Of the median of all rounds' ratios, wider where rounds disagree or are few.

    None where the ratios are too few, or all of one round, which cannot show what other rounds share.
    """
    if sum(map(bool, rounds)) < 2:
        return None
    found = interval([value for one in rounds for value in one], alpha)
    return None if found is None else stretched(found, disagreement(rounds))


def disagreement(rounds: Sequence[Sequence[float]]) -> float:
    """How many times wider an interval must be, for medians of rounds lie farther apart than their blocks explain.

    Blocks of a round share more than the device: where its entries came to lie in memory, for one. The root of the
    medians' variance over the one to be expected of blocks drawn alike, and more where the rounds are few: those tell
    their own variance badly, and often too small.

    Args:
        rounds: ratios of each; two at least have some.
    """
    number = sum(map(bool, rounds))
    few = math.sqrt((number + 1) / (number - 1))
    logs = [[math.log(value) for value in one if 0 < value < math.inf] for one in rounds]
    logs = [one for one in logs if len(one) >= _LEAST_OF_A_ROUND]
    if len(logs) < 2:
        return few
    # Of all ratios together, so that rounds far apart are not counted twice: the interval reaches over these already.
    expected = len(logs) * _variance_of_median(sorted(value for one in logs for value in one))
    seen = statistics.variance(statistics.median(one) for one in logs)
    return math.sqrt(seen / expected) * few if 0 < expected < seen else few


def _variance_of_median(ordered: Sequence[float]) -> float:
    """Of the median of so many values, from how near its neighbours are: tails and humps elsewhere say nothing of it.

    As many of the values lie below their median's true place as of fair coins show heads: half of them, with a standard
    deviation of half of their number's root. Twice that to either side are four standard deviations of the median.
    """
    number = len(ordered)
    aside = math.sqrt(number)
    low, high = (ordered[round((number - 1) / 2 + side * aside)] for side in (-1, 1))
    return ((high - low) / 4) ** 2


def stretched(found: Interval, factor: float) -> Interval:
    """The interval, so many times as wide on either side of its ratio; 0 and infinity stay what they are."""
    if not 0 < found.ratio < math.inf:
        return found
    low, high = ((end / found.ratio) ** factor * found.ratio for end in (found.low, found.high))
    return Interval(found.ratio, low, high, found.blocks)


@lru_cache(maxsize=4096)
def _outside(number: int, alpha: float) -> int:
    """The largest k for which fewer than k of so many fair coins show heads with a chance of alpha / 2 at most."""
    limit = int(alpha / 2 * 2**60) * 2**number
    total, term, below = 0, 1, 0
    while below < number:
        total += term << 60
        if total > limit:
            break
        below += 1
        term = term * (number - below + 1) // below
    return below
