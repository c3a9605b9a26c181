# SPDX-License-Identifier: Apache-2.0
"""Events that report the trials of a measurement and the bounds of its search to an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from natgauge.trials import Trial, TrialPlan


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
        repetition: 1 to `repetitions`.
        load: load of the search, frames/s (per direction where there are two).
        bounds: bounds of the search before this trial counts, also in the event of its end.
        seconds_left: estimate for the rest of the measurement; None while no estimate is possible.
        period: number of the period that has ended, from 1, in a trial of several; 0 = the event is of a whole trial.
    """

    metric: str
    repetition: int
    repetitions: int
    trial: int
    plan: TrialPlan
    load: float
    bounds: Bounds
    outcome: Trial | None = None
    seconds_left: float | None = None
    period: int = 0


EventHandler = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Ignore the event."""
