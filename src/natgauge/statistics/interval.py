# SPDX-License-Identifier: Apache-2.0
"""A confidence interval, and an estimate that has one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

#: Coverage that intervals aim at where nothing else is chosen.
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A range that contains the true value with probability `coverage` (0 to 1)."""

    # Stored results are read by pydantic, which refuses further fields and values that are not finite.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    lower: float
    upper: float
    coverage: float

    def __post_init__(self) -> None:
        """Refuse a coverage that is no probability."""
        if not 0 <= self.coverage <= 1:
            raise ValueError(f"coverage: {self.coverage} is outside of 0 to 1")

    def __contains__(self, value: float) -> bool:
        """Whether the range contains the value; its ends belong to it."""
        return self.lower <= value <= self.upper


@dataclass(frozen=True, slots=True)
class MedianEstimate:
    """The median of a number of values, and its confidence interval."""

    value: float
    interval: ConfidenceInterval
    number: int

    @property
    def lower(self) -> float:
        """Lower end of the interval."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """Upper end of the interval."""
        return self.interval.upper

    @property
    def half_width(self) -> float:
        """Half the width of a ratio's interval; see `relative_half_width`."""
        return relative_half_width(self.value, self.lower, self.upper)


def relative_half_width(ratio: float, lower: float, upper: float) -> float:
    """Half the width of a ratio's range, as a share of the larger of both costs: 0.01 = 1 %; infinite if it is open."""
    return math.inf if math.isinf(upper) else (upper - lower) / 2 / max(1.0, ratio)


def finite(value: float | None) -> float | None:
    """Return the value; None if it is infinite, because JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
