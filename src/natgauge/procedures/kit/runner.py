# SPDX-License-Identifier: Apache-2.0
"""Passes trials to the measurer, reports each to an observer, and estimates the remaining time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from natgauge.errors import BrokenError, EndedBySignal
from natgauge.measurer import Measurer, OutlastingError
from natgauge.procedures.kit.events import Bounds, Event, EventHandler, ignore
from natgauge.procedures.kit.result.results import Attempt, MeasurementResult
from natgauge.procedures.kit.time_budget import OutlastedError, TimeBudget, TimeUpError, seconds_before_phase2
from natgauge.trials import Period, Trial, TrialPlan


def unheard(_number: int) -> None:
    """Begin a repetition with the measurer of the one before."""


@dataclass(slots=True)
class TrialRunner:
    """Passes trials to the measurer and events to the observer.

    Attributes:
        begins: called before each repetition with its number, from 1; returns its measurer, None = that of before.
        may_be_cut: whether the user may end a trial of several periods early, and keep what it has.
        interrupted: whether the user has ended a trial of several periods: no other trial may begin.
    """

    measurer: Measurer
    metric: str
    repetitions: int = 1
    observe: EventHandler = ignore
    clock: Callable[[], float] = time.monotonic
    budget: TimeBudget = field(default_factory=TimeBudget)
    begins: Callable[[int], Measurer | None] = unheard
    first: list[MeasurementResult] = field(default_factory=list)
    may_be_cut: bool = True
    interrupted: bool = False
    repetition: int = 1
    trials: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    _spent_seconds: float = 0.0
    _trials_of_repetition: list[int] = field(default_factory=list)

    def start_repetition(self, number: int) -> None:
        """Count what follows to this repetition (from 1)."""
        if self.interrupted:
            raise BrokenError("the user ended the measurement")
        if number > 1:
            self._trials_of_repetition.append(self.trials - sum(self._trials_of_repetition))
            self.attempts = []
        self.repetition = number
        self.measurer = self.begins(number) or self.measurer

    @property
    def draw(self) -> float:
        """A number from -1 to 1 from seed and repetition: the place at which this repetition's search begins."""
        return random.Random(f"{self.measurer.seed} {self.repetition}").uniform(-1.0, 1.0)  # noqa: S311 - nothing secret

    def run(
        self, plan: TrialPlan, load: float, bounds: Bounds, judged: Callable[[Trial], Trial] | None = None
    ) -> Trial:
        """Run one trial, and return its outcome as the measurer judged it; the observer is shown it as `judged`.

        TimeUpError: it was not begun, because it does not fit into the time that is left. OutlastedError: it was not
        begun, because it outlasts the device's time-out, and is not the first trial.
        """
        try:
            self.budget.allow(plan)
        except TimeUpError as error:
            error.bounds = bounds
            raise
        self.trials += 1
        self.observe(self._event(plan, load, bounds, None))
        begin = self.clock()
        try:
            outcome = self.measurer.measure(plan)
        except OutlastingError as error:
            if not self.attempts:
                raise
            # What was measured so far is an answer. More time would not help; the error says what does.
            ended = OutlastedError(str(error))
            ended.bounds = bounds
            raise ended from None
        self._spent_seconds += self.clock() - begin
        self.attempts.append(Attempt(load, short=False, outcome=outcome))
        self.observe(self._event(plan, load, bounds, judged(outcome) if judged else outcome))
        refuse_contradiction(self.metric, plan, outcome)
        return outcome

    def run_periods(self, plan: TrialPlan, load: float, go_on: Callable[[Trial], bool]) -> list[Period]:
        """Run one trial with several periods of phase 2, each of which counts as a trial.

        Where the user ends the trial (Ctrl-C), the periods so far are the answer, and `interrupted` is true. `go_on` is
        called with the outcome of the first period; false ends the trial. All periods have the phase 1 that it judges.
        The trial also ends where the time that is left is too short for a further period.
        """
        self.budget.allow(plan)
        periods: list[Period] = []
        left = self.budget.left
        left_for_periods = None if left is None else left - seconds_before_phase2(plan)
        number = 1 if plan.phase2 is None else plan.phase2.periods
        begin = self.clock()

        def event(outcome: Trial | None) -> Event:
            done = len(periods)
            left = (number - done) * (self.clock() - begin) / done if done else None
            known = self._event(plan, load, Bounds(), outcome)
            return replace(known, period=done, seconds_left=left)

        def heard(period: Period) -> bool:
            periods.append(period)
            self.trials += 1
            self.attempts.append(Attempt(load, short=False, outcome=period.outcome))
            self.observe(event(period.outcome))
            if len(periods) == 1:
                return go_on(period.outcome)
            # The pauses may be longer than planned.
            seconds = 0.0 if plan.phase2 is None else plan.phase2.seconds
            return left_for_periods is None or left_for_periods - period.seconds >= seconds

        self.observe(event(None))
        try:
            self.measurer.periods(plan, heard)
        except (KeyboardInterrupt, EndedBySignal):
            if not periods or not self.may_be_cut:
                raise
            self.interrupted = True
        return periods

    @property
    def trials_text(self) -> str:
        """Return the number of trials and the end of the last one; empty before the first trial."""
        if not self.attempts:
            return ""
        last = self.attempts[-1].outcome
        why = f" ({last.reason})" if last.reason else ""
        which = "the only trial" if self.trials == 1 else f"the last of {self.trials} trials"
        return f"; {which} was {last.verdict}{why}"

    def _event(self, plan: TrialPlan, load: float, bounds: Bounds, outcome: Trial | None) -> Event:
        return Event(
            metric=self.metric,
            repetition=self.repetition,
            repetitions=self.repetitions,
            trial=self.trials,
            plan=plan,
            load=load,
            bounds=bounds,
            outcome=outcome,
            seconds_left=self._seconds_left(bounds, ended=outcome is not None),
        )

    def _seconds_left(self, bounds: Bounds, *, ended: bool) -> float | None:
        done = self.trials if ended else self.trials - 1
        if done == 0 or bounds.trials_left is None:
            return None
        here = max(bounds.trials_left - ended, 0)
        finished = self._trials_of_repetition
        begun = done - sum(finished)
        each = sum(finished) / len(finished) if finished else begun + here
        left = here + each * (self.repetitions - self.repetition)
        return left * self._spent_seconds / done


def refuse_contradiction(metric: str, plan: TrialPlan, outcome: Trial) -> None:
    """Refuse a device that counts no connection after it forwarded all of them.

    A count of some, but too few, is a table that is full or drops what is old; a count of none is read from the wrong
    place, or the frames went around the device.
    """
    if outcome.table_count != 0 or not outcome.stored or outcome.phase1.lost or plan.restart_at_seconds is not None:
        return
    raise BrokenError(
        f"{metric}: the device's own count is 0 after it forwarded {outcome.stored} connections without a loss: count "
        "and traffic contradict each other; check the recipe's count command, that the frames pass the device, and "
        "that it keeps connections for longer than a trial"
    )


class GoneError(BrokenError):
    """Nothing can be said of the device: it collapsed and did not come back, or establishes the connections no more."""
