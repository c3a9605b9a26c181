# SPDX-License-Identifier: Apache-2.0
"""Medians of paired ratios, and confidence intervals for them.

A block visits two devices within some milliseconds, so the host's speed in that block cancels in the ratio of their
work. Blocks of one round share more than the devices: the place of labs and of table entries in memory, for example.
So a confidence interval has to cover two kinds of noise:

- noise from block to block: order statistics of all ratios (binomial with p = 1/2, whatever the distribution),
- noise from round to round: Student's t interval over the rounds' medians, on a logarithmic scale.

The interval of a comparison reaches to the farther end of both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Two rounds agree by chance too often: Student's factor for them is 12.7 at 95 %.
LEAST_ROUNDS: Final = 3
#: Halvings of the range of an angle below which a double has no more digits.
_HALVINGS: Final = 60
#: `math.exp` overflows a little beyond it.
_LARGEST_LOG: Final = 700.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A median of ratios, with the ends of its interval; `blocks` is how many ratios it is the median of."""

    ratio: float
    low: float
    high: float
    blocks: int

    @property
    def half_width(self) -> float:
        """Half of the interval as a share of the work of whichever costs more: 0.01 = 1 %; infinite where that is."""
        if math.isinf(self.high):
            return math.inf
        return (self.high - self.low) / 2 / max(1.0, self.ratio)


def ratio(here: float, baseline: float, tester: float, baseline_tester: float) -> float | None:
    """Ratio of two devices' work in a block, 0 to infinity; None where neither shows above the tester's own."""
    device, other = here - tester, baseline - baseline_tester
    if other <= 0:
        return math.inf if device > 0 else None
    return max(device, 0.0) / other


def interval(values: Sequence[float], alpha: float) -> Interval | None:
    """Distribution-free confidence interval for the median of independent values.

    The number of values below the true median is binomial with p = 1/2, so two order statistics enclose the median.

    Args:
        values: at least as many as an interval takes, e.g. 6 for `alpha` 0.05.
        alpha: probability that the interval misses the median, at most.

    Returns:
        The median and its interval; None where the values are too few.
    """
    ordered = sorted(values)
    number = len(ordered)
    outside = _outside(number, alpha)
    if outside == 0:
        return None
    middle = (ordered[(number - 1) // 2] + ordered[number // 2]) / 2
    return Interval(middle, ordered[outside - 1], ordered[number - outside], number)


def over_rounds(rounds: Sequence[Sequence[float]], alpha: float) -> Interval | None:
    """Confidence interval for the median ratio that covers noise from block to block and from round to round.

    Args:
        rounds: the ratios of each round's blocks, 0 to infinity; empty where a round is void.
        alpha: probability that the interval misses, at most.

    Returns:
        The median of all ratios and its interval; None with fewer than `LEAST_ROUNDS` rounds, or with too few blocks.
    """
    seen = [one for one in rounds if one]
    if len(seen) < LEAST_ROUNDS:
        return None
    found = interval([value for one in seen for value in one], alpha)
    if found is None:
        return None
    low, high = _between_rounds([statistics.median(one) for one in seen], alpha)
    return Interval(found.ratio, min(found.low, low), max(found.high, high), found.blocks)


@lru_cache(maxsize=1024)
def student(alpha: float, degrees: int) -> float:
    """Student's t: the value that a variate with this distribution exceeds in magnitude with probability `alpha`.

    Args:
        alpha: both tails together, above 0 and below 1.
        degrees: degrees of freedom, 1 or more.

    Returns:
        The factor by which a standard error is multiplied.
    """
    # P(|T| < t) in closed form over the angle atan(t / sqrt(degrees)): Abramowitz and Stegun 26.7.3 and 26.7.4.
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, degrees) < 1 - alpha:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _between_rounds(medians: Sequence[float], alpha: float) -> tuple[float, float]:
    """Student's t interval for the mean of the rounds' logarithms, as two ratios."""
    if min(medians) <= 0 or math.isinf(max(medians)):
        # In such a round one of the devices shows no work above the tester's own: ratios that far apart bound nothing.
        return 0.0, math.inf
    logs = [math.log(one) for one in medians]
    centre = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    half = student(alpha, len(logs) - 1) * error
    return math.exp(centre - half), math.exp(min(centre + half, _LARGEST_LOG))


def _within(angle: float, degrees: int) -> float:
    """P(|T| < sqrt(degrees) * tan(angle))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    total = 0.0
    for power in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


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
