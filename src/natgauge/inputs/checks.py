# SPDX-License-Identifier: Apache-2.0
"""Rules for values, each refused in one line that names the value and the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from natgauge.errors import UsageError, shown

#: The highest rate that the engine paces, frames/s (`trial/request-1.schema.json`).
MOST_RATE: Final = 200_000_000
#: The lowest rate that is taken, a frame in 11 days: times that follow from a lower one are more than a float holds.
LEAST_RATE: Final = 1e-6
#: Refuses a value of the input of this name, or does nothing.
Check = Callable[[str, Any], None]


def spoken(name: str) -> str:
    """A setting's name as messages have it."""
    return name.replace("_", " ")


def wrong(name: str, what: str) -> UsageError:
    """Return the error of a wrong value of the input `name`; what is wrong names the value and the rule."""
    return UsageError(f"{spoken(name)}: {what}", at=name)


def of_value(subject: str, what: str) -> str:
    """What is wrong with a value, after the words for its input; without words the caller knows which input it is."""
    return f"{subject}: {what}" if subject else what


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, which a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_range(name: str, value: float, lowest: float, highest: float, unit: str = "") -> None:
    """Refuse a number outside of lowest to highest (both allowed), NaN and infinity included."""
    ends = f"{_plain(lowest)} to {_plain(highest)} {unit}".rstrip()
    if not is_number(value) or math.isnan(value):
        raise UsageError(of_value(name, f"{shown(value)} is not a number; give {ends}"))
    if not lowest <= value <= highest:
        raise UsageError(of_value(name, f"{value!r} is outside of {ends}"))


def whole(name: str, value: int, lowest: int, highest: int, unit: str = "") -> None:
    """Refuse anything but a whole number from lowest to highest."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(of_value(name, f"{shown(value)} is not a whole number"))
    in_range(name, value, lowest, highest, unit)


def share_in(name: str, value: float, lowest: float, highest: float) -> None:
    """Refuse a share outside of lowest to highest (both allowed), NaN and infinity included; 1 = 100 %."""
    if not is_number(value) or not lowest <= value <= highest:
        text = percent(value) if is_number(value) and math.isfinite(value) else shown(value)
        raise UsageError(of_value(name, f"{text} is outside of {percent(lowest)} to {percent(highest)}"))


def percent(share: float) -> str:
    """A share as people write it: 0.01 is 1%."""
    return f"{share * 100:.10g}%"


def positive(name: str, value: float, unit: str) -> None:
    """Refuse zero, negative numbers, NaN and infinity."""
    if not is_number(value) or not math.isfinite(value):
        raise UsageError(of_value(name, f"{shown(value)} is no finite number of {unit}; give one above 0"))
    if value <= 0:
        raise UsageError(of_value(name, f"{value!r} {unit} are too few; give more than 0"))


def paced(name: str, value: float, unit: str) -> None:
    """Refuse a rate that the tester cannot pace: its clock has a limit, and a trial an end."""
    positive(name, value, unit)
    if value < LEAST_RATE:
        raise UsageError(of_value(name, f"{value:g} {unit} is less than can be paced; the least is {LEAST_RATE:g}"))
    if value > MOST_RATE:
        raise UsageError(of_value(name, f"{value:g} {unit} is more than can be paced; the most is {MOST_RATE:,}"))


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list."""
    if value not in allowed:
        raise UsageError(of_value(name, f"{value!r} is unknown; choose one of {', '.join(allowed)}"))


def _plain(number: float) -> str:
    return f"{int(number):,}" if float(number).is_integer() else f"{number:g}"
