# SPDX-License-Identifier: Apache-2.0
"""The description of an input: its type, the rules for its values, and its entry in a field's metadata.

A rule refuses a value in one line that names the value and the rule. A type says how a value is read from the command
line, taken from a plan or from Python, and written again. `read` accepts every text that `write` makes, so a command
line made of values gives the same values. A dataclass stores the description of an input in the metadata of its field.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypeGuard

from natgauge.errors import UsageError, about, shown
from natgauge.words import Group

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
    ends = f"{_for_people(lowest)} to {_for_people(highest)} {unit}".rstrip()
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


def _for_people(number: float) -> str:
    return f"{int(number):,}" if float(number).is_integer() else f"{number:g}"


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


def _meant_number(text: str, *, seconds: bool = False, whole: bool = False) -> str:
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


#: Of an input for `chosen` that is "A" or "A-B": of its addresses or ports only their number moves figures.
ABOUT_RANGE: Final[Mapping[str, Any]] = {"type": Text("A-B"), "moves_figures": False}


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
        form = _meant_number(value, seconds=self.seconds, whole=self.whole) if isinstance(value, str) else ""
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


_KEY: Final = "input"


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """An input that a user may choose.

    Attributes:
        name: name of the Python keyword and of the plan's key; the command line's option has "-" for "_".
        default: the value where none is chosen; None = natgauge chooses.
        check: refuses values of the right type; it is asked about every value but a None that is the default.
        parameter: its name among the parameters of a result, where that is another one.
    """

    name: str
    help: str
    type: InputType
    unit: str = ""
    default: Any = None
    default_text: str = ""
    check: Check | None = field(default=None, compare=False)
    label: str = ""
    group: Group = "settings"
    moves_figures: bool = True
    parameter: str = ""
    section: str = ""
    also: tuple[str, ...] = ()
    required: bool = False

    @property
    def option(self) -> str:
        """The option on the command line, such as "--trial-seconds"."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def option_off(self) -> str:
        """The option that turns a flag off."""
        return self.option.replace("--", "--no-", 1)

    @property
    def sentence(self) -> str:
        """The help with a capital letter."""
        return self.help[:1].upper() + self.help[1:]

    @property
    def default_shown(self) -> str:
        """The default in words; empty where there is none."""
        if self.default_text or self.default is None or self.default is False:
            return self.default_text
        return "" if isinstance(self.type, Flag) else self.type.write(self.default)

    def given(self, value: Any) -> list[str]:
        """The words of a command line that give this value; none for a flag that is off by default and stays off."""
        if not isinstance(self.type, Flag):
            return [self.option, self.type.write(value)]
        return [self.option] if value else [self.option_off] if self.default else []

    def take(self, value: object) -> Any:
        """A value of a plan or of Python."""
        return self.checked(self.typed(value))

    def typed(self, value: object) -> Any:
        """A value of a plan or of Python, which is checked where it is used."""
        with about(self.name):
            return self.type.take(spoken(self.name), value)

    def read(self, text: str) -> Any:
        """A value of the command line."""
        with about(self.name):
            return self.checked(self.type.read(spoken(self.name), text))

    def checked(self, value: Any) -> Any:
        """The value, if its check does not refuse it."""
        if self.check is not None and not (value is None and self.default is None):
            with about(self.name):
                self.check(spoken(self.name), value)
        return value


def chosen(
    value: Any, /, text: str, unit: str = "", check: Check | tuple[float, float] | None = None, **more: Any
) -> Any:
    """Return a dataclass's field that is an input with this default; `MISSING` = it must be given."""
    return dataclasses.field(default=value, metadata=described(text, unit, check, **more))


def described(
    text: str, unit: str = "", check: Check | tuple[float, float] | None = None, *, default: str = "", **more: Any
) -> dict[str, Any]:
    """Return the metadata of a dataclass's field that is an input.

    The check of a number may be its lowest and highest value. `default` says in words what the field's own default does
    not. Further parts are those of `Input`, by name. Without them, its type is made of the field's annotation and its
    unit, its label is the name with spaces, its parameter the name, and its group that of the class.
    """
    return {_KEY: {"help": text, "unit": unit, "check": check, "default_text": default, **more}}


def inputs_of(kind: type, group: Group = "settings") -> tuple[Input, ...]:
    """Every field of a dataclass that is an input, in order; `group` is that of the inputs that name none."""
    # mypy takes a class for something that may have no hash.
    return _inputs_of(typing.cast("Hashable", kind), group)


@cache
def _inputs_of(kind: Any, group: Group) -> tuple[Input, ...]:
    hints = typing.get_type_hints(kind)
    return tuple(_input(item, hints[item.name], group) for item in dataclasses.fields(kind) if _KEY in item.metadata)


def check_all(instance: Any) -> None:
    """Refuse every value of a dataclass that its input's check refuses."""
    for input_ in inputs_of(type(instance)):
        input_.checked(getattr(instance, input_.name))


def _input(item: dataclasses.Field[Any], hint: Any, group: Group) -> Input:
    description: Mapping[str, Any] = item.metadata[_KEY]
    unit, required = description["unit"], item.default is dataclasses.MISSING
    read = description.get("type") or _type_of(hint, unit)
    check = _check_of(description["check"], read, unit)
    usual = {"label": spoken(item.name), "group": group, "parameter": item.name}
    own = {
        "name": item.name,
        "type": dataclasses.replace(read, check=check) if isinstance(read, Share) else read,
        "check": check,
        "default": None if required else item.default,
        "required": required,
    }
    return Input(**{**usual, **description, **own})


def _check_of(check: Check | tuple[float, float] | None, read: InputType, unit: str) -> Check | None:
    if not isinstance(check, tuple):
        return check or (partial(one_of, allowed=read.words) if read.words else None)
    lowest, highest = check
    if isinstance(read, Share):
        return partial(share_in, lowest=lowest, highest=highest)
    if isinstance(read, Whole):
        return partial(whole, lowest=int(lowest), highest=int(highest), unit=unit)
    return partial(in_range, lowest=lowest, highest=highest, unit=unit)


def _type_of(hint: Any, unit: str) -> InputType:
    alternatives = [part for part in (typing.get_args(hint) or (hint,)) if part is not type(None)]
    for part in (hint, *alternatives):
        if typing.get_origin(part) is Literal:
            return Words.of(typing.get_args(part))
    if bool in alternatives:
        return Flag()
    if int in alternatives:
        return Whole("SECONDS", seconds=True) if unit == "s" else Whole()
    if float in alternatives:
        return {"s": Number("SECONDS", seconds=True), "share": Share()}.get(unit, Number())
    return Text()
