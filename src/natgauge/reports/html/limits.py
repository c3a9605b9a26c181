# SPDX-License-Identifier: Apache-2.0
"""The tester's own limit for a result, in the result's unit; figures draw a line there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from natgauge.metrics import declared
from natgauge.records.measurement import Result

#: Name of the tester's limit of a delay.
OWN_PART: Final = "tester's own part"


@dataclass(frozen=True, slots=True)
class Limit:
    """The tester's own limit.

    Attributes:
        value: the highest rate in the result's unit, of each direction where the result is per direction; for a delay,
            the tester's own part in us.
        known: False where the value is only the highest rate tried, because the ports' own limit is not known.
    """

    value: float
    known: bool

    @property
    def label(self) -> str:
        """Label of the line in figures."""
        return "tester's own limit" if self.known else "highest rate tried"


def limit_of(result: Result) -> Limit | None:
    """Return the tester's own limit; None where the metric has none, or it was not measured."""
    if result.unit == "us":
        # The tester's own delay is never subtracted.
        own_delays = (note.value for note in result.notes if note.word == "own delay" and note.value is not None)
        return next((Limit(delay, known=True) for delay in own_delays), None)
    metric = declared(result.metric)
    # The tester's rate of phase 2 counts frames, and a query is one of two.
    return _rate(result, metric.phase) if metric.is_bounded and metric.counts != "queries" else None


def load_limit(result: Result) -> Limit | None:
    """The highest rate at which the tester offers frames of phase 2 in each active direction, frames/s."""
    return _rate(result, 2)


def _rate(result: Result, phase: int) -> Limit | None:
    for name, known in (("tester_highest", True), ("search_top", False)):
        rate = result.number(f"{name}_phase{phase}_rate")
        if rate:
            # The rates of phase 2 count all directions together.
            both = phase == 2 and result.parameter("directions") == "both"
            return Limit(rate / 2 if both else rate, known)
    return None
