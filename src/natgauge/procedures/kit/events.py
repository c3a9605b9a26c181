# SPDX-License-Identifier: Apache-2.0
"""Events that report the trials of a measurement and the bounds of its search to an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from natgauge.figure_text import number
from natgauge.metrics import declared
from natgauge.trials import Trial, TrialPlan
from natgauge.words import sending


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a search, in its unit (`units_of`); None = not known yet; estimated trials to its end."""

    lower: float | None = None
    upper: float | None = None
    trials_left: int | None = None

    def text(self, unit: str) -> str:
        """Return what is known of the value, with its unit; empty before anything is."""
        lower, upper = (None if end is None else number(end) for end in (self.lower, self.upper))
        if lower is not None and upper is not None:
            return f"between {lower} and {upper} {unit}"
        return f"above {lower} {unit}" if lower is not None else f"below {upper} {unit}" if upper is not None else ""


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


def units_of(metric: str, initiator_rate: float, responder_rate: float) -> tuple[str, str]:
    """Return the units of a trial's load and of the bounds of its search, those of frames with their direction.

    The rates are those of phase 2 from each side; both 0 = the trial has none.
    """
    known = declared(metric)
    if known.resource == "open connections":
        # Each number of connections is tried at rates.
        return "connections/s", known.unit
    has_phase2 = initiator_rate or responder_rate
    unit = known.unit if known.better == "higher" else "frames/s" if has_phase2 else "connections/s"
    if unit.startswith("frames"):
        directions = "both" if initiator_rate and responder_rate else "up" if initiator_rate else "down"
        is_balanced = directions != "both" or initiator_rate == responder_rate
        unit = f"{unit} {sending(directions, is_balanced=is_balanced)}"
    return unit, unit


def units_in(metric: str, plan: TrialPlan) -> tuple[str, str]:
    """Return the same units, of a trial with this plan."""
    phase2 = plan.phase2
    return units_of(metric, *((0, 0) if phase2 is None else (phase2.initiator_rate, phase2.responder_rate)))
