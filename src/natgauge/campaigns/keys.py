# SPDX-License-Identifier: Apache-2.0
"""What a plan may name: the options of `natgauge measure`, with "_" for "-", each in its own part of the plan.

Nothing is described here a second time: names, kinds and words come from traffic, labs, devices and procedures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from natgauge.bench.question import GROUPS, place_options
from natgauge.campaigns.formula import evaluate
from natgauge.errors import UsageError, did_you_mean
from natgauge.host.cpus import usable_cpus
from natgauge.options import Option, options_of
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.settings import DECIDED_ELSEWHERE

Part = Literal["lab", "traffic", "device"]
#: The parts of a plan that fix a cell, and the groups of options they hold.
PARTS: Final[Mapping[Part, str]] = {"lab": "options", "traffic": "traffic", "device": "wishes"}
#: Options that the plan itself has.
_ELSEWHERE: Final = frozenset({"seed"})
#: Settings that the whole plan decides unless a measurement has its own.
WHOLE: Final = {"profile": "profile", "repeat": "repetitions"}
#: Keys of a point that are no options: what its cells are called, and a number of repetitions of their own.
POINT: Final = ("name", "repetitions")
#: What a measurement may have beside settings of its metric.
MEASURE: Final = ("metric", "devices", "points")
#: Knobs whose value a formula of N may give.
FORMULAS: Final = frozenset({"table_size", "hash_size"})
#: A whole number of it is how many cores there are to be, a text names them.
CORES: Final = frozenset({"cores", "sender_cores"})


@dataclass(frozen=True, slots=True)
class Key:
    """One name of a plan.

    Attributes:
        name: of the option.
        kind: int, float, bool or str.
        words: the only ones allowed; empty = anything of the kind.
    """

    name: str
    kind: type
    words: tuple[str, ...] = ()


@cache
def of_part(part: Part) -> Mapping[str, Key]:
    """Every key of a part of the plan."""
    options: list[Option] = list(options_of(GROUPS[PARTS[part]]))
    if part == "lab":
        options += [option for option, _ in place_options().values()]
    return {one.name: Key(one.name, one.kind, one.words) for one in options if one.name not in _ELSEWHERE}


@cache
def of_cell() -> Mapping[str, Key]:
    """Every key that fixes a cell."""
    return {name: key for part in PARTS for name, key in of_part(part).items()}


@cache
def of_metric(metric: str) -> Mapping[str, Key]:
    """Every setting of a metric.

    Raises:
        UsageError: there is none of this name.
    """
    found = get(metric).parameters()
    return {one.name: Key(one.name, one.read_as) for one in found if one.name not in DECIDED_ELSEWHERE}


@cache
def of_series() -> Mapping[str, Key]:
    """Every key that may have several values."""
    settings = {name: key for metric in procedures() for name, key in of_metric(metric).items() if name not in WHOLE}
    return {**settings, **{name: key for name, key in of_cell().items() if name not in {"lab", "lab_name"}}}


def of_point() -> Mapping[str, Key]:
    """Every key that a point of several keys may have, beside `POINT`."""
    return {name: key for name, key in of_series().items() if name in of_cell()}


def find(name: str, known: Mapping[str, Key]) -> Key:
    """The key of this name.

    Raises:
        UsageError: there is none; a near one is named.
    """
    if name not in known:
        raise UsageError(f"unknown key; {did_you_mean(name, known)}")
    return known[name]


def checked(key: Key, value: object) -> object:
    """A value of the key's kind; a number stands for its own text.

    Raises:
        UsageError: it is of another kind, or not among the words allowed.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key.name in CORES and isinstance(value, int) and number:
        so_many(value)
        return value
    if key.name in FORMULAS and isinstance(value, str):
        evaluate(value, 1)
        return value
    if key.words and value not in key.words:
        raise UsageError(f"{value!r} is not one of {', '.join(key.words)}")
    if key.kind is bool and isinstance(value, bool):
        return value
    if key.kind is str and (number or isinstance(value, str)):
        return str(value)
    if (key.kind is int and number and isinstance(value, int)) or (key.kind is float and number):
        return value
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[key.kind]
    raise UsageError(f"{value!r} is not {wanted}")


def so_many(number: int) -> str:
    """The last cores, so many: the first ones are left to the tester where it has its own.

    Raises:
        UsageError: there are not so many.
    """
    there = usable_cpus()
    if not 1 <= number <= len(there):
        raise UsageError(
            f"{number} cores asked for, this machine has {len(there)}; a text such as '0,2-3' names cores, and "
            "natgauge plan check --cores N checks a plan for another machine"
        )
    return ",".join(map(str, there[-number:]))
