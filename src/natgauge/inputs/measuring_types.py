# SPDX-License-Identifier: Apache-2.0
"""Types of inputs that only procedures have: loads as shares, numbers of repetitions, errors of searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from natgauge.errors import UsageError
from natgauge.inputs.checks import of_value, positive, share_in
from natgauge.inputs.types import InputType, Share, Text, plain_number, share_of


@dataclass(frozen=True)
class Shares(InputType):
    """Shares of a rate, each once, from the highest down: "100%,50%,10%" and "1,0.5,0.1" are the same.

    The value is the text with percent signs, which is how results store it; `shares` gives the numbers.
    """

    metavar: str = "SHARES"
    annotation: str = "str | Sequence[float]"

    def take(self, name: str, value: object) -> str:
        """The shares in percent, from the highest down ("100%,50%"), of a text or a sequence of numbers."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(map(str, value))
        return ",".join(Share().write(share) for share in shares(name, Text().take(name, value)))


def shares(name: str, text: str) -> tuple[float, ...]:
    """Read "100%,50%,10%" or "1,0.5,0.1": shares of a rate, each once, 0.1 to 100 %, highest first; 1 = 100 %."""
    shares_read = []
    for part in text.split(","):
        share = share_of(part)
        if share is None:
            raise UsageError(of_value(name, f"{text!r} is no list of shares such as 100%,50%,10%"))
        if not 0.001 <= share <= 1:
            raise UsageError(of_value(name, f"{part.strip()!r} is outside of 0.1% to 100%"))
        shares_read.append(share)
    if len(set(shares_read)) < len(shares_read):
        raise UsageError(of_value(name, f"{text!r} names a share twice"))
    return tuple(sorted(shares_read, reverse=True))


@dataclass(frozen=True)
class RepetitionCount(InputType):
    """A number of repetitions, or "auto"."""

    metavar: str = "N|auto"
    annotation: str = 'int | Literal["auto"]'

    def take(self, name: str, value: object) -> int | str:
        """The number, or "auto"; a number may be a text, as in TOML."""
        text = Text().take(name, value)
        if text == "auto":
            return text
        try:
            return int(text)
        except ValueError:
            raise UsageError(of_value(name, f"{text!r} is neither a number nor auto")) from None


@dataclass(frozen=True, slots=True)
class SearchError:
    """The error of a search (RFC 9693 section 6 reports it): the most by which upper and lower bound may differ.

    Attributes:
        share: share of the upper bound, or None; 1e-6 to 0.5.
        rate: in frames/s, or None; at least 1. Exactly one of the two is given.
    """

    share: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no search can reach."""
        if (self.share is None) == (self.rate is None):
            raise UsageError(
                "error: give either a share of the result, such as 1%, or a rate, such as 1000", at="error"
            )
        if self.share is not None:
            share_in("error", self.share, 1e-6, 0.5)
        if self.rate is not None:
            positive("error", self.rate, "frames/s")
            if self.rate < 1:
                raise UsageError(f"error: {self.rate:g} frames/s is below 1; give a share such as 1%", at="error")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "1%" or "0.01" (a share of the result) or "1000" (frames/s); a number below 1 is a share."""
        value = share_of(text)
        if value is None or math.isnan(value):
            raise UsageError(f"error: {text!r} is neither a share such as 1% nor a rate such as 1000", at="error")
        return cls(share=value) if text.strip().endswith("%") or value < 1 else cls(rate=value)

    def width(self, upper: float) -> float:
        """The most, in frames/s, that the lower bound may lie below this upper bound."""
        return self.rate if self.rate is not None else (self.share or 0.0) * upper

    def __str__(self) -> str:
        """Return the error in the form that `parse` accepts."""
        if self.rate is None:
            return Share().write(self.share)
        return plain_number(self.rate)


@dataclass(frozen=True)
class ErrorOfSearch(InputType):
    """The error of a search: a share of the result such as 1%, or a rate such as 1000."""

    metavar: str = "SHARE|RATE"
    annotation: str = "float | str"

    def take(self, name: str, value: object) -> SearchError:
        """The error, from itself, a number or a text such as "2%" or "1000"; see `SearchError.parse`."""
        return value if isinstance(value, SearchError) else SearchError.parse(Text().take(name, value))
