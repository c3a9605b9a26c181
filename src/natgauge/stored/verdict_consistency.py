# SPDX-License-Identifier: Apache-2.0
"""Whether a stored comparison has the verdicts that follow from its intervals."""

from __future__ import annotations

import math
from pathlib import Path

from natgauge.analysis.ratio_verdicts import above, is_decided, margin_of, verdict_of
from natgauge.records.comparison import ComparisonRecord, CostVerdict, RatioEstimate
from natgauge.stored.contradiction import expect


def check_verdicts(record: ComparisonRecord, where: Path) -> None:
    """Check the verdicts of a comparison by its ratios, and its answers by its verdicts."""
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
    decided = all(is_decided(estimate, record.fail_above) for estimate in record.estimates)
    expect("decided", record.decided, decided, "its verdicts give", where)
    any_above = None if record.fail_above is None else any(estimate.above for estimate in record.estimates)
    expect("above", record.above, any_above, "its verdicts give", where)


def _verdict(estimate: RatioEstimate, margin: float, record: ComparisonRecord) -> CostVerdict:
    if _unknown(estimate):
        return "undecided"
    lower, upper = _ends(estimate)
    if estimate.limits and not 0 < lower <= upper < math.inf:
        return "costs more" if lower > margin else "costs less" if upper < 1 / margin else "undecided"
    return verdict_of(lower, upper, margin, record.resolve)


def _unknown(estimate: RatioEstimate) -> bool:
    """Whether there are too few blocks for an interval: an interval with an open upper end has a lower one."""
    return estimate.low is None


def _ends(estimate: RatioEstimate) -> tuple[float, float]:
    return estimate.low or 0.0, math.inf if estimate.high is None else estimate.high
