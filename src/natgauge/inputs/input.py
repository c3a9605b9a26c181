# SPDX-License-Identifier: Apache-2.0
"""The description of an input, which is stored in the metadata of a dataclass's field."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, Literal

from natgauge.errors import about
from natgauge.inputs.checks import Check, in_range, one_of, share_in, spoken, whole
from natgauge.inputs.types import Flag, InputType, Number, Share, Text, Whole, Words
from natgauge.words import Group

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
