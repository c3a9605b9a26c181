# SPDX-License-Identifier: Apache-2.0
"""Printed cells as numbers with their rounding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: A cell in which nothing was printed.
NOTHING: Final = "-"
#: A cell of a diagram, which shows a value without its number.
DRAWN: Final = "drawn"
_POWER: Final = re.compile(r"2\^(\d{1,2})")
_NUMBER: Final = re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<million>M?)")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as it was printed.

    Attributes:
        half: half a unit of the last digit, which is the largest error of rounding; 0 = exact.
    """

    value: float
    half: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest number that are rounded to the printed number."""
        return self.value - self.half, self.value + self.half

    def times(self, factor: float) -> Printed:
        """Return the number in another unit, `factor` times as large, with its rounding."""
        return Printed(self.value * factor, self.half * factor)

    def exact(self) -> Printed:
        """Return a number without rounding, which was set and not measured."""
        return Printed(self.value)


def read(cell: str) -> Printed | None:
    """Read a cell; None where no number was printed.

    Args:
        cell: "2^23", "1,341", "45.5", "1.56M", "(2,758,621)", "-" or "drawn".
    """
    if cell in {NOTHING, DRAWN}:
        return None
    bare = cell.removeprefix("(").removesuffix(")")
    if power := _POWER.fullmatch(bare):
        return Printed(float(2 ** int(power[1])))
    number = _NUMBER.fullmatch(bare)
    if number is None:
        raise ValueError(f"{cell!r}: is no number; write it as in 1,341 or 45.5 or 1.56M or 2^23 or -")
    decimals, unit = number["decimals"] or "", 1e6 if number["million"] else 1.0
    value = float(f"{number['whole'].replace(',', '')}.{decimals or 0}")
    return Printed(value, 0.5 * 10 ** -len(decimals)).times(unit)
