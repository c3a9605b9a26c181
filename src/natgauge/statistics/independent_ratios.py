# SPDX-License-Identifier: Apache-2.0
"""The ratio of two independently estimated ratios, with a confidence interval made of their intervals.

MOVER, the method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008), on a logarithmic
scale. Each end of an interval says how uncertain its estimate is in that direction, and independent uncertainties add
up as squares. Nothing else of the estimates is needed, so the intervals may be of any kind, also those that interim
analyses have widened. Two intervals of normal distributions make the exact interval of their difference.
"""

from __future__ import annotations

import math

from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate


def ratio_of(first: MedianEstimate, second: MedianEstimate) -> MedianEstimate:
    """Return the second ratio / the first one.

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
