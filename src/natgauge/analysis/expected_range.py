# SPDX-License-Identifier: Apache-2.0
"""The range in which another run on the same machine is expected: that of the repetitions, and all that widens it.

The verdict on a value that was demanded is as strong as this range: a threshold within it is neither met nor missed.
"""

from __future__ import annotations

import math

from natgauge.analysis.contrast import better, spans
from natgauge.analysis.sittings import drift
from natgauge.known_doubts import known
from natgauge.metrics.metric import THRESHOLDS
from natgauge.records.measurement import Result, Threshold, ThresholdVerdict
from natgauge.statistics.interval import finite


def expected_range(result: Result) -> tuple[float, float] | None:
    """Return the lower and the upper end, in the result's unit; None where a value is only a bound.

    It contains every repetition with the bounds of its search and the shares by which doubts may have moved it. Beyond
    that it has the error of the search each way, because near the limit a load passes or fails by chance, and the drift
    of a virtual machine; as these are independent, as the root of the sum of their squares.
    """
    lower, upper = possible_range(result)
    return None if math.isinf(upper) or lower <= 0 < min(span.lower for span in spans(result)) else (lower, upper)


def possible_range(result: Result) -> tuple[float, float]:
    """Return the same range where a value is only a bound, too: the end that is not known is 0 or infinite."""
    every = spans(result)
    lower, upper = min(span.lower for span in every), max(span.upper for span in every)
    share, error = drift(result), _error(result)
    below, above = (math.hypot(error, share * end) for end in (result.minimum, result.maximum))
    least = min(result.minimum, 0.0)
    return max(min(lower, result.minimum - below), least), max(upper, result.maximum + above)


def _error(result: Result) -> float:
    """The error of the search, in the result's unit: the larger of what was found and asked for; 0 without a search."""
    found, asked = result.error or 0.0, str(result.parameter("error") or 0)
    try:
        number = float(asked.removesuffix("%"))
    except ValueError:
        return found
    return max(found, number / 100 * abs(result.median) if asked.endswith("%") else number)


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
