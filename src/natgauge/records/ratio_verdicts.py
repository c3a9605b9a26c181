# SPDX-License-Identifier: Apache-2.0
"""The verdict on a ratio of costs from the ends of its interval, and whether a stored comparison has these verdicts."""

from __future__ import annotations

import math
from pathlib import Path

from natgauge.records.comparison import ComparisonRecord, CostVerdict, RatioEstimate
from natgauge.records.contradiction import expect


def verdict_of(lower: float, upper: float, half_width: float, margin: float, resolve: float) -> CostVerdict:
    """Return the verdict on a ratio whose interval is known.

    Args:
        lower: lower end of the interval; 0 = open.
        upper: upper end of the interval; infinite = open.
        half_width: half the width, as a share of the larger cost; infinite = an end is open.
        margin: factor by which the A/A control may differ from the baseline, as of `margin_of`.
        resolve: largest half width of "no difference".
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


def check_verdicts(record: ComparisonRecord, where: Path) -> None:
    """Check the verdicts of a comparison by its ratios, and its answers by its verdicts.

    Raises:
        UsageError: one does not follow, with both values.
    """
    controls = {control.quantity: control for control in record.control}
    for estimate in (*record.estimates, *record.control):
        control = controls.get(estimate.quantity)
        margin = 1.0 if control is None or control is estimate or _unknown(control) else margin_of(*_ends(control))
        name = f"{estimate.gateway}, {estimate.quantity}"
        expect(f"{name}: verdict", estimate.verdict, _verdict(estimate, margin, record), "its interval gives", where)
        is_above = None
        if record.fail_above is not None and not _unknown(estimate):
            is_above = above(*_ends(estimate), margin, record.fail_above)
        expect(f"{name}: above", estimate.above, is_above, "its interval gives", where)
    decided = all(is_decided(estimate, record.resolve, record.fail_above) for estimate in record.estimates)
    expect("decided", record.decided, decided, "its verdicts give", where)
    any_above = None if record.fail_above is None else any(estimate.above for estimate in record.estimates)
    expect("above", record.above, any_above, "its verdicts give", where)


def _verdict(estimate: RatioEstimate, margin: float, record: ComparisonRecord) -> CostVerdict:
    if _unknown(estimate):
        return "undecided"
    lower, upper = _ends(estimate)
    if estimate.limits and not 0 < lower <= upper < math.inf:
        return "costs more" if lower > margin else "costs less" if upper < 1 / margin else "undecided"
    half_width = math.inf if estimate.half_width is None else estimate.half_width
    return verdict_of(lower, upper, half_width, margin, record.resolve)


def _unknown(estimate: RatioEstimate) -> bool:
    """Whether there are too few blocks for an interval: an interval with an open upper end has a lower one."""
    return estimate.low is None


def _ends(estimate: RatioEstimate) -> tuple[float, float]:
    return estimate.low or 0.0, math.inf if estimate.high is None else estimate.high
