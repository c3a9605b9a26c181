# SPDX-License-Identifier: Apache-2.0
"""Trials at known rates over established connections: what delays, loss, recovery and tear-down share.

Disturbed trials are run again, and with a slower phase 1 where phase 1 failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from natgauge.errors import BrokenError
from natgauge.measurer import TrialOutcome, TrialPlan, Verdict
from natgauge.notes import Note
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.measure.phase1 import Phase1Settings, Preparation, prepare
from natgauge.procedures.kit.repetitions import Repetitions
from natgauge.procedures.kit.result.results import Attempt, Measurement, Row, verdict_counts
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.search.invalid_trials import at_one_load, is_valid, until_decided

Phase1T = TypeVar("Phase1T", bound=Phase1Settings)


class HeldConnections(Repetitions[Phase1T]):
    """A measurement of connections that stand; a safe phase 1 is found when it is made.

    Attributes:
        preparation: of phase 1.
        first_notes: of what else was measured first.
        repetition_notes: of the repetition that runs.
    """

    def __init__(self, runner: TrialRunner, settings: Phase1T, preparation: Preparation | None = None) -> None:
        """Find a safe phase 1, unless one is handed in.

        Raises:
            BrokenError: the device establishes no connections.
            NatgaugeError: a trial could not be run at all.
        """
        super().__init__(runner, settings)
        self.preparation = prepare(runner, settings) if preparation is None else preparation
        if self.preparation.rate == 0:
            raise BrokenError(f"{runner.metric}: {_unpreparable(self.preparation)}")
        self.first_notes: list[Note] = []
        self.repetition_notes: list[Note] = []
        self._attempts: list[Attempt] = []

    def phase1_notes(self) -> Sequence[Note]:
        """How fast phase 1 was at last, and what else was measured first."""
        return [*self.preparation.notes(), *self.first_notes]

    def trial(self, load: float, plan: TrialPlan, bounds: Bounds) -> TrialOutcome:
        """Run one trial, with a slower phase 1 where that has proven too fast.

        Raises:
            BrokenError: phase 1 cannot establish the connections.
            NatgaugeError: the trial could not be run at all.
        """
        slowed = replace(plan, phase1_rate=min(plan.phase1_rate, self.preparation.rate))
        trial = self.runner.run(slowed, load, bounds, self.judged)
        outcome = self.preparation.judge(trial)
        if self.preparation.hopeless:
            raise BrokenError(f"{self.runner.metric}: phase 1 could not establish the connections: {trial.reason}")
        return outcome

    def judged(self, outcome: TrialOutcome) -> TrialOutcome:
        """The outcome by the metric's own rules."""
        return outcome

    def at(self, rate: float, plan: TrialPlan, trials_left: int | None = None) -> TrialOutcome | None:
        """Try a plan until a trial speaks of the device; None (and a note) when none does.

        Args:
            rate: what the trial is about, frames/s of each direction.
            plan: of the trial; its phase 1 is slowed down where needed.
            trials_left: this one and all after it.

        Raises:
            BrokenError: phase 1 cannot establish the connections.
            NatgaugeError: a trial could not be run at all.
        """

        def kept() -> TrialOutcome:
            outcome = self.trial(rate, plan, Bounds(trials_left=trials_left))
            self._attempts.append(Attempt(rate, short=False, outcome=outcome))
            return outcome

        tried = until_decided(kept, at_one_load(self.settings.invalid_repeats), self.is_enough)
        outcome = tried.outcome if is_valid(tried.outcome) else self.best_of_invalid()
        if outcome is None:
            self.repetition_notes.append(Note("trials", f"{rate:.0f} frames/s: {tried.sentence()}"))
        return outcome

    def is_enough(self, outcome: TrialOutcome) -> bool:
        """Whether a trial at a load needs no repeat."""
        return is_valid(outcome)

    def best_of_invalid(self) -> TrialOutcome | None:
        """A trial that counts where all repeats at a load were INVALID; None = there is no such trial."""
        return None

    def count(self, judged: TrialOutcome, found: TrialOutcome) -> None:
        """Let a trial of this repetition count as it was found, in place of how it was judged.

        Args:
            judged: what `trial` returned.
            found: what takes its place in the attempts.
        """
        self._attempts = [replace(one, outcome=found) if one.outcome is judged else one for one in self._attempts]

    def must(self, rate: float, plan: TrialPlan, trials_left: int | None = None) -> TrialOutcome:
        """The same where nothing can be said without this trial.

        Raises:
            BrokenError: no trial spoke of the device, or the device collapsed.
        """
        outcome = self.at(rate, plan, trials_left)
        if outcome is None:
            raise BrokenError(f"{self.runner.metric}: {self.repetition_notes[-1]}")
        if outcome.verdict is Verdict.COLLAPSED:
            raise BrokenError(f"{self.runner.metric}: the device collapsed at {rate:.0f} frames/s: {outcome.reason}")
        return outcome

    def measurement(
        self,
        value: float,
        *,
        limited_by: str = "device",
        figures: Mapping[str, float] | None = None,
        notes: Sequence[Note] = (),
        series: Sequence[Row] = (),
    ) -> Measurement:
        """What the trials since the last one come to; the next repetition begins with none."""
        attempts, self._attempts = tuple(self._attempts), []
        notes, self.repetition_notes = (*self.repetition_notes, *notes), []
        return Measurement(
            value=value,
            upper=None,
            limited_by=limited_by,
            trials=verdict_counts(attempts),
            attempts=attempts,
            figures=figures or {},
            notes=notes,
            series=tuple(series),
        )


def _unpreparable(preparation: Preparation) -> str:
    """Why no rate of phase 1 is safe."""
    notes = () if preparation.rough is None else preparation.rough.notes
    for note in notes:
        if note.word == "loss at every rate":
            return f"phase 1: {note}; a --loss-tolerance above that lets it pass"
    return f"the device establishes no connections at any rate: {'; '.join(map(str, notes))}"
