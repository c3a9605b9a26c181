# SPDX-License-Identifier: Apache-2.0
"""Finds the highest rate at which a trial passes (RFC 9693 section 4.5, RFC 2544 section 26.1): binary search.

Plain halving, with what the standards leave unsaid:

* Both ends are tried, never assumed. The search starts low and doubles (gentle to a device that breaks under load, and
  cheap where an overloaded device slows the tester down), until a trial fails or the tester's highest rate passes.
  A failed trial shows how fast the device forwarded; the next guess is close to that rate.
* Probes may be short. The answer's own trial is never short.
* INVALID trials are repeated and never count. A load that stays INVALID bounds the search as the tester's limit. Where
  disturbances excuse the loss of most frames, lower loads come first: what they show is worth having.
* Frames that are lost or come back wrong at every rate in the same share end the search (see `losses`). Fewer
  connections show whether a full table is the reason, where the procedure can try them. Where the first failures hint
  at that, rates far above and far below them are tried next.
* Where it is known about where it should end, it begins there instead (see `rate_search`), and continues in steps that
  double. A failed trial shows the rate at which the device forwarded, even where the load was far above it, so loads a
  little below and above that rate come next. A wrong expectation costs some trials, and has no other effect.
* Of bursts a short one is what the tester cannot send in time. Such a length bounds the search from below instead, and
  where nothing passes, the shortest burst that failed is an answer by itself: no burst at all loses nothing.
* A load whose trials outlast the device's time-out is not tried. Where a higher load takes longer, it bounds the search
  from above, and says nothing of the device.
* A load at which the device collapsed is a failing one as any other, and is tried again at the end as any other. After
  three collapses the search ends, and where the device does not come back at once.
* A rate above a failing one is not tried again, so a contradiction can only hide at the final bounds: both are tried a
  second time, a third time where the two differ, and the majority counts. If that moves a bound the search continues.
  Where a trial far above the answer shows what made the bound, and passes, the search goes on from there: chance can
  lose frames, but no overloaded device forwards all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from natgauge.causes.cause import FULL
from natgauge.figure_text import at_least, at_most, in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.inputs.measuring_types import SearchError
from natgauge.notes import Note
from natgauge.procedures.kit import losses
from natgauge.procedures.kit.frame_counts import deciding_counts, few_lost
from natgauge.procedures.kit.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.runner import (
    TIME,
    Bounds,
    GoneError,
    OutlastedError,
    TimeUpError,
    in_search,
    left_out,
    nothing_passed,
    undecided_note,
    until_decided,
)
from natgauge.trials import Trial
from natgauge.words import LimitedBy, Verdict


class Status(Enum):
    """Outcome of the trials at a load."""

    UNKNOWN = "unknown"
    SHORT_PASS = "passed a short trial"
    PASS = "passed"
    FAIL = "failed"
    UNDECIDED = "only invalid trials"


@dataclass(slots=True)
class Load:
    """Decisions of the trials at one load.

    Attributes:
        put_off: INVALID trials after which lower loads are tried before this one is tried again; 0 = it is not put off.
    """

    rate: float
    passes: int = 0
    fails: int = 0
    short_passes: int = 0
    undecided: bool = False
    put_off: int = 0
    cause: LimitedBy = "device"
    doubt: str = ""
    forwarded: float | None = None
    lost: int = 0

    @property
    def decisions(self) -> int:
        """Number of full decisions; short passes do not count."""
        return self.passes + self.fails

    @property
    def status(self) -> Status:
        """The majority; a tie counts against the load."""
        if self.decisions:
            return Status.PASS if self.passes > self.fails else Status.FAIL
        if self.undecided or self.put_off:
            return Status.UNDECIDED
        return Status.SHORT_PASS if self.short_passes else Status.UNKNOWN


#: The first step away from where the search should end, as a share; no step is a larger factor than the last.
FIRST_STEP = 0.1
LARGEST_FACTOR = 2.0
#: From a step of this share on the expectation was wrong, and short trials will do.
FAR_OFF = 0.25
#: Distance of the next two loads from what a failed trial forwarded, in errors of the search: both become bounds.
BRACKET_DISTANCE = 0.4
#: Loads that are guessed from what failed trials forwarded; then the bounds are halved.
MOST_GUESSES = 6


class Bracket:
    """Steps and guesses of one search."""

    def __init__(self, start: float, error: SearchError) -> None:
        """Begin at `start`, in frames/s; `error` is the search's."""
        self.start = start
        self._error = error
        self._step = FIRST_STEP
        self._guesses = MOST_GUESSES
        self._failed = 0

    def above(self, lower: Load) -> tuple[float, bool]:
        """The next load where this one passed and none failed, and whether a short trial will do."""
        factor, short = self._stepped()
        return lower.rate * factor, short

    def below(self, upper: Load) -> tuple[float, bool]:
        """The next load where this one failed and none passed, and whether a short trial will do."""
        factor, short = self._stepped()
        guess = upper.rate / factor
        self._failed += 1
        if upper.forwarded is None:
            return guess, short
        distance = upper.forwarded - self._distance(upper)
        # A device that loses a frame now and then forwards nearly all at rates that are too high, too.
        return distance if self._failed == 1 else min(guess, distance), short

    def between(self, lower: float, upper: Load) -> float | None:
        """A load close to what the failed trial forwarded, nearer to the answer than the middle; None = halve."""
        if self._guesses == 0 or upper.forwarded is None:
            return None
        distance = self._distance(upper)
        for guess in (upper.forwarded - distance, upper.forwarded + distance):
            if lower + distance / 2 < guess < upper.rate - distance / 2:
                self._guesses -= 1
                return guess
        return None

    def _distance(self, upper: Load) -> float:
        return self._error.width(upper.rate if upper.forwarded is None else upper.forwarded) * BRACKET_DISTANCE

    def _stepped(self) -> tuple[float, bool]:
        step, self._step = self._step, 2 * self._step
        return min(1 + step, LARGEST_FACTOR), step >= FAR_OFF


#: A result nearer to the tester's own highest rate than this share of it is the result of the tester.
TESTER_SHARE = 0.9
#: Until the bounds are this near to each other, guesses are cheaper than halving.
NEAR = 2.0
#: Distance of the next guess from the forwarding rate of a failed trial, as a share.
DISTANCE = 0.05
#: Largest factor by which one guess lowers the load; an overloaded device may forward much less than it could.
STEEPEST = 16.0
#: Factor by which the next trial is lower where failures hint at a loss that no rate cures.
FAR_DOWN = 4.0
#: What fails a load instead of the device.
_NO_DEVICE: Final = frozenset[LimitedBy]({"tester", "host", "server"})
#: A device that broke down this often in one search is not asked again.
MOST_COLLAPSES = 3

#: Runs one trial at a load (frames/s), short or of full length.
RunTrial = Callable[[float, bool, Bounds], Trial]
#: Runs one trial at a load with a smaller number of connections.
RunFewer = Callable[[float, int, Bounds], Trial]
#: The rate (frames/s) at which the device forwarded in a trial; None if it is not known.
Forwarded = Callable[[Trial], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpan:
    """Range of a search, in frames/s of one direction; in some procedures a frame opens a connection or is a query.

    Attributes:
        unit: unit of a load, for the notes; the search only needs a number that is harder to pass as it grows.
        expected: expected end of the search, > 0; None = nothing is known.
        step: loads are multiples of it, such as of 1 subscriber; 0 = any load.
        tester_top: the tester's own highest, where something else ends the search below it; None = it is `top`.
    """

    top: float
    floor: float
    start: float
    unit: str
    expected: float | None = None
    step: float = 0.0
    tester_top: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan(SearchSpan):
    """Parameters of a search.

    Attributes:
        stride: factor of the first step away from `start`, > 1; all later steps double or halve.
        whole: loads are whole numbers: the length of a burst in frames is searched instead of a rate.
    """

    error: SearchError
    stride: float = NEAR
    short_probes: bool = False
    invalid_repeats: int = 10
    loss_verifications: int = 0
    confirm: bool = True
    most_trials: int = 200
    whole: bool = False


class _Stop(Exception):  # noqa: N818 - not an error: the search ends with what it has
    """The search must end before its bounds are near enough; its note says why."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.text)
        self.note = note


def search(plan: SearchPlan, trial: RunTrial, forwarded: Forwarded, fewer: RunFewer | None = None) -> Measurement:
    """Find the highest passing load; `fewer` None = no trial of fewer connections is possible.

    The value is the lower bound, which has a passing trial of full length; 0 = nothing passed. Raises GoneError where
    the device collapsed and did not come back before any load had passed.
    """
    return _Search(plan, trial, forwarded, fewer).run()


def tester_note(value: float, upper: float | None, top: float, unit: str) -> list[Note]:
    """Return a note where the tester's own highest rate limits a result; `upper` None = no rate failed."""
    if upper is None:
        return [Note("tester", f"the tester's highest, {written(top)} {unit}, passed: the device may do more")]
    if value <= TESTER_SHARE * top:
        return []
    text = f"the result is {in_percent(value / top)} of the tester's own highest rate, {written(top)} {unit}"
    return [Note("tester", text)]


class _Search:
    """State of one search: decisions on each load tried."""

    def __init__(self, plan: SearchPlan, trial: RunTrial, forwarded: Forwarded, fewer: RunFewer | None) -> None:
        self._fewer_trial = fewer
        self._plan = plan
        self._trial = trial
        self._forwarded = forwarded
        self._patience = in_search(plan.invalid_repeats)
        self._loads: dict[float, Load] = {}
        self._attempts: list[Attempt] = []
        self._notes: list[Note] = []
        self._faults = losses.Faults()
        self._permanent: losses.PermanentLoss | None = None
        self._tried_above = False
        self._undecided = False
        self._timed_out = False
        self._outlasted: OutlastedError | None = None
        self._above: losses.Shown | None = None
        self._floor = plan.floor
        self._bracket = None if plan.expected is None else Bracket(plan.expected, plan.error)

    def run(self) -> Measurement:
        """Converge, confirm, and go on while confirming moves a bound."""
        try:
            self._converge_and_confirm()
            if self._passes_beyond():
                self._converge_and_confirm()
        except _Stop as stop:
            self._notes.append(stop.note)
        except TimeUpError as error:
            self._cut_off(error)
        return self._result()

    def _cut_off(self, error: TimeUpError) -> None:
        """Note the bounds found when the time is over."""
        value, bound = self._ends()
        failed, self._timed_out = self._failed(), self._undecided
        if not value and self._undecided and not (self._plan.whole and failed is not None):
            # A short trial that passed is no bound of the answer.
            error.bounds = Bounds()
            found = nothing_passed(None if failed is None else failed.rate, self._plan.unit, self._attempts, error)
            chance = failed is None or failed.lost < losses.LEAST_BAD or few_lost(self._attempts)
            if failed is not None and failed.cause not in _NO_DEVICE and not chance:
                found.failed = failed.rate
            raise found
        if self._undecided:
            self._notes.append(undecided_note(value, bound, self._plan.unit, error))
        else:
            self._notes.append(left_out("trying the final bounds again", error))
        self._note_suspected_bucket()

    def _ends(self) -> tuple[float, float | None]:
        """Decide whether the bounds of an unfinished search are wider than asked; return them, 0 and None for none.

        What was only INVALID is no bound of the device's answer then; what is put off was not tried to the end.
        """
        lower, bound, upper = self._lower(full=True), self._bound(), self._upper()
        value = 0.0 if lower is None else lower.rate
        is_near = bound is not None and self._resolved(value, bound.rate)
        self._undecided = not is_near or (upper is not None and upper.put_off > 0)
        bound = self._failed() if self._undecided else bound
        return value, None if bound is None else bound.rate

    def _passes_beyond(self) -> bool:
        """Look for what else than the rate made the bounds; return whether a load above them passed.

        The bounds stay as they are where the time ends.
        """
        try:
            self._look_for_rare_loss()
            return self._look_for_a_bucket()
        except TimeUpError as error:
            self._notes.append(left_out("trials that show whether the rate alone made the bounds", error))
            self._note_suspected_bucket()
            return False

    def _look_for_rare_loss(self) -> None:
        """Note that loss which has nothing to do with the rate made the upper bound, if a faster trial shows it."""
        lower, upper = self._lower(full=True), self._failed()
        if lower is None or upper is None or self._plan.whole:
            return
        error = self._plan.error.width(upper.rate) / upper.rate
        faster = losses.rare_loss_suspected(self._attempts, upper.rate, error)
        if faster is not None and faster <= self._plan.top:
            tried = until_decided(lambda: self._run(faster, short=False), self._patience)
            if tried.decided:
                self._above = losses.rare_loss_shown(tried.outcome, faster, upper.rate, self._plan.unit)

    def _look_for_a_bucket(self) -> bool:
        """Note that the device takes some connections at once, if a trial of fewer connections shows it.

        Return whether a load above the bounds passed all connections, which no such device does.
        """
        lower = self._maybe_raised()
        if lower is None:
            return False
        far = losses.clearer(self._attempts, lower.rate)
        if far is not None and lower.rate * losses.BUCKET_ABOVE < self._plan.top:
            far = min(far, self._plan.top)
            tried = until_decided(lambda: self._run(far, short=False), self._patience)
            if tried.decided and tried.outcome.verdict is Verdict.PASS:
                # A load that failed before does not outweigh the lower ones.
                return not self._loads.get(far, Load(far)).fails and self._contradicted(far)
        bucket = losses.bucket_suspected(self._attempts, lower.rate)
        if bucket is None or bucket.trial[0] > self._plan.top:
            return False
        outcome = self._fewer(*bucket.trial)
        if outcome is None or outcome.verdict is Verdict.PASS:
            self._notes.append(bucket.note(self._plan.unit, is_shown=outcome is not None))
        return False

    def _note_suspected_bucket(self) -> None:
        """Note what could not be tried in time."""
        lower = self._maybe_raised()
        bucket = None if lower is None else losses.bucket_suspected(self._attempts, lower.rate)
        if bucket is not None:
            self._notes.append(bucket.note(self._plan.unit, is_shown=False))

    def _maybe_raised(self) -> Load | None:
        """The highest load that passed, where losses above it show whether a bucket raised it; None where none do."""
        # A loss that has another reason than the rate made the answer too low, and so hides what an overload loses.
        rare = self._above is not None and self._above.notes
        return None if self._plan.whole or self._fewer_trial is None or rare else self._lower(full=True)

    def _contradicted(self, rate: float) -> bool:
        """Count a passed trial, and forget the lower loads that failed; return whether there were any."""
        self._loads.setdefault(rate, Load(rate)).passes += 1
        failed = [load for load in self._loads.values() if load.rate < rate and load.status is Status.FAIL]
        for load in failed:
            del self._loads[load.rate]
            text = (
                f"{written(load.rate)} {self._plan.unit} failed (trials: {load.fails}), but {written(rate)} passed, "
                "which counts"
            )
            self._notes.append(Note("contradictions", text))
        if failed:
            # It was shown of bounds that no longer count.
            self._above = None
        return bool(failed)

    # Present bounds

    def _lower(self, *, full: bool) -> Load | None:
        """The highest load below the upper bound that passed (a short trial is enough unless `full`)."""
        wanted = (Status.PASS,) if full else (Status.PASS, Status.SHORT_PASS)
        upper = self._upper()
        passed = [
            load for load in self._loads.values() if load.status in wanted and (upper is None or load.rate < upper.rate)
        ]
        return max(passed, key=lambda load: load.rate, default=None)

    def _upper(self) -> Load | None:
        """The lowest load that did not pass."""
        failed = [load for load in self._loads.values() if load.status in (Status.FAIL, Status.UNDECIDED)]
        return min(failed, key=lambda load: load.rate, default=None)

    def _failed(self) -> Load | None:
        """The lowest load that the device failed; one with invalid trials only says nothing of the device."""
        failed = [load for load in self._loads.values() if load.status is Status.FAIL]
        return min(failed, key=lambda load: load.rate, default=None)

    def _bound(self) -> Load | None:
        """The lowest load that did not pass; what the device failed, where that one was not tried for its length."""
        upper = self._upper()
        return self._failed() if upper is not None and upper.cause == TIME else upper

    # Which load next

    def _converge_and_confirm(self) -> None:
        self._converge()
        while self._moved_by_confirming():
            self._converge()
        upper = self._upper()
        if self._outlasted is not None and upper is not None and upper.cause == TIME:
            raise self._outlasted

    def _converge(self) -> None:
        while (following := self._next()) is not None:
            load, short = following
            self._decide(self._as_tried(load), short=short and self._plan.short_probes)
            # Of bursts not the rate is searched but the length.
            self._permanent = None if self._plan.whole else self._faults.proven()
            if self._permanent is not None:
                if self._fewer_trial is not None:
                    self._permanent = self._permanent.explained(self._fewer)
                raise _Stop(self._permanent.note(self._plan.unit))

    def _as_tried(self, load: float) -> float:
        step = self._plan.step
        if not step:
            return float(round(load)) if self._plan.whole else load
        lower, upper, tried = self._lower(full=False), self._upper(), step * round(load / step)
        if upper is not None and load < upper.rate <= tried:
            return upper.rate - step
        return lower.rate + step if lower is not None and tried <= lower.rate < load else tried

    def _fewer(self, rate: float, connections: int) -> Trial | None:
        """A trial of fewer connections that measures the device; None where there is none."""
        run = self._fewer_trial
        if run is None:
            return None

        def kept() -> Trial:
            outcome = run(rate, connections, self._bounds())
            self._attempts.append(Attempt(rate, short=True, outcome=outcome, is_aside=True))
            return outcome

        try:
            tried = until_decided(kept, self._patience)
        except TimeUpError:
            return None
        return tried.outcome if tried.decided else None

    def _next(self) -> tuple[float, bool] | None:
        """The next load and whether a probe will do; None when the bounds are near enough."""
        following, upper = self._following(), self._upper()
        return (upper.rate, False) if following is None and upper is not None and upper.put_off else following

    def _following(self) -> tuple[float, bool] | None:
        """The same where no load is put off."""
        lower, upper = self._lower(full=False), self._upper()
        if upper is None:
            return self._upward(lower)
        if lower is None:
            return self._downward(upper)
        resolved = self._resolved(lower.rate, upper.rate)
        if not resolved and self._bracket is not None:
            guess = self._bracket.between(lower.rate, upper)
            if guess is not None and self._as_tried(guess) not in self._loads:
                return guess, False
        if not resolved and upper.rate > NEAR * lower.rate:
            return self._narrowing(lower.rate, upper), True
        if lower.status is Status.SHORT_PASS:
            return lower.rate, False
        return None if resolved else ((lower.rate + upper.rate) / 2, False)

    def _upward(self, lower: Load | None) -> tuple[float, bool] | None:
        near = self._bracket
        if lower is None and self._floor > self._plan.top:
            return None
        if lower is None:
            return (self._within(self._plan.start), True) if near is None else (self._within(near.start), False)
        if lower.rate < self._plan.top:
            load, short = (lower.rate * self._stride(), True) if near is None else near.above(lower)
            return min(load, self._plan.top), short
        return None if lower.status is Status.PASS else (lower.rate, False)

    def _downward(self, upper: Load) -> tuple[float, bool] | None:
        if upper.rate <= self._floor or self._rate_is_not_the_cause():
            return None
        suspected = None if self._plan.whole else self._faults.suspected()
        if suspected is not None:
            return self._far(suspected), False
        if self._bracket is not None and upper.cause not in FULL:
            load, short = self._bracket.below(upper)
            return self._within(max(load, upper.rate / STEEPEST)), short
        if upper.cause in FULL:
            guess = upper.rate / STEEPEST
        else:
            guess = max((upper.forwarded or 0.0) * (1 - DISTANCE), upper.rate / STEEPEST)
            if upper.forwarded is None or guess >= upper.rate * (1 - DISTANCE):
                guess = upper.rate / self._stride()
        return max(guess, self._floor), True

    def _far(self, suspected: losses.PermanentLoss) -> float:
        """Once far above the failures; then between what is alike and what is not; at last far below.

        Where phase 1 is all, a trial lasts the longer the lower its rate is.
        """
        highest = self._faults.highest_rate
        if not self._tried_above and highest < self._plan.top:
            self._tried_above = True
            return min(losses.SPAN * highest, self._plan.top)
        if suspected.highest >= losses.SPAN * suspected.lowest:
            if not suspected.lasted:
                return max(suspected.slow_enough, self._plan.floor)
            return math.sqrt(suspected.lowest * suspected.highest)
        beyond = min((rate for rate in self._loads if rate > suspected.highest), default=0.0)
        if beyond >= NEAR * suspected.highest:
            return math.sqrt(suspected.highest * beyond)
        # The next load is no lower than the proof of a permanent loss needs.
        enough = losses.BELOW * suspected.highest / losses.SPAN
        down = suspected.lowest / FAR_DOWN
        return max(enough if down < enough < suspected.lowest else down, self._plan.floor)

    def _within(self, load: float) -> float:
        return min(max(load, self._floor), self._plan.top)

    def _stride(self) -> float:
        return self._plan.stride if len(self._loads) == 1 else NEAR

    def _narrowing(self, lower: float, upper: Load) -> float:
        guess = (upper.forwarded or 0.0) * (1 + DISTANCE)
        return guess if lower * (1 + DISTANCE) < guess < upper.rate * (1 - DISTANCE) else lower * NEAR

    def _resolved(self, lower: float, upper: float) -> bool:
        near = upper - lower <= max(self._plan.error.width(upper), float(self._plan.whole), self._plan.step)
        return near or not lower < (lower + upper) / 2 < upper

    def _rate_is_not_the_cause(self) -> bool:
        """Whether a full table failed two rates that lie far apart."""
        full = [load.rate for load in self._loads.values() if load.status is Status.FAIL and load.cause in FULL]
        return bool(full) and max(full) >= STEEPEST * min(full)

    # Trials and decisions

    def _decide(self, rate: float, *, short: bool) -> None:
        """Try a load until a trial decides, and note the decision."""
        load = self._loads.setdefault(rate, Load(rate))
        try:
            outcome = self._valid(load, short=short)
        except TimeUpError as error:
            suspected = self._faults.suspected()
            if suspected is not None and not suspected.lasted and not load.decisions:
                # No trial is slow enough to show a bucket; faster ones may be all the proof there is.
                self._faults.least_seconds = 0.0
                del self._loads[rate]
                return
            if not isinstance(error, OutlastedError) or load.decisions or not self._has_shorter(rate, short=short):
                raise
            load.undecided, load.put_off, load.cause, self._outlasted = True, 0, TIME, error
            return
        outcome = self._verified(load, outcome, short=short)
        if outcome is None:
            self._give_up(load)
            return
        load.put_off, load.doubt = 0, ""
        if outcome.verdict is Verdict.PASS:
            load.passes += not short
            load.short_passes += short
        else:
            load.fails += 1
            load.cause = outcome.limited_by or "device"
            # Frames that came back say nothing of what a log keeps.
            load.forwarded = self._forwarded(outcome) if outcome.limited_by != "log" else None
            load.lost = sum(counts.lost for counts in deciding_counts(outcome))

    def _verified(self, load: Load, outcome: Trial | None, *, short: bool) -> Trial | None:
        """Return the outcome of a load's trial, or of the last that repeats it, as long as these fail."""
        for _ in range(self._plan.loss_verifications):
            if outcome is None or outcome.verdict is not Verdict.FAIL:
                break
            try:
                outcome = self._valid(load, short=short) or outcome
            except OutlastedError:
                # What has failed says more than what cannot be tried.
                break
        return outcome

    def _has_shorter(self, rate: float, *, short: bool) -> bool:
        """Whether trials of lower loads are shorter: one that passed took no longer than the device keeps connections.

        Where all of phase 1 is the load, trials are the longer, the lower it is. A short trial shows nothing of one of
        full length.
        """
        passed = (load.passes + short * load.short_passes for load in self._loads.values() if load.rate <= rate)
        return self._outlasted is not None or any(passed)

    def _give_up(self, load: Load) -> None:
        """No trial of this load said anything; of bursts that the tester was late with, no shorter one will."""
        if load.put_off:
            return
        lower = self._lower(full=False)
        too_short = load.cause == "tester" and not load.decisions and (lower is None or load.rate < lower.rate)
        if not (self._plan.whole and too_short):
            load.undecided = True
            return
        del self._loads[load.rate]
        self._floor = min(load.rate * NEAR, self._plan.top) if load.rate < self._plan.top else math.inf

    def _valid(self, load: Load, *, short: bool) -> Trial | None:
        """Repeat until a trial measures the device; None where none does, or the load is put off."""
        patience = self._patience if load.put_off or load.decisions else self._patience.at_first()
        tried = until_decided(lambda: self._run(load.rate, short=short), patience, trials=load.put_off)
        load.put_off = 0
        if tried.decided:
            return tried.outcome
        if not load.decisions:
            load.cause = tried.outcome.limited_by or "tester"
            load.doubt = tried.sentence()
            load.put_off = tried.trials if tried.trials <= self._patience.after(tried.outcome) else 0
        return None

    def _run(self, rate: float, *, short: bool) -> Trial:
        if len(self._attempts) >= self._plan.most_trials:
            raise self._ended(f"after {self._plan.most_trials} trials")
        outcome = self._trial(rate, short, self._bounds())
        self._attempts.append(Attempt(rate, short, outcome))
        self._faults.add(rate, outcome)
        if outcome.verdict is Verdict.COLLAPSED:
            self._note_collapse(rate, outcome)
        return outcome

    def _ended(self, why: str) -> _Stop:
        """Return the end of an unfinished search, with a note of its bounds where these are wider than requested."""
        value, bound = self._ends()
        if not self._undecided:
            near = f"the search was ended {why}; its bounds are as near as asked, but were not all tried again"
            return _Stop(Note("search", near))
        least = at_least(value)
        where = f"above {least}" if bound is None else f"between {least} and {at_most(bound)}"
        text = f"the search was ended {why}; the answer lies {where} {self._plan.unit}, wider than asked"
        return _Stop(Note("ended early", text))

    def _note_collapse(self, rate: float, outcome: Trial) -> None:
        if not outcome.begun:
            # No frame was sent, so it says nothing of this load.
            if self._lower(full=True) is None:
                raise GoneError(outcome.reason)
            raise self._ended(f"because {outcome.reason}")
        text = f"the device collapsed at {written(rate)} {self._plan.unit}: {outcome.reason}"
        self._notes.append(Note("device", text))
        collapses = sum(attempt.outcome.verdict is Verdict.COLLAPSED for attempt in self._attempts)
        if collapses >= MOST_COLLAPSES:
            load = self._loads.setdefault(rate, Load(rate))
            load.fails, load.put_off = load.fails + 1, 0
            raise self._ended(f"because the device collapsed {collapses} times")

    # Confirming

    def _moved_by_confirming(self) -> bool:
        """Try both bounds again, or at least an upper one of chance; return whether a decision has changed."""
        lower, upper = self._lower(full=True), self._upper()
        tried = (lower, upper) if self._plan.confirm else (upper,) if self._is_a_chance(upper) else ()
        return any(load is not None and not load.undecided and self._changed(load) for load in tried)

    def _is_a_chance(self, upper: Load | None) -> bool:
        """Whether a few frames of a single trial made the upper bound: loss that has nothing to do with the rate."""
        return not self._plan.whole and upper is not None and upper.fails == 1 and 0 < upper.lost < losses.LEAST_BAD

    def _changed(self, load: Load) -> bool:
        before = load.status
        while load.decisions < 2 or load.passes == load.fails:
            known = load.decisions
            self._decide(load.rate, short=False)
            if load.decisions == known:
                break
        if load.passes and load.fails:
            text = (
                f"{written(load.rate)} {self._plan.unit} passed {load.passes} and failed "
                f"{with_noun(load.fails, 'times')}; the majority counts"
            )
            note = Note("contradictions", text)
            if note not in self._notes:
                self._notes.append(note)
        return load.status is not before

    # Result

    def _bounds(self) -> Bounds:
        lower, upper = self._lower(full=False), self._upper()
        return Bounds(
            lower=None if lower is None else lower.rate,
            upper=None if upper is None else upper.rate,
            trials_left=self._trials_left(lower, upper),
        )

    def _trials_left(self, lower: Load | None, upper: Load | None) -> int:
        """Estimate: the halvings to come, a few trials to find the bracket, two to confirm."""
        high = upper.rate if upper is not None else self._plan.top
        low = lower.rate if lower is not None else 0.0
        near = lower is not None and upper is not None and high <= NEAR * low
        gap = high - low if near else high / NEAR
        halvings = math.ceil(math.log2(max(gap / self._plan.error.width(high), 1.0)))
        return halvings + (0 if near else 3) + 2 * self._plan.confirm

    def _result(self) -> Measurement:
        lower = self._lower(full=True)
        upper = self._failed() if self._undecided else self._bound()
        value = 0.0 if lower is None or self._permanent is not None else lower.rate
        rate = None if upper is None else upper.rate
        # A load that passed as well is no bound, where it failed for a frame or two.
        bound = self._above.upper if self._above is not None and upper is not None and upper.passes else rate
        if self._permanent is None and not self._plan.whole:
            seen = losses.rare_loss_note(self._attempts, rate, self._plan.unit)
            self._notes += seen or (self._unseen(rate) if self._above is None else self._above.notes)
        return Measurement(
            value=value,
            upper=bound,
            limited_by=TIME if self._timed_out else self._limit(value, self._bound()),
            trials=verdict_counts(self._attempts),
            attempts=tuple(self._attempts),
            figures={} if self._permanent is None else self._permanent.figures,
            notes=tuple(self._notes),
            cause=None if self._permanent is None else self._permanent.cause,
        )

    def _unseen(self, upper: float | None) -> list[Note]:
        """A note on few lost frames that no faster trial explained, though the tester could send one."""
        if not upper or upper * losses.RARE_ABOVE > self._plan.top:
            return []
        return losses.rare_loss_untried(self._attempts, upper, self._plan.error.width(upper) / upper, self._plan.unit)

    def _limit(self, value: float, upper: Load | None) -> LimitedBy:
        """Return what limits the upper bound; add a note where the limit is not only the device."""
        if upper is None and self._undecided:
            # Where all that was tried passed, the device is gone, or the trials were at their end.
            return TIME if self._outlasted is not None else "ranges" if self._attempts[-1].outcome.begun else "device"
        if upper is None and not value:
            text = f"up to {written(self._plan.top)} {self._plan.unit} the tester sent none in time"
            self._notes.append(Note("tester", text))
            return "tester"
        top, own, unit = self._plan.top, self._plan.tester_top or self._plan.top, self._plan.unit
        is_of_tester = own <= top + self._plan.step
        limited = tester_note(value, None if upper is None else upper.rate, top if is_of_tester else own, unit)
        if upper is None:
            text = f"the highest that was tried, {written(top)} {unit}, passed: the device may do more"
            self._notes += limited if is_of_tester else [Note("search", text)]
            return "tester" if is_of_tester else "ranges"
        if value == 0 and self._permanent is None:
            self._notes.append(Note("search", f"no trial passed, down to {written(upper.rate)} {self._plan.unit}"))
        if upper.doubt:
            text = f"whether {written(upper.rate)} {self._plan.unit} pass could not be decided: {upper.doubt}"
            self._notes.append(Note("search", text))
        if upper.status is Status.UNDECIDED or upper.cause != "device":
            return upper.cause
        self._notes += limited
        return "tester" if limited else "device"
