# SPDX-License-Identifier: Apache-2.0
"""Difference of two samples: Moses' confidence interval, which belongs to the Hodges-Lehmann estimator.

Of all pairs of a value of one sample with a value of the other, the interval reaches from the k-th smallest to the k-th
largest difference (or ratio). The Mann-Whitney statistic counts the pairs below the true shift, so its exact
distribution gives k. Values must be independent, and spread alike in both samples apart from the shift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from natgauge.statistics.interval import CONFIDENCE, ConfidenceInterval
from natgauge.statistics.polynomials import divided, multiplied


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
    """Probability that the true shift lies between the `rank`-th smallest and the `rank`-th largest pair.

    Args:
        rank: from 1.
    """
    counts = mann_whitney_counts(first, second)
    return max(0.0, 1 - 2 * sum(counts[:rank]) / math.comb(first + second, first))


@cache
def mann_whitney_counts(first: int, second: int) -> tuple[int, ...]:
    """Number of orders of two samples with each value of the Mann-Whitney statistic, 0 to first * second.

    The counts are the coefficients of the Gaussian binomial, which is built factor by factor.
    """
    counts = [1]
    for step in range(1, first + 1):
        counts = divided(multiplied(counts, second + step), step)
    return tuple(counts)
