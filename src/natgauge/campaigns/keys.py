# SPDX-License-Identifier: Apache-2.0
"""Keys of a plan: the options of `natgauge measure`, with "_" for "-", each in its own part of the plan.

Names, types and help texts come from the descriptions of inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_args

from natgauge.campaigns.formula import evaluate
from natgauge.errors import UsageError, did_you_mean
from natgauge.host.cpus import usable_cpus
from natgauge.inputs.checks import in_range, wrong
from natgauge.inputs.cores import MOST_CORES, CoreList, DeviceCoreList
from natgauge.inputs.input import Input
from natgauge.inputs.question import DEFAULT_LAB
from natgauge.inputs.types import Text
from natgauge.labs import kinds
from natgauge.metrics.metric import THRESHOLDS
from natgauge.procedures import get, procedures
from natgauge.setup.cell import inputs_of_part, place_inputs

Part = Literal["lab", "traffic", "device"]
#: The parts of a plan that fix a cell; each is a field of `Cell`.
PLAN_PARTS: Final[tuple[Part, ...]] = get_args(Part)
#: Options that are keys of the plan itself.
_ELSEWHERE: Final = frozenset({"seed"})
#: Settings that the whole plan decides unless a measurement has its own.
WHOLE: Final = {"profile": "profile", "repeat": "repetitions"}
#: Keys of a point that are no options: the name of its cells, their repetitions, and columns of a published table.
POINT: Final = ("name", "repetitions", "columns")
#: Keys of a measurement in addition to the settings of its metric.
MEASURE: Final = ("metric", "gateways", "points", "columns", "quantities")
#: Knobs whose value a formula of N may give.
FORMULAS: Final = frozenset({"table_size", "hash_size"})
#: A whole number is the number of cores, a text names cores of this machine.
CORES: Final = frozenset({"cores", "sender_cores"})


@cache
def of_part(part: Part) -> Mapping[str, Input]:
    """Every key of a part of the plan."""
    inputs = list(inputs_of_part(part))
    if part == "lab":
        inputs += [input_ for input_, _ in place_inputs().values()]
    return {input_.name: input_ for input_ in inputs if input_.name not in _ELSEWHERE}


@cache
def of_cell() -> Mapping[str, Input]:
    """Every key that fixes a cell."""
    return {name: key for part in PLAN_PARTS for name, key in of_part(part).items()}


@cache
def of_metric(metric: str) -> Mapping[str, Input]:
    """Every setting of a metric."""
    return {input_.name: input_ for input_ in get(metric).own_inputs()}


@cache
def of_series() -> Mapping[str, Input]:
    """Every key that may have several values."""
    single = {*WHOLE, *THRESHOLDS.values()}
    settings = {name: key for metric in procedures() for name, key in of_metric(metric).items() if name not in single}
    return {**settings, **{name: key for name, key in of_cell().items() if name not in {"lab", "lab_name"}}}


def of_point() -> Mapping[str, Input]:
    """Return the keys that a point may have in addition to `POINT`."""
    return {name: key for name, key in of_series().items() if name in of_cell()}


def find(name: str, known: Mapping[str, Input]) -> Input:
    """The input of this name."""
    if name not in known:
        raise UsageError(f"unknown key; {did_you_mean(name, known)}")
    return known[name]


def checked(key: Input, value: object) -> object:
    """Return the value of a key; for a text, a number is converted to its digits.

    For some keys the range depends on the device; it is checked with the cell.
    """
    number = isinstance(value, int) and not isinstance(value, bool)
    if key.name in FORMULAS and isinstance(value, str):
        evaluate(value, 1)
        return value
    if key.name in CORES and number and isinstance(value, int):
        in_range("", value, 1, MOST_CORES, "cores")
        return value
    key.type.take("", value)
    if isinstance(key.type, DeviceCoreList) and isinstance(value, Mapping):
        return key.type.write(key.type.take("", value))
    return str(value) if isinstance(key.type, Text | CoreList | DeviceCoreList) else value


def with_cores(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a cell with each number of cores as the option of its lab that takes it."""
    values = dict(choices)
    option = kinds.get(str(choices.get("lab", DEFAULT_LAB))).cores_option
    if option and type(choices.get("cores")) is int:
        if option in choices:
            raise UsageError(f"cores: {option} gives the number of cores, too; leave one out", at="cores")
        values[option] = values.pop("cores")
    return {
        name: last_cores(name, value) if name in CORES and type(value) is int else value
        for name, value in values.items()
    }


def last_cores(name: str, number: int) -> str:
    """Return the last `number` cores; the first cores are for the tester if it has its own."""
    usable = usable_cpus()
    if not 1 <= number <= len(usable):
        raise wrong(
            name,
            f"{number} asked for, this machine has {len(usable)} cores; a text such as "
            "'0,2-3' names cores, and natgauge plan check --cores N checks a plan for another machine",
        )
    return ",".join(map(str, usable[-number:]))
