# SPDX-License-Identifier: Apache-2.0
"""Two samples, or two ratios: Moses' interval of a shift, which belongs to the Hodges-Lehmann estimator; and MOVER.

Of all pairs of a value of one sample with a value of the other, the interval reaches from the k-th smallest to the k-th
largest difference (or ratio). The Mann-Whitney statistic counts the pairs below the true shift, so its exact
distribution gives k. Values must be independent, and spread alike in both samples apart from the shift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from natgauge.statistics.interval import CONFIDENCE, ConfidenceInterval, MedianEstimate
from natgauge.statistics.orders import falling_pairs


def moses_interval(
    lowest: Sequence[float], highest: Sequence[float], first: int, second: int, confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """The confidence interval of the shift between two samples.

    Args:
        lowest: lower bound of each pair's difference (or ratio), in any order.
        first: size of one sample, at least 1.
        second: size of the other sample, at least 1.
        confidence: coverage that is aimed at; the interval has less where the samples are too small.
    """
    rank = 1
    while 2 * (rank + 1) <= len(lowest) + 1 and shift_coverage(first, second, rank + 1) >= confidence:
        rank += 1
    return ConfidenceInterval(sorted(lowest)[rank - 1], sorted(highest)[-rank], shift_coverage(first, second, rank))


def shift_coverage(first: int, second: int, rank: int) -> float:
    """Probability that the true shift lies between the `rank`-th smallest and the `rank`-th largest pair, from 1."""
    # The Mann-Whitney statistic counts the pairs that fall where the values of each sample are alike.
    counts = falling_pairs((second, first))
    return max(0.0, 1 - 2 * sum(counts[:rank]) / math.comb(first + second, first))


def ratio_of(first: MedianEstimate, second: MedianEstimate) -> MedianEstimate:
    """Return the second ratio / the first one, with a confidence interval made of their intervals.

    MOVER, the method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008), on a logarithmic
    scale. Each end of an interval says how uncertain its estimate is in that direction, and independent uncertainties
    add up as squares. Nothing else of the estimates is needed, so the intervals may be of any kind, also those that
    interim analyses have widened. Two intervals of normal distributions make the exact interval of their difference.

    Args:
        first: a ratio above 0, whose interval has ends above 0 and below infinity.

    Returns:
        The ratio, with an interval whose coverage is the lower one of both, and the smaller number of values.
    """
    mine, its = _logs(first), _logs(second)
    value = its[1] - mine[1]
    low = value - math.hypot(its[1] - its[0], mine[2] - mine[1])
    high = value + math.hypot(its[2] - its[1], mine[1] - mine[0])
    coverage = min(first.interval.coverage, second.interval.coverage)
    interval = ConfidenceInterval(math.exp(low), math.exp(high), coverage)
    return MedianEstimate(math.exp(value), interval, min(first.number, second.number))


def _logs(median: MedianEstimate) -> tuple[float, float, float]:
    """Logarithms of the lower end, the value and the upper end."""
    return math.log(median.lower), math.log(median.value), math.log(median.upper)
