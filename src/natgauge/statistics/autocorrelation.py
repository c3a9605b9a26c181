# SPDX-License-Identifier: Apache-2.0
"""Autocorrelation of values in the order they were measured: intervals suppose independent values."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from natgauge.statistics.summary import LEAST_AUTOCORRELATED

#: Standard deviations that 95 % of a normal distribution lie below; that of the estimate is 1 / sqrt(n).
_ONE_SIDED_95: Final = 1.645


def autocorrelation(values: Sequence[float]) -> float | None:
    """Lag-1 autocorrelation of values in the order they were measured.

    The plain estimate of n independent values has the mean -1/n; that is put back. About -1 to 1; None for fewer than
    `LEAST_AUTOCORRELATED` values, or where all are alike.
    """
    number = len(values)
    if number < LEAST_AUTOCORRELATED:
        return None
    mean = statistics.fmean(values)
    deviations = [value - mean for value in values]
    square = sum(deviation * deviation for deviation in deviations)
    if not square:
        return None
    return sum(this * following for this, following in pairwise(deviations)) / square + 1 / number


def are_autocorrelated(values: Sequence[float]) -> bool:
    """Whether values resemble their predecessors more than 95 % of independent series do (one-sided).

    With few values only strong autocorrelation is significant: False does not prove independence.
    """
    coefficient = autocorrelation(values)
    return coefficient is not None and coefficient > _ONE_SIDED_95 / math.sqrt(len(values))
