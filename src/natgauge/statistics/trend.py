# SPDX-License-Identifier: Apache-2.0
"""Trend and autocorrelation of values in the order they were measured: Mann-Kendall test, slope of Theil and Sen.

Mann (1945) and Kendall (1975) count how many pairs of values rise and how many fall. Without a trend all orders of
independent values are equally likely, whatever their distribution. The test is two-sided and exact, also with ties:
the number of falling pairs over all orders is a Gaussian multinomial coefficient. Long series are averaged over
`MOST_BLOCKS` blocks first, which also makes neighbours less alike: the test takes its values for independent.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from natgauge.statistics.orders import falling_pairs
from natgauge.statistics.summary import LEAST_AUTOCORRELATED

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
