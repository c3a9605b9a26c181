# SPDX-License-Identifier: Apache-2.0
"""Formulas of a plan: a knob's value from the number of connections, such as "2^ceil(log2(N))"."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Final

from natgauge.errors import UsageError

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
    return float(base**exponent)
