# SPDX-License-Identifier: Apache-2.0
"""How figures without an interval are written for people, durations too; `interval_text` has those with an interval.

CSV, JSON and data frames have figures in full. Everything else that people read is written here.
"""

from __future__ import annotations

import math
import re
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from typing import Final, TypeGuard

#: Significant digits of a figure whose interval is not known, and the most of one whose interval is.
DIGITS: Final = 3
MOST_DIGITS: Final = 4
#: Numbers from here on have a prefix.
_PREFIXED: Final = 10_000
PREFIXES: Final = ((12, " T"), (9, " G"), (6, " M"), (3, " k"))
#: Units of times, each with its power of ten in ns.
_TIMES: Final = ((0, "ns"), (3, "us"), (6, "ms"), (9, "s"))
#: Smaller numbers have an exponent.
_LEAST_PLAIN: Final = Decimal("1e-4")
#: Of a percentage above this, what is missing decides on the digits.
_NEARLY_ALL: Final = 99
_LARGEST: Final = sys.float_info.max
#: What has the singular, as it is written.
_ONE: Final = re.compile(r"(?:(?:at least|at most|up to|about) )?1")
#: A noun in the plural: it ends the words, or is that of a rate, or something follows that belongs to it.
_PLURAL: Final = re.compile(
    r"\b(\w{2,}?)(ies|(?<=s)es|(?<=x)es|(?<=ch)es|(?<=sh)es|s)(?=$|/s\b| (?:of|in|from|to|at|with|that|each|all)\b)"
)


def number(value: object, digits: int = DIGITS) -> str:
    """Return a figure without an interval, such as "465 k" or "0.0123"; whatever is no number as it is."""
    if not _is_figure(value):
        return str(value)
    rounded = rounded_at(value, last_place(value, digits))
    # A number that is written in full needs no zeros behind its last digit.
    return spelled(rounded.normalize() if rounded == exact(value) else short(rounded))


def nanoseconds(value: float) -> str:
    """Return a time that was measured in ns, without an interval: "232 ns", and "14.4 us" instead of "14.4 k ns"."""
    places, unit = next((each for each in _TIMES if abs(value) < _PREFIXED * 10 ** each[0]), _TIMES[-1])
    return f"{number(value / 10**places)} {unit}"


def of_whole(value: object, whole: float) -> str:
    """Return a share without an interval, in the unit in which all is `whole`; only all of it is written as that."""
    text = number(value)
    if _is_figure(value) and value < whole and text == number(whole):
        return _short_of(value, float(exact(whole) - exact(value)))
    return text


def _short_of(value: float, missing: float) -> str:
    """A share that is nearly all; what is missing decides on the digits: 99.96 %, and never 100 %."""
    return plain(short(quantized(exact(value), magnitude(missing), ROUND_FLOOR)))


def in_full(value: object) -> str:
    """Return a number that was set or counted, with all its digits; other values as they are."""
    if not _is_figure(value) or not float(value).is_integer():
        return str(value)
    return f"{whole(value):,}"


def whole(value: float) -> int:
    """Return a whole number as an integer: of a float the digits that it has, of which `int` makes false ones."""
    return int(exact(value))


def with_noun(number: object, many: str, one: str = "") -> str:
    """Return a number, as it is written, with its noun or unit in the plural; of 1 with the singular.

    Args:
        one: the words for 1; empty = those of `many`, with the first noun in the singular: "1 frame/s" of "frames/s".
    """
    is_one = _ONE.fullmatch(str(number))
    return f"{number} {(one or _PLURAL.sub(_singular, many, count=1)) if is_one else many}"


def _singular(plural: re.Match[str]) -> str:
    return f"{plural[1]}y" if plural[2] == "ies" else plural[1]


def _is_figure(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number; strangers may have written a whole number that no float can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def at_least(value: float) -> str:
    """Return a lower bound, rounded down."""
    return _bound(value, ROUND_FLOOR)


def at_most(value: float) -> str:
    """Return an upper bound, rounded up."""
    return _bound(value, ROUND_CEILING)


def in_percent(share: float) -> str:
    """Return a share without an interval in percent."""
    percent = 100 * share
    if _NEARLY_ALL <= percent < 100:
        return f"{_short_of(percent, 100 - percent)} %"
    return f"{number(percent)} %"


def given(share: float) -> str:
    """Return a share that was set, in percent, with all its digits."""
    return f"{100 * share:.10g} %"


def _bound(value: float, way: str) -> str:
    if not math.isfinite(value):
        return str(value)
    return spelled(short(quantized(exact(value), last_place(value, DIGITS), way)))


def last_place(value: float, digits: int) -> int:
    """The exponent of the last digit of a figure without an interval; numbers without a prefix have all before it."""
    return min(0, magnitude(value) - digits + 1) if abs(value) < _PREFIXED else magnitude(value) - digits + 1


def short(value: Decimal) -> Decimal:
    """A number without the zeros behind the point where nothing else is there."""
    return value.to_integral_value() if value == value.to_integral_value() and abs(value) < _PREFIXED else value


def magnitude(value: float) -> int:
    """The exponent of the first digit; of 0 such that it is written as 0."""
    return math.floor(math.log10(abs(value))) if value else DIGITS - 1


def rounded_at(value: float, exponent: int) -> Decimal:
    """A number rounded to this place, or to the next one where that makes it longer, such as 9.996 to 10.00."""
    rounded = quantized(exact(value), exponent, ROUND_HALF_EVEN)
    grown = bool(rounded) and magnitude(value) < rounded.adjusted() and exponent != 0
    return quantized(rounded, exponent + 1, ROUND_HALF_EVEN) if grown else rounded


def exact(value: float | Decimal) -> Decimal:
    """A number as records store it: all digits of an integer, of a float its shortest decimal."""
    return Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)


def quantized(value: Decimal, exponent: int, way: str) -> Decimal:
    """A number rounded to a place, in the given way; an infinite one as it is."""
    if not value.is_finite():
        return value
    with localcontext() as context:
        context.prec = 400
        return value.quantize(Decimal(1).scaleb(exponent), rounding=way)


def spelled(value: Decimal) -> str:
    """A rounded number with thousands separators, or with a prefix."""
    # What is known to one has all its digits: "20.000 k" is read in two ways.
    if not value.is_finite() or int(value.as_tuple().exponent) <= 0 or abs(value) < _PREFIXED:
        return plain(value)
    places, prefix = next((places, prefix) for places, prefix in PREFIXES if abs(value) >= 10**places)
    return f"{plain(value.scaleb(-places))}{prefix}"


def plain(value: Decimal) -> str:
    """A rounded number without a prefix."""
    if not value.is_finite():
        return f"{float(value)}"
    text = f"{value:e}" if value and abs(value) < _LEAST_PLAIN else f"{value:,f}"
    return text.removeprefix("-") if value == 0 else text


#: From here on a duration has minutes, or hours, in place of the smaller unit.
_SECONDS: Final = 90
_MINUTES: Final = 90
#: Campaigns on machines with two shared cores took 1.1 to 2.4 times their estimates: other devices are slower than the
#: simulated one, and disturbed trials are repeated.
_LIKELY_TIMES: Final = 2.5


def duration(seconds: float) -> str:
    """Return seconds in words: "89 s", "1 min 31 s", "1 h 30 min"."""
    if seconds < _SECONDS:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < _MINUTES:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def likely(estimated_seconds: float, most_seconds: float = math.inf) -> str:
    """Return the likely range of a duration that procedures needed on a simulated device: "1 to 3 min".

    `most_seconds` is when a limit of the time ends it.
    """
    estimated_seconds = min(estimated_seconds, most_seconds)
    most = min(estimated_seconds * _LIKELY_TIMES, most_seconds)
    unit, name = (1, "s") if most <= _SECONDS else (60, "min") if most <= 60 * _MINUTES else (3600, "h")
    lower, upper = max(1, round(estimated_seconds / unit)), math.ceil(most / unit)
    return f"{lower} to {upper} {name}" if lower < upper else f"{upper} {name}"
