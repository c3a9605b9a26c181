# SPDX-License-Identifier: Apache-2.0
"""The summary of a figure, as results have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge


@dataclass(frozen=True, slots=True)
class FigureSummary:
    """A figure of a result over all repetitions, in the figure's unit (RFC 9693 section 6).

    Attributes:
        median: middle value, of an even number the mean of the middle two (RFC 2330 section 11.3).
        p1: 1st percentile, nearest rank.
        p99: 99th percentile, nearest rank.
        standard_deviation: standard deviation of the sample (n - 1); None for a single value.
        count: number of values: one for each repetition that has the figure, or all values of the repetitions' samples.
    """

    # Stored results are read by pydantic, which refuses further fields and values that are not finite.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    median: float
    p1: float
    p99: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float | None
    count: Annotated[int, Ge(1)]
