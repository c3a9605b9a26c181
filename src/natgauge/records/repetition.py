# SPDX-License-Identifier: Apache-2.0
"""One repetition of a measurement, as procedures return it and results have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from natgauge.causes.cause import Cause
from natgauge.notes import Note
from natgauge.words import LimitedBy, Verdict

#: One load or step of a repetition: a row of a table or a point of a graph; units in the names.
Row = Mapping[str, float | str | None]


@dataclass(frozen=True, slots=True)
class Repetition:
    """One repetition.

    Attributes:
        value: value in the result's unit; 0 when no trial passed.
        upper: upper bound of the value: the lowest load that a search found too high, or the share of lost frames with
            the excused ones; None when even the tester's highest rate passed, or the value is exact.
        limited_by: cause that limited this repetition.
        trials: number of trials by verdict.
        figures: further figures by name, units in the names.
        notes: notes of this repetition.
        series: rows of a table or graph, one per load or step; units in the names.
        cause: why the device failed above the value; None = not a matter of lost or late frames, or not the device.
        error: `upper` - `value`; None without an upper bound. It always follows from the two.
    """

    # Stored results are read by pydantic, which refuses further fields and values that are not finite.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    value: float
    upper: float | None
    limited_by: LimitedBy
    trials: Mapping[Verdict, Annotated[int, Ge(0)]]
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    series: tuple[Row, ...] = ()
    cause: Cause | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        """Find the error, also where a stored one or that of a replaced repetition was given."""
        object.__setattr__(self, "error", None if self.upper is None else self.upper - self.value)
