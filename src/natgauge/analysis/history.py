# SPDX-License-Identifier: Apache-2.0
"""Ratios to a pinned baseline over dates and commits, and the changes among them.

A change is marked where a ratio's interval has no point in common with those since the last change. Each interval is
corrected for the number of looks (Bonferroni's inequality; Dunn, Journal of the American Statistical Association 56,
1961): point k of a figure may miss its true ratio with probability alpha / (k (k + 1)). These shares add up to alpha,
so all marks of all figures that are drawn while points are added hold alpha together. A point of a later date removes
no mark. A commit that is measured late gives the points after it later numbers, which may remove one.

An interval is scaled to that level by normal quantiles, as that of many blocks may be. Where few rounds made it, by
chance they agree too well. So it is no narrower than Student's interval with the spread between rounds that is pooled
over the points of the series so far, as in control charts. Student's quantiles of a few rounds alone would make
intervals hundreds of times as wide after a year.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import NormalDist
from typing import Final, Literal

from natgauge.analysis.derived import Difference
from natgauge.analysis.ratio_verdicts import grave_doubts
from natgauge.analysis.run_changes import control_margin, cost_differences
from natgauge.records.comparison import ComparisonRecord, Method, RatioEstimate
from natgauge.statistics.rounds import alpha_spent, student_t
from natgauge.statistics.summary import CONFIDENCE
from natgauge.words import Quantity

#: Degrees of freedom beyond which Student's factor hardly changes; its time grows with them.
_MOST_DEGREES: Final = 100
#: `math.exp` overflows a little beyond it.
_LARGEST_LOG: Final = 700.0

Direction = Literal["costs more", "costs less"]


@dataclass(frozen=True, slots=True)
class Dated:
    """A comparison at its place in time: the date of its commit, or else its own; an empty `commit` was not given."""

    record: ComparisonRecord
    date: datetime
    commit: str
    folder: str


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A ratio at its place in time.

    Attributes:
        low: lower end of the interval that is corrected for the number of looks, for the A/A control, and by the
            margin; 0 = not known.
        high: its upper end; infinite = not known.
        change: whether the gateway costs more or less than since the last change; None = no change is marked.
        factor: by how much: this ratio / the median of the ratios since the last change; None = no change.
    """

    at: Dated
    estimate: RatioEstimate
    low: float
    high: float
    change: Direction | None = None
    factor: float | None = None


@dataclass(slots=True)
class HistorySeries:
    """Ratios that one line joins: one gateway, baseline, quantity, method and machine, set up alike.

    Attributes:
        unlike: how it is set up otherwise than the first series of the same names; empty = it is that one.
    """

    baseline: str
    gateway: str
    quantity: Quantity
    by: Method
    first: ComparisonRecord
    unlike: tuple[Difference, ...] = ()
    points: list[HistoryPoint] = field(default_factory=list)
    _degrees: int = 0
    _squares: float = 0.0

    def pooled(self, error: float, rounds: int) -> tuple[float, int]:
        """Add a point's standard error, which is that of so many rounds; return the pooled one, and its degrees.

        An error that is infinite, not known, is not added.
        """
        degrees = max(rounds - 1, 1)
        if math.isfinite(error):
            self._degrees += degrees
            self._squares += degrees * rounds * error**2
        if not self._degrees:
            return math.inf, degrees
        return math.sqrt(self._squares / self._degrees / max(rounds, 1)), self._degrees

    @property
    def changes(self) -> list[HistoryPoint]:
        """The points at which a change is marked."""
        return [point for point in self.points if point.change is not None]


def history(every: Sequence[Dated], margin: float) -> list[HistorySeries]:
    """Return the series of comparisons, each in order of date.

    `margin` is the share (0 to below 1) by which two runs of one gateway may differ, which no interval contains.
    """
    ordered = sorted(every, key=lambda each: each.date)
    found: list[HistorySeries] = []
    estimates = ((each, estimate) for each in ordered for estimate in each.record.estimates)
    for number, (each, estimate) in enumerate(estimates, start=1):
        own = _series_of(each.record, estimate, found)
        low, high = _corrected(estimate, own, each.record, number, margin)
        own.points.append(_judged(own, HistoryPoint(each, estimate, low, high)))
    return found


def _series_of(record: ComparisonRecord, estimate: RatioEstimate, found: list[HistorySeries]) -> HistorySeries:
    names = (record.baseline.label, estimate.gateway, estimate.quantity, record.by)
    namesakes = [each for each in found if (each.baseline, each.gateway, each.quantity, each.by) == names]
    unlike: tuple[Difference, ...] = ()
    for each in reversed(namesakes):
        unlike = _unlike(each.first, record, estimate.gateway)
        if not unlike:
            return each
    found.append(HistorySeries(*names, record, unlike))
    return found[-1]


def _unlike(first: ComparisonRecord, second: ComparisonRecord, label: str) -> tuple[Difference, ...]:
    """Return what the two are set up otherwise in: all of the baseline; of the gateway what is not the device's own."""
    of_baseline = cost_differences(first.baseline, second.baseline)
    own = cost_differences(first.gateway(label), second.gateway(label), {"device"})
    return (*of_baseline, *(each for each in own if each not in of_baseline))


def _corrected(
    estimate: RatioEstimate, series: HistorySeries, record: ComparisonRecord, number: int, margin: float
) -> tuple[float, float]:
    """Return the interval of point number `number` of a figure; it is open where an end is not known, or in doubt."""
    if not estimate.ratio or not 0.5 < estimate.level < 1 or grave_doubts(record, [estimate]):
        return 0.0, math.inf
    # Logarithms; infinite = not known.
    below = math.log(estimate.ratio / estimate.low) if estimate.low else math.inf
    above = math.inf if estimate.high is None else math.log(estimate.high / estimate.ratio)
    alpha = alpha_spent(number, 1 - CONFIDENCE)
    wanted = _quantile(1 - alpha) / _quantile(estimate.level)
    # The interval may be wider than Student's, so this error is no smaller than that between rounds.
    error = max(below, above) / student_t(1 - estimate.level, max(record.rounds - 1, 1))
    pooled, degrees = series.pooled(error, record.rounds)
    least = pooled * student_t(alpha, min(degrees, _MOST_DEGREES))
    # Two runs differ by the whole margin, so each has its root.
    room = control_margin(record, estimate.quantity) / math.sqrt(1 - margin)
    low, high = (max(end * wanted, least) for end in (below, above))
    upper = math.inf if math.isinf(high) else estimate.ratio * math.exp(min(high, _LARGEST_LOG)) * room
    return estimate.ratio * math.exp(-low) / room, upper


def _quantile(level: float) -> float:
    """Half the width of a normal interval of this coverage, in standard deviations."""
    return -NormalDist().inv_cdf((1 - level) / 2)


def _judged(series: HistorySeries, point: HistoryPoint) -> HistoryPoint:
    """Return the point with the change that it shows against the points since the last change."""
    marked = [at for at, each in enumerate(series.points) if each.change is not None]
    since = series.points[marked[-1] if marked else 0 :]
    low = max((each.low for each in since), default=0.0)
    high = min((each.high for each in since), default=math.inf)
    if point.low <= high and point.high >= low:
        return point
    ratios = [each.estimate.ratio for each in since if each.estimate.ratio]
    factor = None if not ratios or point.estimate.ratio is None else point.estimate.ratio / statistics.median(ratios)
    change: Direction = "costs more" if point.low > high else "costs less"
    return HistoryPoint(point.at, point.estimate, point.low, point.high, change, factor)
