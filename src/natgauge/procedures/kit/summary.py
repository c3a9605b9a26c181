# SPDX-License-Identifier: Apache-2.0
"""What many values come to: median, percentiles, spread, and how far the median itself may be trusted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

#: Coverage the confidence interval of the median aims at.
CONFIDENCE = 0.95
#: Below this many values the nearest-rank 1st and 99th percentiles are the minimum and the maximum.
VALUES_FOR_PERCENTILES = 100
#: Of fewer values an autocorrelation says nothing; as many as the first interval of 95 % needs.
LEAST_AUTOCORRELATED = 6
#: Standard deviations that 95 % of a normal distribution lie below; that of the estimate is 1 / sqrt(n).
ONE_SIDED_95 = 1.645


@dataclass(frozen=True, slots=True)
class Interval:
    """A range around the median of the population; it holds it with probability `coverage` (0 to 1).

    It assumes nothing about the distribution, but that the values are independent.
    """

    lower: float
    upper: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Repetitions of one measurement (RFC 9693 section 6), all in the measurement's unit.

    Attributes:
        median: middle value, of an even number the mean of the middle two (RFC 2330 section 11.3).
        p1: 1st percentile, nearest rank.
        p99: 99th percentile, nearest rank.
        minimum: smallest value.
        maximum: largest value.
        mean: arithmetic mean.
        standard_deviation: of the sample (n - 1); None for a single value.
        repetitions: the values in the order they were measured.
        interval: distribution-free confidence interval of the median; None for a single value.
        notes: what a reader must know to read the figures rightly.
    """

    median: float
    p1: float
    p99: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float | None
    repetitions: tuple[float, ...]
    interval: Interval | None
    notes: tuple[str, ...] = ()


def summarize(values: Sequence[float]) -> Summary:
    """Summarize one or more repetitions.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    if not values:
        raise ValueError("no values to summarize")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"values must be finite, not {list(values)}")
    return Summary(
        median=statistics.median(values),
        p1=percentile(values, 1),
        p99=percentile(values, 99),
        minimum=min(values),
        maximum=max(values),
        mean=statistics.fmean(values),
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        repetitions=tuple(values),
        interval=median_interval(values),
        notes=tuple(_notes(len(values))),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank (RFC 2330 section 11.3): the smallest value x with F(x) >= percent / 100; no interpolation.

    Args:
        values: at least one.
        percent: 0 < percent <= 100, decimal fractions are taken exactly as written (99.9 is 999/1000).

    Raises:
        ValueError: no values, or `percent` out of range.
    """
    if not values or not 0 < percent <= 100:
        raise ValueError(f"percentile {percent} of {len(values)} values: want 0 < percent <= 100 and values")
    # Exact: 0.07 * 100 is 7.000000000000001 in floating point, and its ceiling would be one rank too high.
    rank = math.ceil(Fraction(str(percent)) * len(values) / 100)
    return sorted(values)[rank - 1]


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The narrowest pair of order statistics k and n + 1 - k around the median that covers it as asked.

    With fewer than six values not even the extremes reach 95 %; then these are given with the coverage they have.

    Returns:
        None for fewer than two values: one value says nothing about spread.
    """
    number = len(values)
    if number < 2:
        return None
    ordered = sorted(values)
    best = 1
    while 2 * (best + 1) <= number and _coverage(number, best + 1) >= confidence:
        best += 1
    return Interval(ordered[best - 1], ordered[number - best], _coverage(number, best))


def autocorrelation(values: Sequence[float]) -> float | None:
    """Lag-1 autocorrelation of values in the order they were measured.

    The plain estimate of n independent values has the mean -1/n; that is put back.

    Returns:
        About -1 to 1; None for fewer than `LEAST_AUTOCORRELATED` values, or where all are alike.
    """
    number = len(values)
    if number < LEAST_AUTOCORRELATED:
        return None
    mean = statistics.fmean(values)
    apart = [value - mean for value in values]
    square = sum(one * one for one in apart)
    if not square:
        return None
    return sum(one * following for one, following in pairwise(apart)) / square + 1 / number


def are_autocorrelated(values: Sequence[float]) -> bool:
    """Whether values resemble the ones before them by more than 95 % of independent series would (one-sided).

    Of few values only strong autocorrelation shows: False says that none was seen, not that there is none.
    """
    found = autocorrelation(values)
    return found is not None and found > ONE_SIDED_95 / math.sqrt(len(values))


def _coverage(number: int, rank: int) -> float:
    """Probability that the population's median lies between order statistics `rank` and `number + 1 - rank`."""
    below = sum(math.comb(number, successes) for successes in range(rank))
    return float(1 - Fraction(2 * below, 2**number))


def _notes(number: int) -> list[str]:
    notes = []
    plural = "repetition" if number == 1 else "repetitions"
    if number < VALUES_FOR_PERCENTILES:
        notes.append(f"with {number} {plural} the 1st and 99th percentiles are the minimum and the maximum")
    if number == 1:
        notes.append("a single repetition says nothing about spread; RFC 9693 section 6 wants several")
    return notes
