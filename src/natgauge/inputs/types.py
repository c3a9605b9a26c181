# SPDX-License-Identifier: Apache-2.0
"""Types of inputs: how each is read from the command line, taken from a plan or from Python, and written again.

`read` accepts every text that `write` makes, so a command line made of values gives the same values.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

from natgauge.errors import UsageError, shown
from natgauge.inputs.checks import Check, is_number, of_value

#: Names that a shell may complete, by what they are of.
Names = Literal["kinds", "labs"]

#: A number as people write it, with a unit or with separators.
_NUMBER: Final = re.compile(r"([+-]?\d[\d_,' ]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*([a-zµ]*)", re.IGNORECASE)
_THOUSANDS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS: Final = {
    "": Decimal(1), "ms": Decimal("0.001"), "s": Decimal(1), "sec": Decimal(1), "m": Decimal(60), "min": Decimal(60),
    "h": Decimal(3600),
}  # fmt: skip
#: No number that was meant has more digits.
_LARGEST: Final = 10**15


@dataclass(frozen=True)
class InputType(ABC):
    """The type of an input's value.

    Only `words` are allowed where there are any; `names` says what the value is a name of, for completion.
    """

    metavar: str = ""
    annotation: str = "object"
    words: tuple[str, ...] = ()
    names: Names | None = None

    @abstractmethod
    def take(self, name: str, value: object) -> Any:
        """The value from one of a plan or of Python, where numbers are numbers."""

    def read(self, name: str, text: str) -> Any:
        """The value of a text of the command line."""
        return self.take(name, text)

    def write(self, value: Any) -> str:
        """Return the value as a text that `read` accepts."""
        return str(value)


def plain_number(number: float) -> str:
    """Return a number so that `float` reads the same one again."""
    return str(int(Decimal(repr(number)))) if float(number).is_integer() else repr(number)


def meant_number(text: str, *, seconds: bool = False, whole: bool = False) -> str:
    """Return "; write NUMBER" for a number with a unit or with separators; empty where none was meant.

    Of a time in seconds "m" means minutes, and not millions; `whole`: only whole numbers will do.
    """
    match = _NUMBER.fullmatch(text.strip())
    units = _SECONDS if seconds else _THOUSANDS
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        return ""
    meant = Decimal(re.sub(r"[_,' ]", "", match[1])) * factor
    if abs(meant) > _LARGEST or (whole and meant != int(meant)):
        return ""
    return f"; write {int(meant):_}" if meant == int(meant) else f"; write {meant.normalize():f}"


@dataclass(frozen=True)
class Text(InputType):
    """A text of any length."""

    metavar: str = "TEXT"
    annotation: str = "str"

    def take(self, name: str, value: object) -> str:
        """Return the text; a number is converted to its digits."""
        if isinstance(value, str) or is_number(value):
            return str(value)
        raise UsageError(of_value(name, f"{shown(value)} is not a text"))


@dataclass(frozen=True)
class FileText(Text):
    """The path of a file or folder; with `or_name` a word may be a name instead, and a path has a "/" or a suffix."""

    metavar: str = "FILE"
    or_name: bool = False

    def within(self, folder: Path, value: str) -> str:
        """Return the path of a file that is named in a file of this folder; a name is left as it is."""
        is_name = self.or_name and "/" not in value and not Path(value).suffix
        # That of a home is where it is from any folder.
        return value if is_name or value.startswith("~") else str(folder / value)


@dataclass(frozen=True)
class Unrounded(Text):
    """A text that may look like a number with a point, and would lose its last zeros as one."""

    def take(self, name: str, value: object) -> str:
        """Return the text; only a whole number is converted to its digits."""
        if isinstance(value, float):
            raise UsageError(of_value(name, f"{value!r} is a number with a point; write it in quotes"))
        return super().take(name, value)


@dataclass(frozen=True)
class Words(InputType):
    """One word of a closed set, `words`."""

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """Return the type whose values are these words."""
        known = tuple(words)
        literal = ", ".join(f'"{word}"' for word in known)
        return cls(metavar=f"[{'|'.join(known)}]", annotation=f"Literal[{literal}]", words=known)

    def take(self, name: str, value: object) -> str:
        """Return the text if it is one of `words`."""
        if isinstance(value, str) and value in self.words:
            return value
        raise UsageError(of_value(name, f"{shown(value)} is unknown; choose one of {', '.join(self.words)}"))


@dataclass(frozen=True)
class Flag(InputType):
    """Yes or no; on the command line an option without a value."""

    annotation: str = "bool"

    def read(self, name: str, text: str) -> bool:
        """Read "true" or "false"."""
        if text in ("true", "false"):
            return text == "true"
        raise UsageError(of_value(name, f"{text!r} is not true or false"))

    def take(self, name: str, value: object) -> bool:
        """Return the boolean."""
        if isinstance(value, bool):
            return value
        raise UsageError(of_value(name, f"{shown(value)} is not true or false"))

    def write(self, value: Any) -> str:
        """Return "true" or "false"."""
        return "true" if value else "false"


@dataclass(frozen=True)
class Number(InputType):
    """A whole or decimal number, of `seconds` a time; its range is the check of the input."""

    metavar: str = "X"
    annotation: str = "float"
    seconds: bool = field(default=False, repr=False)
    whole: ClassVar[bool] = False

    def read(self, name: str, text: str) -> float:
        """Read decimal digits with or without a sign; a number that need not be whole may have an exponent."""
        try:
            return int(text) if self.whole else float(text)
        except ValueError:
            raise self._refused(name, text) from None

    def take(self, name: str, value: object) -> float:
        """The number, a whole one as it is; a boolean is refused."""
        if is_number(value) and (isinstance(value, int) or not self.whole):
            return value
        raise self._refused(name, value)

    def _refused(self, name: str, value: object) -> UsageError:
        form = meant_number(value, seconds=self.seconds, whole=self.whole) if isinstance(value, str) else ""
        return UsageError(of_value(name, f"{shown(value)} is not a {'whole ' * self.whole}number{form or self._form}"))

    @property
    def _form(self) -> str:
        """How to write a number, where none can be guessed."""
        return "; write digits, such as 10"

    def write(self, value: Any) -> str:
        """The number, a whole one without a point."""
        return plain_number(value)


@dataclass(frozen=True)
class Whole(Number):
    """A whole number; its range is the check of the input."""

    metavar: str = "N"
    annotation: str = "int"
    whole: ClassVar[bool] = True


class Percent(float):
    """A number that was written with a percent sign."""


@dataclass(frozen=True)
class Amount(Number):
    """A number that may have a unit of thousands, or a percent sign: "200k", "1.5M", "0.1%".

    `unit` is that of the number, for refusals; empty = it is not known.
    """

    metavar: str = "VALUE"
    annotation: str = "float | str"
    unit: str = field(default="", compare=False)

    @property
    def _form(self) -> str:
        return f"; write it like 250 or 1.5k{f', in {self.unit}' if self.unit else ''}"

    def read(self, name: str, text: str) -> float:
        """Read a decimal number with its unit."""
        bare = text.strip().removesuffix("%")
        factor = _THOUSANDS.get(bare[-1:].lower(), 1)
        try:
            number = float(Decimal(bare[:-1] if factor > 1 else bare) * factor)
        except ArithmeticError:
            raise self._refused(name, text) from None
        return Percent(number) if text.strip().endswith("%") else number

    def take(self, name: str, value: object) -> float:
        """The number, or that of a text."""
        return self.read(name, value) if isinstance(value, str) else super().take(name, value)


@dataclass(frozen=True)
class Share(InputType):
    """A share of something: "1%" and 0.01 are the same; 1 and more are written with a percent sign.

    `check` is that of the input: what it refuses is no way to write the share. None = every share is allowed.
    """

    metavar: str = "SHARE"
    annotation: str = "float | str"
    check: Check | None = field(default=None, compare=False, repr=False)

    def read(self, name: str, text: str) -> float:
        """The share; 1 = 100 %. A text of 1 or more needs a percent sign: "10" can mean 10 % or 1000 %."""
        share = share_of(text)
        if share is None:
            raise UsageError(of_value(name, f"{text!r} is not a share; write it like 1% or 0.01"))
        if math.isfinite(share) and share >= 1 and "%" not in text:
            ways = {f"{share:g}%": share / 100, f"{100 * share:g}%": share}
            allowed = [way for way, meant in ways.items() if self._allows(name, meant)]
            if self.check is not None and not allowed:
                # The number of percent is the likelier one of two that are both out of range.
                self.check(name, share / 100)
            raise UsageError(of_value(name, f"{text!r} is unclear without a % sign; write {' or '.join(allowed)}"))
        return share

    def _allows(self, name: str, share: float) -> bool:
        if self.check is None:
            return True
        try:
            self.check(name, share)
        except UsageError:
            return False
        return True

    def take(self, name: str, value: object) -> float:
        """The share, from a number or a text."""
        if is_number(value):
            return value
        return self.read(name, Text().take(name, value))

    def write(self, value: Any) -> str:
        """Return the share in percent, with all digits."""
        return f"{(Decimal(repr(float(value))) * 100).normalize():f}%"


def share_of(text: str) -> float | None:
    """Return the share in a text such as "1%" or "0.01", 1 = 100 %; None = there is none."""
    stripped = text.strip()
    try:
        # 99.9 % is the float 0.999, which 99.9 / 100 is not.
        number = Decimal(stripped.removesuffix("%"))
        return float(number / 100 if stripped.endswith("%") else number)
    except (ArithmeticError, ValueError):
        # A signaling NaN has no float.
        return None
