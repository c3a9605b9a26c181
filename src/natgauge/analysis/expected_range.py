# SPDX-License-Identifier: Apache-2.0
"""The range in which another run on the same machine is expected: that of the repetitions, and all that widens it."""

from __future__ import annotations

import math

from natgauge.analysis.contrast import spans
from natgauge.analysis.sittings import drift
from natgauge.records.measurement import Result


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
