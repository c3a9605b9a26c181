# SPDX-License-Identifier: Apache-2.0
"""The figure of a result for people: its median with the interval that all views print, and what that interval is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from natgauge import figure_text, interval_text
from natgauge.analysis.between_runs import drift, expected_range, widened_by_doubts
from natgauge.analysis.contrast import bounds, is_searched
from natgauge.figure_text import with_noun
from natgauge.records.measurement import Result
from natgauge.reports import doubtful
from natgauge.reports.graded_doubts import mark


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


@dataclass(frozen=True, slots=True)
class Stroke:
    """What is drawn at a median: its interval, or the bounds that are left; an end that is not known is open."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False


def stroke_of(result: Result) -> Stroke:
    """Return the stroke of a result; the open end of a bound is where the repetitions end."""
    interval, stated = interval_of(result), doubtful.stated(result)
    if stated.is_median:
        return Stroke(interval.low, interval.high)
    low, high = stated.lower, stated.upper
    return Stroke(
        low if low > 0 else min(interval.low, high),
        high if math.isfinite(high) else max(interval.high, low),
        open_low=low <= 0,
        open_high=math.isinf(high),
    )


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
    if is_by_ends(result, low, high):
        return interval_text.span(low, high)
    return interval_text.margin(result.median, low, high)


def is_by_ends(result: Result, low: float, high: float) -> bool:
    """Whether an interval of a result's median is written by its ends, and not as "± 11 %"."""
    return result.unit == "%" or not interval_text.is_in_percent(result.median, low, high)


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


def stated_number(result: Result, scale: float = 1.0) -> str:
    """Return the median, or the bounds that are left where something else limited it, or a doubt is grave.

    Each is multiplied by `scale` before it is written.
    """
    stated = doubtful.stated(result)
    if stated.is_median:
        return median(result) if scale == 1 else figure_text.number(scale * result.median)
    least, most = stated_bounds(result, scale)
    if math.isinf(most):
        return f"at least {figure_text.at_least(least)}"
    upper = figure_text.at_most(most)
    return f"at most {upper}" if least <= 0 else f"between {figure_text.at_least(least)} and {upper}"


def stated_bounds(result: Result, scale: float) -> tuple[float, float]:
    """The ends of what is stated; a product that is below one by an error of floats alone is not rounded down."""
    stated = doubtful.stated(result)
    least, most = (float(f"{scale * end:.12g}") for end in (stated.lower, stated.upper))
    return least, most


def in_cell(result: Result) -> str:
    """Return the figure with its interval or the bounds that doubts leave, and the mark of its doubts."""
    return f"{in_short(result)}{doubtful.stamp(result)}{mark(result.doubts)}{doubtful.missing(result)}"


def in_short(result: Result) -> str:
    """Return the figure with its interval, or the bounds that doubts leave."""
    return within(result) if doubtful.stated(result).is_median else with_bounds(result)


def with_bounds(result: Result) -> str:
    """Return the median with the bounds that doubts leave, such as "284 k, at most 317 k".

    Of a value that is only a bound itself, such as that of a limit of the tester, it has the bounds alone.
    """
    figure = median(result)
    if doubtful.stated(result).is_median:
        return figure
    lower, upper = bounds(result)
    return stated_number(result) if lower != upper else f"{figure}, {stated_number(result)}"
