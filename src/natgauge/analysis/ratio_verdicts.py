# SPDX-License-Identifier: Apache-2.0
"""The verdict on a ratio of costs from the ends of its interval."""

from __future__ import annotations

import math

from natgauge.records.comparison import CostVerdict, RatioEstimate


def verdict_of(lower: float, upper: float, half_width: float, margin: float, resolve: float) -> CostVerdict:
    """Return the verdict on a ratio whose interval is known.

    Args:
        lower: lower end of the interval; 0 = open.
        upper: upper end of the interval; infinite = open.
        half_width: half the width, as a share of the larger cost; infinite = an end is open.
        margin: factor by which the A/A control may differ from the baseline, as of `margin_of`.
    """
    if lower > margin:
        return "costs more"
    if upper < 1 / margin:
        return "costs less"
    if margin > 1 and (margin > 1 + resolve or not lower <= 1 <= upper):
        return "undecided"
    return "no difference" if half_width <= resolve else "undecided"


def margin_of(lower: float, upper: float) -> float:
    """Return the factor by which the A/A control may differ from the baseline; 1 if its interval contains 1."""
    if lower <= 1 <= upper:
        return 1.0
    return max(upper, 1 / lower if lower > 0 else math.inf)


def above(lower: float, upper: float, margin: float, fail_above: float) -> bool | None:
    """Whether a gateway surely costs more, or surely no more, than `fail_above` allows; None = neither."""
    limit = 1 + fail_above
    return True if lower > limit * margin else False if upper * margin <= limit else None


def is_decided(estimate: RatioEstimate, resolve: float, fail_above: float | None) -> bool:
    """Whether the question about a gateway and quantity is answered."""
    if fail_above is not None:
        return estimate.above is not None
    return estimate.verdict != "undecided" and estimate.half_width is not None and estimate.half_width <= resolve
