# SPDX-License-Identifier: Apache-2.0
"""Keys of a plan: the options of `natgauge measure`, with "_" for "-", each in its own part of the plan.

Names, types and help texts come from the descriptions of inputs.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Literal, get_args

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
#: Longest formula; realistic ones are far shorter.
_MOST_CHARACTERS: Final = 200
#: A power beyond this is no size of anything, and would take for ever.
_LARGEST_EXPONENT: Final = 64
_LARGEST: Final = 2**64
_OPERATORS: Final[Mapping[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "log2": math.log2,
}  # fmt: skip


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


@cache
def of_place() -> frozenset[str]:
    """Names of keys that may choose the machine of the device, or change what its version says, as its cores do."""
    return frozenset(place_inputs())


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


def evaluate(text: str, connections: int) -> int:
    """The value of a formula.

    Args:
        text: of N, numbers, `+ - * / // ^`, min, max, ceil, floor and log2.
        connections: N, at least 1.
    """
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"formula of {len(text)} characters is longer than {_MOST_CHARACTERS}")
    try:
        value = _value(ast.parse(text.strip().replace("^", "**"), mode="eval").body, connections)
        # Whole numbers have no limit in Python, but those that no float holds are too large anyway.
        float(value)
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise UsageError(f"formula {text!r} has no value with N = {connections}: {error}") from None
    if not math.isfinite(value) or not 0 <= value <= _LARGEST:
        raise UsageError(f"formula {text!r} gives {value:g} with N = {connections}, outside of 0 to 2^64")
    if value != int(value):
        raise UsageError(f"formula {text!r} gives {value:g} with N = {connections}, no whole number; use ceil or floor")
    return int(value)


def _value(node: ast.expr, connections: int) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id="N"):
            return connections
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, connections)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, connections), _value(right, connections))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, connections), _value(right, connections))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, connections) for argument in arguments))
    raise ValueError(f"only N, numbers, + - * / // ^ and {', '.join(_FUNCTIONS)} are known")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _LARGEST_EXPONENT or abs(base) > _LARGEST:
        raise ValueError(f"{base:g}^{exponent:g} is too large")
    power = base**exponent
    # Above 2^53, a float would be another whole number.
    return power if isinstance(power, int) else float(power)
