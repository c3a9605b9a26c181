# SPDX-License-Identifier: Apache-2.0
"""Values of settings: what is refused, each in one line, and texts that stand for something else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from natgauge.errors import UsageError


def spoken(name: str) -> str:
    """A setting's name as messages have it."""
    return name.replace("_", " ")


def in_range(name: str, value: float, lowest: float, highest: float, unit: str = "") -> None:
    """Refuse a number outside of lowest to highest (both allowed), NaN and infinity included.

    Raises:
        UsageError: it is outside.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not lowest <= value <= highest:
        spaced = f" {unit}" if unit else ""
        raise UsageError(f"{name}: {value!r} is outside of {_plain(lowest)} to {_plain(highest)}{spaced}")


def whole(name: str, value: int, lowest: int, highest: int, unit: str = "") -> None:
    """Refuse anything but a whole number from lowest to highest.

    Raises:
        UsageError: it is none, or outside.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is not a whole number")
    in_range(name, value, lowest, highest, unit)


def positive(name: str, value: float, unit: str) -> None:
    """Refuse zero, negative numbers, NaN and infinity.

    Raises:
        UsageError: it is one of them.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: {value!r} is not a finite number of {unit} above 0")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list.

    Raises:
        UsageError: it is not.
    """
    if value not in allowed:
        raise UsageError(f"{name}: {value!r} is unknown; choose one of {', '.join(allowed)}")


def shares(name: str, text: str) -> tuple[float, ...]:
    """Read "100%,50%,10%" or "100,50,10": shares of a rate, each once, from the highest down; 1 = 100 %.

    Raises:
        UsageError: one is no number, outside of 0.1 to 100 %, or given twice.
    """
    found = []
    for part in text.split(","):
        try:
            percent = float(part.strip().removesuffix("%"))
        except ValueError:
            raise UsageError(f"{name}: {text!r} is no list of percentages such as 100%,50%,10%") from None
        in_range(name, percent, 0.1, 100, "%")
        found.append(percent / 100)
    if len(set(found)) < len(found):
        raise UsageError(f"{name}: {text!r} names a share twice")
    return tuple(sorted(found, reverse=True))


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


@dataclass(frozen=True, slots=True)
class SearchError:
    """The error of a search (RFC 9693 section 6 reports it): the most by which upper and lower bound may differ.

    Attributes:
        share: of the upper bound, or None; 1e-6 to 0.5.
        rate: in frames/s, or None; above 0. Exactly one of the two is given.
    """

    share: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no search can reach."""
        if (self.share is None) == (self.rate is None):
            raise UsageError("error: give either a share of the result, such as 1%, or a rate, such as 1000")
        if self.share is not None:
            in_range("error (share)", self.share, 1e-6, 0.5)
        if self.rate is not None:
            positive("error", self.rate, "frames/s")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "1%" (a share of the result) or "1000" (frames/s).

        Raises:
            UsageError: it is neither, or out of range.
        """
        percent = text.strip().endswith("%")
        try:
            value = float(text.strip().removesuffix("%"))
        except ValueError:
            raise UsageError(f"error: {text!r} is neither a share such as 1% nor a rate such as 1000") from None
        return cls(share=value / 100) if percent else cls(rate=value)

    def width(self, upper: float) -> float:
        """The most, in frames/s, that the lower bound may lie below this upper bound."""
        return self.rate if self.rate is not None else (self.share or 0.0) * upper

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"{self.rate:g}" if self.rate is not None else f"{(self.share or 0.0) * 100:g}%"
