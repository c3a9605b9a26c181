# SPDX-License-Identifier: Apache-2.0
"""Percentiles, and the distribution-free confidence interval of a median.

Two order statistics enclose the median: the number of values below the true median is binomial with p = 1/2, whatever
the distribution. The values must be independent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from natgauge.statistics.interval import CONFIDENCE, ConfidenceInterval, MedianEstimate


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank (RFC 2330 section 11.3): the smallest value x with F(x) >= percent / 100; no interpolation.

    There is a value at least; 0 < percent <= 100, decimal fractions exactly as written (99.9 is 999/1000).
    """
    if not values or not 0 < percent <= 100:
        raise ValueError(f"percentile {percent} of {len(values)} values: want 0 < percent <= 100 and values")
    # Exact: 0.07 * 100 is 7.000000000000001 in floating point, and its ceiling would be one rank too high.
    rank = math.ceil(_as_written(percent) * len(values) / 100)
    return sorted(values)[rank - 1]


@lru_cache
def _as_written(number: float) -> Fraction:
    return Fraction(str(number))


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> ConfidenceInterval | None:
    """The narrowest pair of order statistics k and n + 1 - k around the median that covers it with this confidence.

    With fewer than six values not even the extremes reach 95 %. Then the extremes are returned with their coverage.
    None for fewer than two values, which have no spread.
    """
    if len(values) < 2:
        return None
    rank = max(1, rank_of_end(len(values), 1 - confidence))
    ordered = sorted(values)
    return ConfidenceInterval(ordered[rank - 1], ordered[-rank], median_coverage(len(values), rank))


def median_estimate(values: Sequence[float], alpha: float) -> MedianEstimate | None:
    """The median and its confidence interval. None where the values are too few.

    `alpha` is the probability that the interval misses the median, at most.
    """
    number = len(values)
    rank = rank_of_end(number, alpha)
    if rank == 0:
        return None
    ordered = sorted(values)
    interval = ConfidenceInterval(ordered[rank - 1], ordered[number - rank], median_coverage(number, rank))
    return MedianEstimate(statistics.median(ordered), interval, number)


@lru_cache(maxsize=4096)
def rank_of_end(number: int, alpha: float) -> int:
    """The largest rank k for which the k-th smallest and the k-th largest of `number` values miss with `alpha` at most.

    0 where even the extremes miss the median more often.
    """
    # P(fewer than k of `number` fair coins show heads) <= alpha / 2, in integers: exact for any number of values.
    limit = int(alpha / 2 * 2**60) * 2**number
    total, term, below = 0, 1, 0
    while below < number:
        total += term << 60
        if total > limit:
            break
        below += 1
        term = term * (number - below + 1) // below
    return below


@lru_cache(maxsize=4096)
def median_coverage(number: int, rank: int) -> float:
    """Probability that the true median lies between order statistics `rank` and `number + 1 - rank`."""
    total, term = 0, 1
    for below in range(rank):
        total += term
        term = term * (number - below) // (below + 1)
    return float(1 - Fraction(2 * total, 2**number))
