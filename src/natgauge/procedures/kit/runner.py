# SPDX-License-Identifier: Apache-2.0
"""How trials of a measurement run: passed to the measurer, told to an observer, repeated, within a limited time.

An INVALID trial has a fault of the tester or its host: it is repeated, and never counts for or against the device.
Where stalls excuse the loss of most frames, the load may be what stalls the host, as where the device's own processes
take the core of a sender. A search then tries lower loads first, and this one again afterwards.

No trial begins that would end after the time that a measurement may take, and the result is what was found. What a
measurement needs first shares the time of the one that needs it. Making a lab and starting the device are not in it:
they are over before the first trial.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from natgauge.causes.cause import Cause
from natgauge.errors import BrokenError, EndedBySignal
from natgauge.figure_text import at_least, at_most, number
from natgauge.measurer import Measurer, OutlastingError
from natgauge.metrics import declared
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import deciding_counts, few_lost, losses, lost_of_due
from natgauge.procedures.kit.results import Attempt, Measurement, MeasurementResult, verdict_counts
from natgauge.trials import Period, Trial, TrialPlan
from natgauge.words import LimitedBy, Verdict, sending


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


#: A search tries many loads, and of a load above the tester's reach every trial is INVALID. A tester that was too slow
#: stays too slow, so the search gives that load up early and continues below it.
TESTER_REPEATS = 2
#: A search repeats a trial so often where disturbances excuse the loss of more than this share of its frames.
MOST_LOST_REPEATS: Final = 2
MOST_LOST: Final = 0.5


class Patience(NamedTuple):
    """The most repeats: after a disturbance or a failed phase 1, of a slow tester, and of an excused loss of most."""

    disturbed: int
    slow_tester: int
    most_lost: int

    def after(self, outcome: Trial) -> int:
        """The most repeats after this trial."""
        if outcome.limited_by == "tester":
            return self.slow_tester
        lost_most = outcome.excused and lost_of_due(deciding_counts(outcome)) > MOST_LOST
        return self.most_lost if lost_most else self.disturbed

    def at_first(self) -> Patience:
        """The patience until other loads were tried."""
        return self._replace(most_lost=min(self.most_lost, MOST_LOST_REPEATS))


def in_search(invalid_repeats: int) -> Patience:
    """Return the patience where another load can be tried instead."""
    return Patience(invalid_repeats, min(invalid_repeats, TESTER_REPEATS), invalid_repeats)


def at_one_load(invalid_repeats: int) -> Patience:
    """Return the patience where this load needs an answer: all repeats that the user allows, whatever the cause."""
    return Patience(invalid_repeats, invalid_repeats, invalid_repeats)


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial and its repeats."""

    outcome: Trial
    trials: int
    decided: bool

    def sentence(self, meaning: str = "") -> str:
        """Return a sentence: all trials were INVALID, the consequence here, and the reason of the last trial."""
        return f"{self.trials} trials were INVALID{meaning}, the last one because of {self.outcome.reason}"


def is_valid(outcome: Trial) -> bool:
    """Whether a trial says something about the device."""
    return outcome.verdict is not Verdict.INVALID


def until_decided(
    trial: Callable[[], Trial], patience: Patience, decides: Callable[[Trial], bool] = is_valid, trials: int = 0
) -> Tried:
    """Run a trial, and again until one decides or the patience is at its end.

    `trials` of the same load were INVALID before.
    """
    while True:
        outcome = trial()
        trials += 1
        decided = decides(outcome)
        if decided or trials > patience.after(outcome):
            return Tried(outcome, trials, decided)


#: What limited a measurement whose time was used up before its bounds were near enough.
TIME: Final[LimitedBy] = "time"


class TimeUpError(Exception):
    """The time is used up, or too little is left for the next trial; the text says which, with figures.

    Attributes:
        failed: the lowest load that the device failed in a search in which nothing passed; infinite = none, or only
            loads at which so few frames were lost that it may be chance.
        remedy: what to do; empty = the text says it, and more time would not help.
    """

    bounds: Bounds = Bounds()
    failed: float = math.inf
    remedy: str = "give more --most-seconds (0 = no end)"


class OutlastedError(TimeUpError):
    """The next trial takes longer than the device keeps a connection, so it was not begun."""

    remedy = ""


class GoneError(BrokenError):
    """Nothing can be said of the device: it collapsed and did not come back, or establishes the connections no more."""


@dataclass(slots=True)
class TimeBudget:
    """The time of one measurement in seconds, None = no end; it runs from when this is made."""

    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def left(self) -> float | None:
        """Seconds that are left, at least 0; None = there is no end."""
        return None if self.seconds is None else max(0.0, self.seconds - (self.clock() - self._began))

    def part(self, share: float) -> TimeBudget:
        """A share of what is left, 0 < share <= 1, for what is needed first: the rest is for what needs that."""
        left = self.left
        return TimeBudget(None if left is None else share * left, self.clock)

    def allow(self, plan: TrialPlan) -> None:
        """Raise TimeUpError unless a trial fits into the time that is left."""
        left = self.left
        if left is None:
            return
        needed = nominal_seconds(plan)
        if left <= 0:
            raise TimeUpError(f"the time of {self.seconds:g} s is used up")
        if needed > left:
            raise TimeUpError(f"{left:.1f} s of {self.seconds:g} s are left, and the next trial takes {needed:.1f} s")


def nominal_seconds(plan: TrialPlan) -> float:
    """Return the seconds for which the device settles and a trial sends."""
    before = seconds_before_phase2(plan)
    if plan.phase2 is None:
        return before
    period = plan.phase2.seconds + (plan.phase2.step.seconds if plan.phase2.step else 0.0)
    return before + plan.phase2.periods * period


def seconds_before_phase2(plan: TrialPlan) -> float:
    """Return the seconds for which the device settles and phase 1 sends."""
    return plan.settle_seconds + (plan.connections / plan.phase1_rate if plan.has_phase1 else 0.0)


def undecided_note(lower: float, upper: float | None, unit: str, error: TimeUpError) -> Note:
    """Return the note that the time ended between these bounds; `upper` None = nothing failed."""
    least = at_least(lower)
    where = f"above {least} {unit}" if upper is None else f"between {least} and {at_most(upper)} {unit}"
    return Note("undecided", f"{where.rstrip()}: {error}")


def left_out(what: str, why: object) -> Note:
    """Return the note that the time did not suffice for all."""
    return Note("time used up", f"{what} left out: {why}")


def _cause(attempts: Sequence[Attempt]) -> Cause | None:
    """Cause that natgauge saw in every failed trial and has words for; None where it saw none, or several."""
    failed = [attempt.outcome.cause for attempt in attempts if attempt.outcome.verdict is Verdict.FAIL]
    seen = {cause.kind for cause in failed if cause is not None and cause.certainty == "seen"}
    if len(seen) != 1 or None in failed or any(cause.certainty != "seen" for cause in failed if cause is not None):
        return None
    return next((cause for cause in reversed(failed) if cause is not None and cause.words), None)


def _lasting(attempts: Sequence[Attempt]) -> Cause | None:
    """Cause of the slowest failed trial, if natgauge saw it and no lower rate cures it; None otherwise."""
    failed = (attempt for attempt in attempts if attempt.outcome.verdict is Verdict.FAIL)
    slowest = min(failed, key=lambda attempt: attempt.load, default=None)
    cause = None if slowest is None else slowest.outcome.cause
    return None if cause is None or cause.certainty != "seen" or cause.depends_on_rate else cause


def nothing_passed(upper: float | None, unit: str, attempts: Sequence[Attempt], error: TimeUpError) -> TimeUpError:
    """Return the error for a search without a passing load: a value of 0 would be a false result.

    It names the losses that sent the search to rates whose trials take longer than the time that is left.
    """
    if upper is None:
        return error
    lost = losses(attempts, unit)
    faster = [each.load for each in attempts if each.outcome.verdict is Verdict.PASS and each.load >= upper]
    passed = (
        f"{number(max(faster))} {unit}".rstrip() + " passed, but no slower load" if faster else "no load has passed"
    )
    failed = f"{passed} yet, {number(upper)} {unit}".rstrip() + f" failed{f' ({lost})' if lost else ''}"
    cause, remedy = _cause(attempts), error.remedy
    advice = "" if cause is None else f"; cause: {cause.words}"
    if few_lost(attempts):
        unknown = ": find the cause of the rare loss, or tolerate it (--loss-tolerance)"
        change = "" if cause is None or not cause.remedy else f"; what changes it: {cause.remedy}"
        advice = f"; no overload loses so few frames{advice or unknown}{change}"
        remedy = ""
    elif (lasting := _lasting(attempts)) is not None:
        change = f"; what changes it: {lasting.remedy}" if lasting.remedy else ""
        advice, remedy = f"; no lower rate helps; cause: {lasting.words}{change}", ""
    ended = TimeUpError(f"{failed}: {error}{advice}")
    ended.remedy = remedy
    return ended


def cut_off(attempts: Sequence[Attempt], unit: str, error: TimeUpError) -> Measurement:
    """Return the result of a search that the time ended: the highest passing load below every failing load.

    Raises TimeUpError where no load passed; the text names the loads that failed.
    """
    failed = [attempt.load for attempt in attempts if attempt.outcome.verdict in {Verdict.FAIL, Verdict.COLLAPSED}]
    upper = min(failed, default=None)
    passed = [
        attempt.load
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.PASS and not attempt.short and (upper is None or attempt.load < upper)
    ]
    return _within(max(passed, default=None), upper, unit, attempts, error)


def stopped(attempts: Sequence[Attempt], error: TimeUpError) -> Measurement:
    """Return the result of a metric with a search of its own: its bounds when the time was over."""
    return _within(error.bounds.lower, error.bounds.upper, "", attempts, error)


def _within(
    lower: float | None, upper: float | None, unit: str, attempts: Sequence[Attempt], error: TimeUpError
) -> Measurement:
    if lower is None:
        raise nothing_passed(upper, unit, attempts, error)
    note = undecided_note(lower, upper, unit, error)
    return Measurement(lower, upper, TIME, verdict_counts(attempts), attempts=tuple(attempts), notes=(note,))


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
        _refuse_contradiction(self.metric, plan, outcome)
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

        def tell(outcome: Trial | None) -> None:
            done = len(periods)
            left = (number - done) * (self.clock() - begin) / done if done else None
            self.observe(replace(self._event(plan, load, Bounds(), outcome), period=done, seconds_left=left))

        def heard(period: Period) -> bool:
            periods.append(period)
            self.trials += 1
            self.attempts.append(Attempt(load, short=False, outcome=period.outcome))
            tell(period.outcome)
            if len(periods) == 1:
                return go_on(period.outcome)
            # The pauses may be longer than planned.
            seconds = 0.0 if plan.phase2 is None else plan.phase2.seconds
            return left_for_periods is None or left_for_periods - period.seconds >= seconds

        tell(None)
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


def _refuse_contradiction(metric: str, plan: TrialPlan, outcome: Trial) -> None:
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
