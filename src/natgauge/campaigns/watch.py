# SPDX-License-Identifier: Apache-2.0
"""What a campaign tells while it runs; whoever shows it (a terminal, a log, nobody) implements `Watch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from natgauge.procedures.measurer import TrialOutcome, TrialPlan
from natgauge.trials import Progress


@dataclass(frozen=True, slots=True)
class SearchState:
    """Where a repetition's search is.

    Attributes:
        quantity: what is searched for, for example "connections/s".
        repetition: 1 to `repetitions`.
        repetitions: how many there will be.
        lower: highest rate that passed so far; 0 = none yet.
        upper: lowest rate that failed so far; None = none yet.
        trials_left: trials until this search ends, as far as can be told; None = cannot be told.
    """

    quantity: str
    repetition: int
    repetitions: int
    lower: float
    upper: float | None
    trials_left: int | None = None


class Watch(Protocol):
    """Gets told; must return quickly and never raise."""

    def stage(self, text: str) -> None:
        """A new part of the work begins, for example "building the lab"."""

    def trial_starts(self, number: int, plan: TrialPlan, seconds: float) -> None:
        """Trial `number` begins; it will take about `seconds`."""

    def trial_runs(self, progress: Progress) -> None:
        """The engine told where the trial is."""

    def trial_ends(self, number: int, outcome: TrialOutcome) -> None:
        """Trial `number` ended."""

    def search(self, state: SearchState) -> None:
        """The search's bounds moved."""


class Silent:
    """Shows nothing."""

    def stage(self, text: str) -> None:
        """Shown nowhere."""

    def trial_starts(self, number: int, plan: TrialPlan, seconds: float) -> None:
        """Shown nowhere."""

    def trial_runs(self, progress: Progress) -> None:
        """Shown nowhere."""

    def trial_ends(self, number: int, outcome: TrialOutcome) -> None:
        """Shown nowhere."""

    def search(self, state: SearchState) -> None:
        """Shown nowhere."""
