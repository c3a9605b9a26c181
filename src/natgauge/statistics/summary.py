# SPDX-License-Identifier: Apache-2.0
"""Summary of the values of repetitions (RFC 9693 section 6)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from natgauge.statistics.figure import FigureSummary
from natgauge.statistics.interval import ConfidenceInterval
from natgauge.statistics.order_statistics import median_interval, percentile

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
