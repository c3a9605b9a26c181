# SPDX-License-Identifier: Apache-2.0
"""Searches for a rate in rounds: their bounds, the rate of a gateway, and the ratio of the costs of two gateways."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Literal

from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate
from natgauge.statistics.order_statistics import median_estimate
from natgauge.words import Quantity, SearchLimitedBy


@dataclass(frozen=True, slots=True)
class RateBounds:
    """Bounds of the device's rate after one search, in frames/s of each direction.

    Attributes:
        lower: a rate that the device surely does; 0 where no rate passed.
        passed: the highest rate that passed; queues and tolerated lag may have raised it above the device's own. 0 =
            none passed.
        upper: the lowest rate that the device failed; infinite where it failed none.
        limit: what ended the search instead of the device; "" = the device did, or it is not known.
    """

    lower: float
    passed: float
    upper: float
    limit: SearchLimitedBy | Literal[""] = ""

    @property
    def middle(self) -> float:
        """Geometric mean of the passed rate and the bound; the passed rate where there is no bound."""
        return self.passed if math.isinf(self.upper) else math.sqrt(self.passed * self.upper)


@dataclass(slots=True)
class RateRounds:
    """The searches for one rate of one gateway, round by round.

    Attributes:
        rounds: bounds of each search; None = the tester, the host or the time voided it, so nothing is known.
    """

    label: str
    quantity: Quantity
    rounds: list[RateBounds | None] = field(default_factory=list)

    @property
    def bounds(self) -> list[RateBounds]:
        """Bounds of the searches in which a rate passed."""
        return [bounds for bounds in self.rounds if bounds is not None and bounds.passed]

    @property
    def rate(self) -> float | None:
        """Median over rounds, in frames/s of each direction; None before there is one."""
        return statistics.median(bounds.middle for bounds in self.bounds) if self.bounds else None

    @property
    def nanoseconds(self) -> float | None:
        """Time for a frame at the highest rate, ns; None if the rate is unknown, or only a lower bound is known."""
        rate = self.rate
        if rate is None or math.isinf(statistics.median_high(bounds.upper for bounds in self.bounds)):
            return None
        # Both directions have frames, and the rate is that of each.
        return 1e9 / rate / (2 if self.quantity == "both" else 1)


def pairs(baseline: RateRounds, other: RateRounds) -> list[tuple[RateBounds, RateBounds]]:
    """Return the bounds of both gateways in the rounds in which both have some."""
    both = zip(baseline.rounds, other.rounds, strict=False)
    return [(first, second) for first, second in both if first is not None and second is not None]


def ratio_of(baseline: RateRounds, other: RateRounds, alpha: float) -> MedianEstimate | None:
    """Estimate the median ratio of costs; the interval covers the lowest and highest ratios that the bounds allow.

    A gateway that passed no rate has an infinite cost. Where neither passed one, the ratio may be any.
    """
    both = pairs(baseline, other)
    middles = [_quotient(first.middle, second.middle) for first, second in both if first.passed or second.passed]
    lowest = median_estimate([first.lower / second.upper for first, second in both], alpha)
    highest = median_estimate([_quotient(first.upper, second.lower) for first, second in both], alpha)
    if not middles or lowest is None or highest is None:
        return None
    interval = ConfidenceInterval(lowest.lower, highest.upper, lowest.interval.coverage)
    return MedianEstimate(statistics.median(middles), interval, len(both))


def _quotient(first: float, second: float) -> float:
    return first / second if second else math.inf
