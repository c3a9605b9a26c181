# SPDX-License-Identifier: Apache-2.0
"""The figure of a result for people: its median with the interval that all views print, and what that interval is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from natgauge import figure_text, interval_text
from natgauge.analysis.between_runs import drift, expected_range, widened_by_doubts
from natgauge.analysis.contrast import is_searched
from natgauge.figure_text import with_noun
from natgauge.records.measurement import Result
from natgauge.reports import doubtful


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval that is printed with a median.

    Attributes:
        is_expected: whether another run on the same machine is expected in it; else it is only the range of the
            repetitions, because a limit or a doubt leaves no such range.
    """

    low: float
    high: float
    is_expected: bool


def interval_of(result: Result) -> Interval:
    """Return the interval of a result's median; both ends are equal where there is nothing to make one of."""
    stated = doubtful.stated(result)
    expected = expected_range(result) if stated.is_median and not stated.doubtful else None
    low, high = expected or (result.minimum, result.maximum)
    return Interval(low, high, expected is not None)


def median(result: Result) -> str:
    """Return the median with the digits that its interval resolves."""
    return value(result, result.median)


def value(result: Result, figure: float) -> str:
    """Return a figure in the unit of the result, such as one repetition, with the digits of its median."""
    interval = interval_of(result)
    half = (interval.high - interval.low) / 2
    if not half and (len(result.repetitions) == 1 or not interval.is_expected):
        return figure_text.of_whole(figure, 100) if result.unit == "%" else figure_text.number(figure)
    text = interval_text.resolved(figure, figure - half, figure + half)
    # A share that is not all is not written as that.
    is_misleading = result.unit == "%" and figure < 100 and text.partition(".")[0] == "100"
    return figure_text.of_whole(figure, 100) if is_misleading else text


def repetitions(result: Result) -> list[str]:
    """Return the value of each repetition, with the digits that the spread of all resolves."""
    if result.unit == "%":
        return [value(result, each) for each in result.values]
    return interval_text.readings_of(result.values)


def spread(result: Result, *, named: bool = True) -> str:
    """Return the interval in words, with the number of repetitions that it rests on.

    Where not `named`, a title says that an interval without words is another run's.
    """
    interval, count = interval_of(result), len(result.repetitions)
    planned = max(count, result.planned_repetitions)
    done = f"{count} of {planned} repetitions" if planned > count else with_noun(count, "repetitions")
    if interval.low == interval.high:
        return f"{done} agree" if count > 1 and _agree(result) else f"{done}, no interval"
    if interval.is_expected:
        text = margin(result, interval.low, interval.high)
        if count == 1 and is_searched(result) and not drift(result):
            # One repetition without a drift tells nothing of another run.
            return f"{text} by the search error{' and its doubts' if widened_by_doubts(result) else ''} ({done})"
        error = " and the search error" if is_searched(result) else ""
        return f"{text}{' in another run' if named else ''} ({done}{error})"
    return f"{_readings(result)} in {done}"


def margin(result: Result, low: float, high: float) -> str:
    """Return an interval of a result's median; of one in % by its ends, as `interval_text.with_ends` says."""
    if result.unit == "%":
        return interval_text.span(low, high)
    return interval_text.margin(result.median, low, high)


def _agree(result: Result) -> bool:
    """Whether the repetitions have one value, and no search leaves a higher one that the first line lacks."""
    if not doubtful.stated(result).is_median:
        return True
    ends = [each.value if each.upper is None else each.upper for each in result.repetitions]
    return max(ends) <= result.minimum


def _readings(result: Result) -> str:
    """The lowest and the highest repetition."""
    return interval_text.readings(result.minimum, result.maximum, 100 if result.unit == "%" else math.inf)


def within(result: Result) -> str:
    """Return the median with its interval, in the shortest form."""
    interval = interval_of(result)
    if interval.low == interval.high:
        return median(result)
    if not interval.is_expected:
        return f"{median(result)} ({_readings(result)})"
    if result.unit == "%":
        return f"{median(result)} ({interval_text.span(interval.low, interval.high)})"
    return interval_text.within(result.median, interval.low, interval.high)
