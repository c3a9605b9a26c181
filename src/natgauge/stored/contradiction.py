# SPDX-License-Identifier: Apache-2.0
"""Two values of one fact that differ: the comparison of values, and the error that names both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from natgauge.errors import UsageError

#: Versions of Python and of libm may round the last digit differently.
_ROUNDING: Final = 1e-9


class ContradictionError(UsageError):
    """A results folder says two things about one fact."""

    def __init__(self, where: Path, field: str, said: object, other: str, value: object) -> None:
        super().__init__(
            f"results: {where}: {field} is {_shown(said)}, but {other} {_shown(value)}: the folder was edited or "
            "damaged; leave it out, or measure again"
        )


def expect(field: str, said: Any, expected: Any, source: str, where: Path) -> None:
    """Refuse a value of a record that is not the one of its source, with the innermost field in which they differ."""
    if isinstance(said, Mapping) and isinstance(expected, Mapping) and said.keys() == expected.keys():
        for name, value in said.items():
            expect(f"{field}: {str(name).replace('_', ' ')}", value, expected[name], source, where)
    elif isinstance(said, list | tuple) and isinstance(expected, list | tuple) and len(said) == len(expected):
        for number, (value, other) in enumerate(zip(said, expected, strict=True), start=1):
            expect(f"{field} {number}", value, other, source, where)
    elif not same(said, expected):
        raise ContradictionError(where, field, said, source, expected)


def same(said: JsonValue | object, other: object) -> bool:
    """Whether two values are equal, numbers but for rounding."""
    if (isinstance(said, float) and is_number(other)) or (isinstance(other, float) and is_number(said)):
        return _is_near(said, other)
    return type(said) is type(other) and said == other if isinstance(said, bool) else said == other


def _is_near(one: Any, other: Any) -> bool:
    """Whether two numbers are equal but for rounding; a whole number that no float holds is near to none."""
    try:
        return math.isclose(float(one), float(other), rel_tol=_ROUNDING, abs_tol=1e-300)
    except OverflowError:
        return False


def is_number(value: object) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.12g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
