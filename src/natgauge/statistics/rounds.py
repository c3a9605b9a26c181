# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals for ratios that were measured in rounds, and interim analyses after some of the rounds.

A block visits two devices within some milliseconds, so the host's speed in that block cancels in the ratio of their
work. Blocks of one round share more than the devices: the place of labs and of table entries in memory, for example.
So rounds differ by more than their blocks explain (overdispersion), and an interval has to cover two kinds of noise:

- from block to block: order statistics of all ratios,
- from round to round: Student's t interval over the rounds' medians, on a logarithmic scale.

The interval of a comparison reaches to the farther end of both. Who computes intervals after several rounds spends a
part of alpha in each interim analysis.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from natgauge.statistics.summary import ConfidenceInterval, MedianEstimate, median_estimate

#: From one analysis to the next the number of rounds grows by this factor.
ROUNDS_GROW: Final = 1.5
#: No comparison has as many analyses, because the rounds would be more than 10 million.
_MOST_ANALYSES: Final = 40


def alpha_spent(analysis: int, alpha: float, *, last: bool = False) -> float:
    """Alpha of analysis number `analysis`, from 1: all analyses together err with probability `alpha` at most.

    It is alpha / (k (k + 1)). These shares add up to alpha however many analyses there are. The last one may spend all
    that the analyses before it left, alpha / k, because the time is over, which is known before the analysis.
    """
    return alpha / analysis if last else alpha / (analysis * (analysis + 1))


def possible_alphas(alpha: float) -> Iterator[float]:
    """Yield what each analysis may have spent, for readers who do not know which one it was: first alpha itself."""
    for analysis in range(1, _MOST_ANALYSES):
        yield from (alpha_spent(analysis, alpha, last=last) for last in (True, False))


def rounds_before(analysis: int, first: int) -> int:
    """Number of rounds before analysis number `analysis`, from 1: 3, 5, 8, 12 ... where the first is after 3."""
    rounds = first
    for _ in range(analysis - 1):
        rounds = math.ceil(rounds * ROUNDS_GROW)
    return rounds


#: Two rounds agree by chance too often: Student's factor for them is 12.7 at 95 %.
LEAST_ROUNDS: Final = 3
#: Halvings of the range of an angle below which a double has no more digits.
_HALVINGS: Final = 60
#: `math.exp` overflows a little beyond it.
_LARGEST_LOG: Final = 700.0


def estimate_over_rounds(rounds: Sequence[Sequence[float]], alpha: float) -> MedianEstimate | None:
    """The median ratio, with an interval that covers noise from block to block and from round to round.

    The ratios of each round are up to infinity, none where a round is void; `alpha` is the probability that the
    interval misses, at most. None with fewer than `LEAST_ROUNDS` rounds, or with too few blocks.
    """
    valid = [ratios for ratios in rounds if ratios]
    if len(valid) < LEAST_ROUNDS:
        return None
    estimate = median_estimate([ratio for ratios in valid for ratio in ratios], alpha)
    if estimate is None:
        return None
    low, high = _between_rounds([statistics.median(ratios) for ratios in valid], alpha)
    interval = ConfidenceInterval(min(estimate.lower, low), max(estimate.upper, high), 1 - alpha)
    return MedianEstimate(estimate.value, interval, estimate.number)


def magnitude_over_rounds(rounds: Sequence[Sequence[float]], alpha: float) -> float | None:
    """The largest magnitude of a ratio that noise hides: for a device whose work is not seen above the tester's own.

    Such a ratio has no logarithm, so Student's interval is that of the rounds' medians themselves. A lower end below 0
    is an error of the measurement, which may also have the other sign. The ratios are of any sign. The magnitude is
    that of the farther end of both intervals, 0 to infinity; None as `estimate_over_rounds`.
    """
    valid = [ratios for ratios in rounds if ratios]
    if len(valid) < LEAST_ROUNDS:
        return None
    estimate = median_estimate([ratio for ratios in valid for ratio in ratios], alpha)
    medians = [statistics.median(ratios) for ratios in valid]
    if estimate is None or math.isinf(max(medians)):
        return None if estimate is None else math.inf
    half = student_t(alpha, len(medians) - 1) * statistics.stdev(medians) / math.sqrt(len(medians))
    centre = statistics.fmean(medians)
    return max(map(abs, (estimate.lower, estimate.upper, centre - half, centre + half)))


@lru_cache(maxsize=1024)
def student_t(alpha: float, degrees: int) -> float:
    """Student's t: the value that a variate with this distribution exceeds in magnitude with probability `alpha`.

    `alpha` is of both tails together, above 0 and below 1; there is 1 degree of freedom or more.
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
    logs = [math.log(median) for median in medians]
    centre = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    half = student_t(alpha, len(logs) - 1) * error
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
