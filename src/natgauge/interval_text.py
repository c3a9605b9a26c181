# SPDX-License-Identifier: Apache-2.0
"""How figures with an interval are written for people: the digits that it resolves, and never a narrower interval."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Final, Literal, Self

from natgauge.figure_text import (
    DIGITS,
    MOST_DIGITS,
    PREFIXES,
    at_least,
    at_most,
    exact,
    last_place,
    magnitude,
    number,
    plain,
    quantized,
    rounded_at,
    short,
    spelled,
    whole,
)

#: Ways of rounding.
Way = Literal["near", "down", "up"]
_WAYS: Final[Mapping[Way, str]] = {"near": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}
#: Whole numbers from here on that are known to one are counts.
_COUNT: Final = 100
#: An interval of shares as wide as this has no digit after the point of a percent.
_WIDE_SHARE: Final = 0.2
#: A half width in percent below this is only said to be less.
_LEAST_PERCENT: Final = 0.1
#: "±" of the longer side is written where it makes the interval no wider than by this factor.
_NEARLY_EVEN: Final = 1.25
#: A wider interval is written by its ends.
_WIDEST_PERCENT: Final = 50


class Written(str):
    """The text of a figure, and the figure in full, for forms that programs read.

    Attributes:
        bound: "<=" where the true figure does not exceed it, ">=" where it reaches it; else empty.
    """

    __slots__ = ("bound", "value")
    value: float
    bound: str

    def __new__(cls, text: str, value: float, bound: str = "") -> Self:
        """Return the text with its figure."""
        written = super().__new__(cls, text)
        written.value = value
        written.bound = bound
        return written


def significant(value: float, way: Way = "near") -> str:
    """Return a figure with four significant digits and no prefix, as published tables have them."""
    place = magnitude(value) - MOST_DIGITS + 1
    return plain(rounded_at(value, place) if way == "near" else quantized(exact(value), place, _WAYS[way]))


def decimals(value: float, number: int, way: Way = "near") -> str:
    """Return a figure with so many digits after the point, as published tables have them, or more where it were 0."""
    rounded = quantized(exact(value), -number, _WAYS[way])
    if _is_lost(value, rounded):
        rounded = quantized(exact(value), magnitude(value), _WAYS[way])
    elif way == "near":
        return f"{value:.{number}f}"
    return f"{rounded:f}"


def resolved(value: float, low: float, high: float) -> str:
    """Return a figure with as many digits as its interval resolves: two digits of half the width, or of itself."""
    return spelled(_centre(value, low, high))


def within(value: float, low: float, high: float) -> str:
    """Return a figure with its interval, such as "465 k ± 11 %" or "465 k (430 k to 520 k)"."""
    return "".join(figure_and_interval(value, low, high))


def figure_and_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """Return the parts of `within`, between which the unit is written; the interval begins with a blank or is empty."""
    figure = resolved(value, low, high)
    if low == high == value:
        return figure, ""
    text = margin(value, low, high)
    return figure, f" {text if text.startswith('±') else f'({text})'}"


def with_ends(value: float, low: float, high: float) -> str:
    """Return a figure with both ends of its interval: a figure in %, whose "± 11 %" is read as percentage points."""
    figure = resolved(value, low, high)
    return figure if low == high == value else f"{figure} ({span(low, high)})"


def margin(value: float, low: float, high: float) -> str:
    """Return the interval of a figure that `resolved` writes: as "± 11 %", or by its ends where that would mislead.

    What is written contains the interval.
    """
    longest = _longer_side(value, low, high)
    if longest is None:
        return span(low, high)
    if longest < _LEAST_PERCENT:
        return f"± less than {_LEAST_PERCENT} %"
    return f"± {plain(quantized(longest, 0 if longest >= 10 else -1, ROUND_CEILING))} %"


def is_in_percent(value: float, low: float, high: float) -> bool:
    """Whether `margin` writes the interval as "± 11 %", and not by its ends."""
    return _longer_side(value, low, high) is not None


def _longer_side(value: float, low: float, high: float) -> Decimal | None:
    """The longer side of an interval in percent of the figure; None where that would mislead."""
    if not all(map(math.isfinite, (value, low, high))):
        return None
    centre = _centre(value, low, high)
    if centre <= 0:
        return None
    shares = [100 * abs(exact(end) - centre) / centre for end in (low, high)]
    longest, width = max(shares), sum(shares)
    if longest > _WIDEST_PERCENT or (longest > _LEAST_PERCENT and 2 * longest > Decimal(_NEARLY_EVEN) * width):
        return None
    return longest


def span(low: float, high: float, beside: float | None = None) -> str:
    """Return an interval by its ends, rounded outward; an end that is not 0 is not written as 0.

    Ends have as many digits as show on which side of the figure `beside` they are.
    """
    if low == high:
        return _at_end(low, beside, "near") or number(low)
    if math.isinf(high):
        if math.isinf(low) or low <= 0:
            return "any number"
        return f"{_at_end(low, beside, 'down') or at_least(low)} or more"
    if math.isinf(low):
        return f"{_at_end(high, beside, 'up') or at_most(high)} or less"
    place = _place(high - low, max(abs(low), abs(high)))
    placed = _placed(low, beside, place, "down"), _placed(high, beside, place, "up")
    place = min(int(end.as_tuple().exponent) for end in placed)
    first, last = (quantized(exact(end), place, way) for end, way in ((low, ROUND_FLOOR), (high, ROUND_CEILING)))
    lower = at_least(low) if _is_lost(low, first) else spelled(first)
    return f"{lower} to {at_most(high) if _is_lost(high, last) else spelled(last)}"


def _at_end(value: float, beside: float | None, way: Way) -> str:
    """Return a figure with more digits than one alone has; empty where those show its side of the other figure."""
    place = last_place(value, DIGITS)
    rounded = _placed(value, beside, place, way)
    return "" if rounded == quantized(exact(value), place, _WAYS[way]) else spelled(rounded)


def _placed(value: float, beside: float | None, place: int, way: Way) -> Decimal:
    """Round to a place, or to a later one, where the rounded figure would be on another side of `beside`."""
    every = (quantized(exact(value), place - more, _WAYS[way]) for more in range(sys.float_info.dig + 1))
    if beside is None:
        return next(every)
    side = exact(value).compare(exact(beside))
    return next((each for each in every if each.compare(exact(beside)) == side), exact(value))


def readings(low: float, high: float, whole: float = math.inf) -> str:
    """Return the ends of a range of what was read, each to the nearest: outward, it would be what nobody read.

    They have the digits of a figure, or those that the range resolves if these are more, and as many as tell both from
    each other, and an upper end that is below the `whole` from it.
    """
    if low == high:
        return number(low)
    place = _place(high - low, max(abs(low), abs(high)))
    for more in range(sys.float_info.dig + 1):
        first, last = (number(end, max(DIGITS, magnitude(end) - place + 1) + more) for end in (low, high))
        if first != last and (high >= whole or last != number(whole)):
            break
    return f"{first} to {last}"


def readings_of(values: Sequence[float]) -> list[str]:
    """Return several values as they were read: with the digits of a figure, or those that their range resolves."""
    low, high = min(values), max(values)
    place = _place(high - low, max(abs(low), abs(high))) if high > low else sys.maxsize
    return [number(value, max(DIGITS, magnitude(value) - place + 1)) for value in values]


def in_bits(text: str) -> str:
    """Return written figures of bits/s with their unit, which joins a prefix."""
    return f"{text}{'' if text[-1:].isalpha() else ' '}bit/s"


def between_bits(low: float, high: float) -> str:
    """Return both bounds of bits/s, rounded outward, with the prefix of the upper one: "0.967 and 1.03 Gbit/s"."""
    upper = at_most(high)
    places = next((places for places, prefix in PREFIXES if upper.endswith(prefix)), 0)
    lower = quantized(exact(low), last_place(low, DIGITS), ROUND_FLOOR).scaleb(-places)
    return f"{plain(lower if places else short(lower))} and {in_bits(upper)}"


def ratio(value: float, way: Way = "near") -> str:
    """Return a ratio with two digits after the point; of large ones three digits that count, of small ones two.

    Ends of an interval are rounded outward, with more digits where they would look like 1.
    """
    if value <= 0:
        return "0"
    digits = 2 if 0.1 <= value < 10 else max(0, (1 if value < 0.1 else 2) - magnitude(value))
    return plain(_unlike(value, 1, digits, way))


def percent(value: float, way: Way = "near", *, width: float = 0.0, sign: bool = False) -> str:
    """Return a share in percent with a digit after the point, such as "21.9 %"; ends of an interval as of `ratio`.

    Args:
        width: width of the interval of the share, which resolves no digit after the point where it is wide.
    """
    rounded = _unlike(100 * value, 0, 0 if _WIDE_SHARE <= width < math.inf else 1, way)
    # Of a share that is the difference of two ratios less is an error of floats.
    if _is_lost(round(100 * value, 9), rounded):
        rounded = rounded_at(100 * value, magnitude(100 * value))
    return f"{'+' if sign and rounded > 0 else ''}{plain(rounded)} %"


def signed(value: float, way: Way = "near") -> str:
    """Return a difference with three digits that count, and its sign."""
    if not value or not math.isfinite(value):
        return f"{value:+g}"
    text = spelled(short(quantized(exact(value), magnitude(value) - DIGITS + 1, _WAYS[way])))
    return text if value < 0 else f"+{text}"


def _unlike(value: float, same: float, digits: int, way: Way) -> Decimal:
    """A number rounded to so many digits after the point, or to more where it would look like `same`."""
    known = exact(float(f"{value:.12g}"))
    every = (quantized(known, -more, _WAYS[way]) for more in range(digits, 16))
    near = quantized(known, -digits, _WAYS[way])
    return near if way == "near" or value == same else next((each for each in every if each != exact(same)), near)


def _is_lost(value: float, rounded: Decimal) -> bool:
    """Whether a figure that is not 0 was rounded to it."""
    return bool(value) and not rounded


def _place(width: float, largest: float) -> int:
    """The exponent of the last digit that an interval of this width resolves, near numbers of this size."""
    resolved = math.floor(math.log10(width / 2)) - 1 if width > 0 and width / 2 > 0 else -math.inf
    return int(max(resolved, magnitude(largest) - MOST_DIGITS + 1))


def _centre(value: float, low: float, high: float) -> Decimal:
    """The figure as it is written."""
    if value >= _COUNT and float(value).is_integer() and max(value - low, high - value) <= 1:
        # A count that is known to one has all its digits.
        return Decimal(whole(value))
    if not math.isfinite(high - low):
        return rounded_at(value, last_place(value, DIGITS))
    place = _place(high - low, abs(value))
    # An interval that leaves less than two digits resolves nothing: 60 k is not 100 k, and 9 k not 0.
    return rounded_at(value, place if place < magnitude(value) else last_place(value, DIGITS))
