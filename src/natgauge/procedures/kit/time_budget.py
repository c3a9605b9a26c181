# SPDX-License-Identifier: Apache-2.0
"""The time that a measurement may take: no trial begins that would end after it, and the result is what was found.

What a measurement needs first shares the time of the one that needs it. Making a lab and starting the device are not in
it: they are over before the first trial.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.causes.cause import Cause
from natgauge.figure_text import at_least, at_most, number
from natgauge.notes import Note
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.result.frame_counts import few_lost, losses
from natgauge.procedures.kit.result.results import Attempt, Measurement, verdict_counts
from natgauge.trials import TrialPlan
from natgauge.words import LimitedBy, Verdict

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


@dataclass(slots=True)
class TimeBudget:
    """The time of one measurement in seconds, None = no end; it runs from when this is made."""

    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
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
