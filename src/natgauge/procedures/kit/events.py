# SPDX-License-Identifier: Apache-2.0
"""Events that report the trials of a measurement and the bounds of its search to an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from natgauge.measurer import TrialOutcome, TrialPlan


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a search: rates in frames/s, None = not known yet; estimated trials to its end."""

    lower: float | None = None
    upper: float | None = None
    trials_left: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A trial starts (`outcome` is None) or has ended.

    Attributes:
        metric: whose trial it is; a measurement may need another one first.
        repetition: 1 to `repetitions`.
        repetitions: of the whole measurement.
        trial: number of the trial, counted from 1 through all repetitions.
        plan: what is tried.
        load: the rate the search is about, frames/s (per direction where there are two).
        bounds: of the search before (or, with an outcome, still before) this trial is counted.
        outcome: None at the start.
        seconds_left: estimate for all that is still to do; None while there is nothing to estimate from.
        most_seconds: that the measurement may take, those of others that it needs included; None = no end.
        most_seconds_left: of these.
    """

    metric: str
    repetition: int
    repetitions: int
    trial: int
    plan: TrialPlan
    load: float
    bounds: Bounds
    outcome: TrialOutcome | None = None
    seconds_left: float | None = None
    most_seconds: float | None = None
    most_seconds_left: float | None = None


Observer = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """An observer that does not look."""
