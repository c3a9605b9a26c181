# SPDX-License-Identifier: Apache-2.0
"""The command that measures a stored result again, made of its typed inputs.

A results folder may come from a stranger, and people copy this command into a root shell. So nothing of the stored text
is shown as it is: every option is one of natgauge's, every value is read by its input and written again, and what
contradicts the record is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from natgauge import procedures
from natgauge.errors import UsageError
from natgauge.inputs.input import Input, inputs_of
from natgauge.inputs.question import DeviceOptions, LabOptions, TrafficOptions
from natgauge.inputs.types import Flag
from natgauge.labs import kinds
from natgauge.words import Group

_BEGINNING: Final = ("natgauge", "measure")
_GATEWAY: Final = "--gateway"
#: A name or path of a recipe, and any other value; no shell takes any of these characters for more than a letter.
_NAME: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+@=-]*")
#: Characters that no value of an option has, or that make further commands of a shell command.
_REFUSED: Final = re.compile(r"[;|&$`()\\\x00-\x1f\x7f]")
#: Inputs whose value in the command is another one than that of a repetition.
_OF_REPETITIONS: Final = frozenset({"seed", "lab_name", "repeat"})
_PARTS: Final[tuple[tuple[type, Group], ...]] = (
    (TrafficOptions, "traffic"), (LabOptions, "place"), (DeviceOptions, "device"),
)  # fmt: skip


def command_again(stored: object, metric: str, gateway: str, parameters: Mapping[str, object] | None = None) -> str:
    """Return the command that measures again; empty where it cannot be made of typed inputs."""
    try:
        words = shlex.split(stored) if isinstance(stored, str) else []
        if (*words[:2], *words[2:3]) != (*_BEGINNING, metric):
            return ""
        return shlex.join([*_BEGINNING, metric, *_again(words[3:], metric, gateway, parameters or {})])
    except (UsageError, ValueError):
        return ""


def _again(words: Sequence[str], metric: str, gateway: str, parameters: Mapping[str, object]) -> Iterator[str]:
    known = {input_.option: input_ for input_ in _inputs(metric)}
    off = {input_.option_off: input_ for input_ in known.values() if isinstance(input_.type, Flag)}
    left = iter(words)
    named = False
    for word in left:
        if word in off:
            yield from off[word].given(value=False)
        elif word == _GATEWAY:
            named = True
            yield from (_GATEWAY, _gateway(next(left, ""), gateway))
        elif word not in known:
            raise ValueError(word)
        elif isinstance(known[word].type, Flag):
            yield from known[word].given(value=True)
        else:
            yield from _written(known[word], next(left, ""), parameters)
    if not named:
        raise ValueError(_GATEWAY)


def _written(input_: Input, text: str, parameters: Mapping[str, object]) -> Sequence[str]:
    """Return the words of an option, from its typed value."""
    value = input_.read(text)
    written = input_.given(value)
    if any(_REFUSED.search(word) for word in written):
        raise ValueError(text)
    recorded = parameters.get(input_.parameter)
    is_known = type(recorded) is type(value) and isinstance(value, int | str) and input_.name not in _OF_REPETITIONS
    if is_known and recorded != value:
        raise ValueError(f"{input_.name}: {recorded!r}")
    return written


def _gateway(text: str, gateway: str) -> str:
    """Return the name or path of a gateway, if it is that of the record."""
    name = text.rpartition("/")[2].removesuffix(".toml")
    if not _NAME.fullmatch(text) or name != gateway:
        raise ValueError(text)
    return text


def _inputs(metric: str) -> Iterator[Input]:
    """Yield every input of a metric's command: of traffic, lab and device, of all kinds of labs, and its settings."""
    for kind, group in _PARTS:
        yield from inputs_of(kind, group)
    for lab in kinds.kinds().values():
        yield from inputs_of(lab.options, "place")
    yield from procedures.get(metric).own_inputs()
