# SPDX-License-Identifier: Apache-2.0
"""How much two results differ, and how sure that is: an interval that assumes no distribution.

The interval is that of the Mann-Whitney test (Moses): of all pairs of a repetition of one result with one of the other
the k-th smallest and the k-th largest ratio, k by the exact distribution of the test's statistic. It supposes that the
repetitions of both are independent, and spread alike apart from the factor that is looked for.

A repetition that a search ended with is known within its error only, and one that the tester limited is a lower bound
only; each pair's ratio is taken as the range that this leaves.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from natgauge import procedures
from natgauge.procedures.kit.procedure import Better
from natgauge.results.model import Repetition, Result

#: What the interval aims at.
CONFIDENCE: Final = 0.95
#: What ends a search before the device does: its value is a bound.
_NO_DEVICE: Final = frozenset({"tester", "host", "server", "time"})


@dataclass(frozen=True, slots=True)
class Contrast:
    """A second result against a first one.

    Attributes:
        kind: "ratio", of second to first; "difference", second minus first, where a value is 0 or below.
        value: of the medians.
        lower: end of the interval.
        upper: the other end; either is infinite, and a ratio's lower one 0, where a value is a bound only.
        coverage: probability (0 to 1) with which an interval made so holds the true value, at least.
    """

    kind: Literal["ratio", "difference"]
    value: float
    lower: float
    upper: float
    coverage: float

    @property
    def same(self) -> float:
        """What it is where nothing differs."""
        return 1.0 if self.kind == "ratio" else 0.0

    @property
    def sure(self) -> bool:
        """Whether there are repetitions enough for the interval to mean what it should."""
        return self.coverage >= CONFIDENCE

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out that nothing differs."""
        return not self.lower <= self.same <= self.upper


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a repetition's true value lies."""

    lower: float
    upper: float


def contrast(first: Result, second: Result) -> Contrast:
    """The second result against the first; both of one metric, whatever else differs."""
    spans = [[_span(one, result) for one in result.repetitions] for result in (first, second)]
    positive = min(*first.values, *second.values) > 0
    found = _of(*spans, positive=positive)
    value = second.median / first.median if positive else second.median - first.median
    # Of repetitions that are not spread alike, the ratio of the medians may lie outside of the pairs' interval.
    lower, upper, coverage = found
    return Contrast("ratio" if positive else "difference", value, min(lower, value), max(upper, value), coverage)


def least_repetitions() -> int:
    """How many repetitions both results need at least for an interval that is sure."""
    return next(number for number in range(1, 100) if _coverage(number, number, 1) >= CONFIDENCE)


def better(metric: str) -> Better | None:
    """Which values of a metric are better; None where neither is, or nobody here knows the metric."""
    known = procedures.procedures().get(metric)
    return None if known is None else known.better


def _span(one: Repetition, result: Result) -> _Span:
    """The value a search ends with is the lower bound; what the device did not limit is one, too, without an upper one.

    Times are the other way round: those that the host made longer may be shorter, and the tester limits none.
    """
    if better(result.metric) == "lower":
        return _Span(0.0 if one.limited_by == "host" else one.value, one.value)
    if one.limited_by in _NO_DEVICE and (one.limited_by != "time" or one.upper is None):
        return _Span(one.value, math.inf)
    return _Span(one.value, one.value if one.upper is None else max(one.value, one.upper))


def bounds(result: Result) -> tuple[float, float]:
    """Where the device's true median lies as far as limits tell: twice the median where the device itself limited.

    What a search leaves between its last two loads is its error, and no limit. What tester, host or server limited is a
    bound; a search whose time was over has two, or only the lower one.
    """
    spans = [_limited(one, result) for one in result.repetitions]
    lower = min(result.median, statistics.median(span.lower for span in spans))
    upper = max(result.median, statistics.median(span.upper for span in spans))
    return lower, upper


def _limited(one: Repetition, result: Result) -> _Span:
    limit = result.limited_by if result.limited_by in _NO_DEVICE else one.limited_by
    if limit not in _NO_DEVICE:
        return _Span(one.value, one.value)
    return _span(one.model_copy(update={"limited_by": limit}), result)


def _of(first: Sequence[_Span], second: Sequence[_Span], *, positive: bool) -> tuple[float, float, float]:
    """Lower end, upper end and coverage."""
    pairs = [(one, other) for one in first for other in second]
    of = _ratio if positive else _difference
    low = sorted(of(other.lower, one.upper) for one, other in pairs)
    high = sorted(of(other.upper, one.lower) for one, other in pairs)
    rank = 1
    while 2 * (rank + 1) <= len(pairs) + 1 and _coverage(len(first), len(second), rank + 1) >= CONFIDENCE:
        rank += 1
    return low[rank - 1], high[-rank], _coverage(len(first), len(second), rank)


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.inf


def _difference(more: float, less: float) -> float:
    return more - less


def _coverage(first: int, second: int, rank: int) -> float:
    """Probability that the true value lies between the pairs of `rank` from below and from above."""
    counts = _counts(first, second)
    return max(0.0, 1 - 2 * sum(counts[:rank]) / math.comb(first + second, first))


@cache
def _counts(first: int, second: int) -> tuple[int, ...]:
    """How many orders of both samples have each value of the Mann-Whitney statistic, 0 to first * second.

    The coefficients of the Gaussian binomial, built factor by factor.
    """
    counts = [1]
    for step in range(1, first + 1):
        counts = _divided(_multiplied(counts, second + step), step)
    return tuple(counts)


def _multiplied(counts: Sequence[int], power: int) -> list[int]:
    """Times 1 - q**power."""
    found = [*counts, *([0] * power)]
    for at, count in enumerate(counts):
        found[at + power] -= count
    return found


def _divided(counts: Sequence[int], power: int) -> list[int]:
    """Over 1 - q**power, without a remainder."""
    found: list[int] = []
    for at, count in enumerate(counts):
        found.append(count + (found[at - power] if at >= power else 0))
    return found[: len(counts) - power]
