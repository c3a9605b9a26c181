# SPDX-License-Identifier: Apache-2.0
"""Values of repetitions (RFC 9693 section 6): percentiles, the median with its confidence interval, and their summary.

Two order statistics enclose the median: the number of values below the true median is binomial with p = 1/2, whatever
the distribution. The values must be independent. Other estimates have intervals of the same type.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final

from annotated_types import Ge

#: Coverage that intervals aim at where nothing else is chosen.
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A range that contains the true value with probability `coverage` (0 to 1)."""

    # Stored results are read by pydantic, which refuses further fields and values that are not finite.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    lower: float
    upper: float
    coverage: float

    def __post_init__(self) -> None:
        if not 0 <= self.coverage <= 1:
            raise ValueError(f"coverage: {self.coverage} is outside of 0 to 1")

    def __contains__(self, value: float) -> bool:
        """Whether the range contains the value; its ends belong to it."""
        return self.lower <= value <= self.upper


@dataclass(frozen=True, slots=True)
class MedianEstimate:
    """The median of a number of values, and its confidence interval."""

    value: float
    interval: ConfidenceInterval
    number: int

    @property
    def lower(self) -> float:
        """Lower end of the interval."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """Upper end of the interval."""
        return self.interval.upper

    @property
    def half_width(self) -> float:
        """Half the width of a ratio's interval; see `relative_half_width`."""
        return relative_half_width(self.value, self.lower, self.upper)


def relative_half_width(ratio: float, lower: float, upper: float) -> float:
    """Half the width of a ratio's range, as a share of the larger of both costs: 0.01 = 1 %; infinite if it is open."""
    return math.inf if math.isinf(upper) else (upper - lower) / 2 / max(1.0, ratio)


def finite(value: float | None) -> float | None:
    """Return the value; None if it is infinite, because JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


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
    """Few percentages are asked for, but of every figure of every result."""
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


@dataclass(frozen=True, slots=True)
class FigureSummary:
    """A figure of a result over all repetitions, in the figure's unit (RFC 9693 section 6).

    Attributes:
        median: middle value, of an even number the mean of the middle two (RFC 2330 section 11.3).
        p1: 1st percentile, nearest rank.
        p99: 99th percentile, nearest rank.
        standard_deviation: standard deviation of the sample (n - 1); None for a single value.
        count: number of values: one for each repetition that has the figure, or all values of the repetitions' samples.
    """

    # Stored results are read by pydantic, which refuses further fields and values that are not finite.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    median: float
    p1: float
    p99: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float | None
    count: Annotated[int, Ge(1)]


#: Below this many values the nearest-rank 1st and 99th percentiles are the minimum and the maximum.
VALUES_FOR_PERCENTILES: Final = 100
#: Fewest values for an autocorrelation; the first interval of 95 % needs the same number.
LEAST_AUTOCORRELATED: Final = 6


def summarize(values: Sequence[float], *, is_tried: bool = False) -> FigureSummary:
    """Summarize one or more repetitions.

    `is_tried`: a trial was run with each value; the median is then the lower one of two, so that a trial had it.
    """
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"there must be values, all finite, not {list(values)}")
    values = [float(value) for value in values]
    return FigureSummary(
        median=statistics.median_low(values) if is_tried else statistics.median(values),
        p1=percentile(values, 1),
        p99=percentile(values, 99),
        minimum=min(values),
        maximum=max(values),
        mean=statistics.fmean(values),
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        count=len(values),
    )


def interval_of(values: Sequence[float], uppers: Sequence[float | None]) -> ConfidenceInterval | None:
    """Return the confidence interval of the median, which reaches from the values up to the upper bounds.

    A search's value is the lower bound of what the device can. `uppers` has the upper bounds; None = there is none.
    """
    interval = median_interval(values)
    ends = [value if upper is None else max(value, upper) for value, upper in zip(values, uppers, strict=True)]
    bounds = median_interval(ends)
    return interval if interval is None or bounds is None else replace(interval, upper=bounds.upper)
