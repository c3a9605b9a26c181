# SPDX-License-Identifier: Apache-2.0
"""Things a user may choose, described once: fields of dataclasses that tell their own help, unit and allowed words.

The command line makes its options of them, the Python API its keywords.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Option:
    """One choice as the user sees it.

    Attributes:
        name: of the keyword; the command line's option has "-" for "_".
        help: one sentence, without a full stop.
        metavar: what stands for the value in the help; empty = made of the kind.
        default: in words; empty = told nowhere.
        kind: int, float, bool or str.
        words: the only ones allowed; empty = anything of the kind.
    """

    name: str
    help: str
    metavar: str
    default: str
    kind: type
    words: tuple[str, ...]

    def with_help(self, text: str) -> Option:
        """The same with another help."""
        return dataclasses.replace(self, help=text)


def choice(text: str, metavar: str = "", *, default: str = "") -> dict[str, str]:
    """Metadata of a dataclass's field that the user may choose.

    Args:
        text: the help, one sentence without a full stop.
        metavar: what stands for the value.
        default: in words, where the field's own default would not say it.
    """
    return {"help": text, "metavar": metavar, "default": default}


def options_of(kind: type) -> tuple[Option, ...]:
    """Every field of a dataclass that the user may choose, in order."""
    hints = typing.get_type_hints(kind)
    return tuple(_option(item, hints[item.name]) for item in dataclasses.fields(kind) if "help" in item.metadata)


def _option(item: dataclasses.Field[Any], hint: Any) -> Option:
    alternatives = [part for part in (typing.get_args(hint) or (hint,)) if part is not type(None)]
    words = next((typing.get_args(part) for part in (hint, *alternatives) if typing.get_origin(part) is Literal), ())
    kind = next((part for part in (bool, int, float) if part in alternatives and not words), str)
    default = item.metadata["default"] or ("" if item.default in (None, False) else str(item.default))
    return Option(item.name, item.metadata["help"], item.metadata["metavar"], default, kind, words)
