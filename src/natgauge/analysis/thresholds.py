# SPDX-License-Identifier: Apache-2.0
"""The verdict on a value that was demanded of a result: met, not met, or cannot tell.

It is as strong as the range in which another run on the same machine is expected: a threshold within the range is
neither met nor missed.
"""

from __future__ import annotations

import math

from natgauge.analysis.contrast import better
from natgauge.analysis.expected_range import possible_range
from natgauge.known_doubts import known
from natgauge.metrics.metric import THRESHOLDS
from natgauge.records.measurement import Result, Threshold, ThresholdVerdict
from natgauge.statistics.interval import finite


def judged(result: Result) -> Threshold | None:
    """Return the verdict on the threshold among the settings of a result; None = there is none."""
    for setting in THRESHOLDS.values():
        value = result.number(setting)
        if value is not None:
            lower, upper, reason = _range(result)
            is_least = setting == "at_least"
            verdict: ThresholdVerdict = "cannot tell"
            if not reason and (lower >= value if is_least else upper <= value):
                verdict = "met"
            elif not reason and (upper < value if is_least else lower > value):
                verdict = "not met"
            return Threshold(
                setting="at_least" if is_least else "at_most",
                value=value,
                verdict=verdict,
                lower=finite(lower),
                upper=finite(upper),
                reason=reason,
            )
    return None


def _range(result: Result) -> tuple[float, float, str]:
    """Return the range, opened by doubts that could change the answer, and the reason why it says nothing."""
    lower, upper = possible_range(result)
    is_rate = better(result.metric) == "higher"
    unknown = []
    for doubt in result.doubts:
        if doubt.grade != "answer":
            continue
        of = known(doubt.word)
        if is_rate and (of.leaves == "at least" or of.hides):
            upper = math.inf
        elif is_rate and of.leaves == "at most":
            lower = -math.inf
        elif of.leaves != "bounds" and not (of.share and doubt.value is not None):
            unknown.append(doubt.word)
    if unknown:
        return lower, upper, f"doubts: {', '.join(dict.fromkeys(unknown))}"
    if len(result.repetitions) == 1:
        return lower, upper, "one repetition has no spread; give --repeat 3 or more"
    return lower, upper, ""
