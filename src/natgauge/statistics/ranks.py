# SPDX-License-Identifier: Apache-2.0
"""Exact tests by ranks: the trend of values in the order they were measured, and the shift between two samples.

Both count pairs of values. Their exact distributions are Gaussian multinomial coefficients: the numbers of orders of a
sample with 0, 1, 2 ... falling pairs.

Mann (1945) and Kendall (1975) count how many pairs of values rise and how many fall. Without a trend all orders of
independent values are equally likely, whatever their distribution. The test is two-sided and exact, also with ties.
Long series are averaged over `MOST_BLOCKS` blocks first, which also makes neighbours less alike: the test takes its
values for independent. The slope is that of Theil and Sen; autocorrelation is tested beside the trend.

Of all pairs of a value of one sample with a value of the other, Moses' interval reaches from the k-th smallest to the
k-th largest difference (or ratio); it belongs to the Hodges-Lehmann estimator. The Mann-Whitney statistic counts the
pairs below the true shift, so its exact distribution gives k. Values must be independent, and spread alike in both
samples apart from the shift. MOVER makes the interval of the ratio of two estimates from their own intervals.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Final

from natgauge.statistics.summary import CONFIDENCE, LEAST_AUTOCORRELATED, ConfidenceInterval, MedianEstimate


@cache
def falling_pairs(alike: tuple[int, ...]) -> tuple[int, ...]:
    """Number of orders of a sample with 0, 1, 2 ... falling pairs.

    `alike` is how often each different value occurs, at least once.
    """
    counts, before = [1], 0
    for number in alike:
        # The Gaussian binomial of these and those before them, factor by factor.
        for step in range(1, number + 1):
            counts = _divided(_multiplied(counts, before + step), step)
        before += number
    return tuple(counts)


def _multiplied(counts: Sequence[int], power: int) -> list[int]:
    """Return the product of a polynomial in q, given by its coefficients, and 1 - q**power."""
    product = [*counts, *([0] * power)]
    for at, count in enumerate(counts):
        product[at + power] -= count
    return product


def _divided(counts: Sequence[int], power: int) -> list[int]:
    """Over 1 - q**power, without a remainder."""
    quotient: list[int] = []
    for at, count in enumerate(counts):
        quotient.append(count + (quotient[at - power] if at >= power else 0))
    return quotient[: len(counts) - power]


#: Longer series are averaged over this number of blocks of consecutive values.
MOST_BLOCKS: Final = 30
#: Probability with which the test finds a trend in independent values without one, at most. With fewer than six
#: values no order is this unlikely, so that five values or fewer never have a trend.
FALSE_ALARM: Final = 0.01
#: Fewer values have no step. A step leaves less than this share of the squares that a line leaves.
LEAST_OF_STEP: Final = 4
MUCH_BETTER: Final = 0.1


@dataclass(frozen=True, slots=True)
class Trend:
    """The result of a Mann-Kendall test.

    Attributes:
        tau: Kendall's tau-b between values and their order: 1 = all pairs rise, -1 = all pairs fall.
        probability: probability of such a tau, or one farther from 0, without a trend; 0 < probability <= 1.
        slope: median slope of all pairs (Theil, Sen), change from one value to the next.
    """

    tau: float
    probability: float
    slope: float

    @property
    def is_significant(self) -> bool:
        """Whether the values rise or fall with time; false for one in 100 series without a trend, at most."""
        return self.probability <= FALSE_ALARM


def mann_kendall(values: Sequence[float]) -> Trend | None:
    """Test the values, in the order they were measured, for a trend; None where fewer than two differ."""
    blocks = averaged(values, MOST_BLOCKS)
    places = list(combinations(range(len(blocks)), 2))
    changes = [blocks[later] - blocks[earlier] for earlier, later in places]
    score = sum((change > 0) - (change < 0) for change in changes)
    equal = sum(not change for change in changes)
    different = len(changes) - equal
    if not different:
        return None
    falling = (different - abs(score)) // 2
    orders = falling_pairs(tuple(sorted(Counter(blocks).values())))
    slopes = [change / (later - earlier) for change, (earlier, later) in zip(changes, places, strict=True)]
    return Trend(
        tau=score / math.sqrt(len(changes) * different),
        probability=min(1.0, 2 * sum(orders[: falling + 1]) / sum(orders)),
        slope=statistics.median(slopes) * len(blocks) / len(values),
    )


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the mean from one value to the next.

    The place is the number of values before it, the change the difference of the means after and before it.
    """

    place: int
    change: float


def step_of(values: Sequence[float]) -> LevelChange | None:
    """Return the step that describes values much better than a straight line does; None where none does.

    Both are fitted by least squares. Values that rise evenly are no step, and neither are ones that only scatter.
    """
    number = len(values)
    if number < LEAST_OF_STEP:
        return None
    mean, middle = statistics.fmean(values), (number - 1) / 2
    spread = sum((value - mean) ** 2 for value in values)
    along = sum((place - middle) * (value - mean) for place, value in enumerate(values))
    of_line = spread - along**2 / sum((place - middle) ** 2 for place in range(number))
    best, total, before = LevelChange(0, 0.0), sum(values), 0.0
    of_step = spread
    for place, value in enumerate(values[:-1], 1):
        before += value
        change = (total - before) / (number - place) - before / place
        left = spread - change**2 * place * (number - place) / number
        if left < of_step:
            best, of_step = LevelChange(place, change), left
    return best if of_step < MUCH_BETTER * of_line else None


def averaged(values: Sequence[float], most: int) -> list[float]:
    """Means of consecutive blocks of nearly equal length, `most` of them; shorter series are returned unchanged."""
    number = len(values)
    if number <= most:
        return list(values)
    ends = [number * block // most for block in range(most + 1)]
    return [statistics.fmean(values[begin:end]) for begin, end in pairwise(ends)]


#: Standard deviations that 95 % of a normal distribution lie below; that of the estimate is 1 / sqrt(n).
_ONE_SIDED_95: Final = 1.645


def autocorrelation(values: Sequence[float]) -> float | None:
    """Lag-1 autocorrelation of values in the order they were measured.

    The plain estimate of n independent values has the mean -1/n; that is put back. About -1 to 1; None for fewer than
    `LEAST_AUTOCORRELATED` values, or where all are alike.
    """
    number = len(values)
    if number < LEAST_AUTOCORRELATED:
        return None
    mean = statistics.fmean(values)
    deviations = [value - mean for value in values]
    square = sum(deviation * deviation for deviation in deviations)
    if not square:
        return None
    return sum(this * following for this, following in pairwise(deviations)) / square + 1 / number


def are_autocorrelated(values: Sequence[float]) -> bool:
    """Whether values resemble their predecessors more than 95 % of independent series do (one-sided).

    With few values only strong autocorrelation is significant: False does not prove independence.
    """
    coefficient = autocorrelation(values)
    return coefficient is not None and coefficient > _ONE_SIDED_95 / math.sqrt(len(values))


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
