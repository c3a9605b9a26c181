# SPDX-License-Identifier: Apache-2.0
"""Multiple loss ratio search (MLRsearch, RFC 9971) with the library of FD.io CSIT.

Several goals in one search, many short trials instead of few long ones, and a share of bad trials that a goal allows.
What has to be watched when its trials are stateful:

* No warm-up trial: it would be counted against nothing, and each trial starts from an empty table anyway.
* Only the sending of phase 2 counts as a trial's duration: phase 1 and the emptying say nothing about the load.
* The library ends a search by wall clock, which counts everything; that limit is out of the way here.
* Loads are of one direction, counts of all directions together.
* In `shared` placement an overloaded device loses nothing and slows the sender down. What it did not forward in the
  nominal time then counts as lost.
* INVALID trials are repeated; where all repeats stay INVALID the trial counts as lost altogether, so that a slow tester
  never makes a load pass. The limit is then named after their cause.
* With an exceed ratio of 0 a single bad trial, however short, bounds the search from above for good. One that is bad is
  therefore tried again, and a third time where the two differ, as the binary search does with its final bounds.

The search starts from the highest load. So that this is not the tester's own, which may be far above the device's, the
first load of a doubling series that loses much is taken; a single lost frame does not end the series. Where a goal is
met at that load after all, the series continues and the search starts again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from natgauge.figure_text import number
from natgauge.metrics.catalogue import PRESETS, Goal, Preset, criteria
from natgauge.notes import Note
from natgauge.procedures.kit import losses
from natgauge.procedures.kit.binary_search import SearchPlan, tester_note
from natgauge.procedures.kit.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.runner import Bounds, GoneError, in_search, until_decided
from natgauge.trials import Trial
from natgauge.words import LimitedBy, Verdict

if TYPE_CHECKING:
    from MLRsearch import GoalResult, MeasurementResult, SearchGoal

    from natgauge.agreement.generated import StreamCounts


#: The library's own limit, in seconds of wall clock; a week is none.
NO_LIMIT_SECONDS: Final = 7 * 86_400.0
#: A doubling series that finds the highest load begins here, in frames/s, where nothing better is known.
DOUBLING: Final = 2.0
#: With an exceed ratio of 0 one bad short trial already bounds the search from above, as the draft requires. So no
#: trial may be so short that starting it weighs.
LEAST_SECONDS: Final = 0.25
#: A load of which less than this share passes is above the device's limit by much.
MUCH_LOST: Final = 0.9
#: Verdicts against the device.
_BAD: Final = frozenset({Verdict.FAIL, Verdict.COLLAPSED})

#: Runs one trial: load of each direction in frames/s, seconds.
RunTrial = Callable[[float, float, Bounds], Trial]


@dataclass(frozen=True, slots=True)
class MlrPlan:
    """Parameters of a search, whose loads are frames/s of each direction; it has a share as error."""

    search: SearchPlan
    preset: Preset
    trial_seconds: float

    @property
    def width(self) -> float:
        """Width of the final bounds, as a share of the upper bound."""
        return self.search.error.share or 0.0


def search(plan: MlrPlan, trial: RunTrial) -> Measurement:
    """Search all goals of the preset at once; return value and bounds of the first one.

    The value is its conditional throughput, the rate actually forwarded at the lower bound. The figures contain those
    of each goal; a missing bound is left out.
    """
    measurer = _Measurer(plan, trial)
    highest = measurer.highest_load(plan.search.start)
    results = _searched(plan, measurer, highest)
    while highest < plan.search.top and any(goal.relevant_upper_bound is None for goal in results.values()):
        # A trial that was disturbed had ended the series too early.
        highest = measurer.highest_load(min(highest * DOUBLING, plan.search.top))
        results = _searched(plan, measurer, highest)
    figures: dict[str, float] = {}
    for name, result in results.items():
        figures |= _figures(name, result)
    return _measurement(measurer, plan, figures, next(iter(results)))


def with_remedy(rare: Iterable[Note]) -> list[Note]:
    """Return doubts of rare loss that say which search tolerates it: here goals take the place of a tolerance."""
    return [replace(note, text=f"{note.text}; --loss-tolerance needs --search binary") for note in rare]


def _searched(plan: MlrPlan, measurer: _Measurer, highest: float) -> dict[str, GoalResult]:
    """Return the library's result for each goal, up to a load."""
    from MLRsearch import Config, MultipleLossRatioSearch  # noqa: PLC0415 - slow to import, rarely wanted

    goals = {goal.name: _library_goal(goal, plan) for goal in PRESETS[plan.preset]}
    config = Config()
    # In this order: each limit is checked against the other, and the library's own lower one is 9,001 frames/s.
    config.min_load = min(plan.search.floor, highest / DOUBLING)
    config.max_load = highest
    config.goals = tuple(goals.values())
    config.warmup_duration = 0.0
    config.search_duration_max = NO_LIMIT_SECONDS
    # Without the library's own log: every trial is recorded anyway.
    results = MultipleLossRatioSearch(config=config).search(measurer=measurer, debug=lambda _text: None)
    return {name: results[goal] for name, goal in goals.items()}


def _library_goal(goal: Goal, plan: MlrPlan) -> SearchGoal:
    from MLRsearch import SearchGoal  # noqa: PLC0415 - as above

    seconds = plan.trial_seconds
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=plan.width,
        initial_trial_duration=_shortest(goal, seconds),
        final_trial_duration=seconds,
        duration_sum=goal.sum * seconds,
        fail_fast=False,
    )


def _shortest(goal: Goal, trial_seconds: float) -> float:
    return min(trial_seconds, max(goal.initial * trial_seconds, LEAST_SECONDS))


def _figures(name: str, result: GoalResult) -> dict[str, float]:
    figures = {}
    if result.relevant_lower_bound is not None:
        figures[f"{name}_lower_bound"] = float(result.relevant_lower_bound)
        figures[f"{name}_conditional_throughput"] = float(result.conditional_throughput)
    if result.relevant_upper_bound is not None:
        figures[f"{name}_upper_bound"] = float(result.relevant_upper_bound)
    return figures


def _measurement(measurer: _Measurer, plan: MlrPlan, figures: Mapping[str, float], first: str) -> Measurement:
    value = figures.get(f"{first}_conditional_throughput", 0.0)
    upper = figures.get(f"{first}_upper_bound")
    notes = list(measurer.notes)
    limited_by: LimitedBy = "device" if upper is None else measurer.limit(upper)
    if limited_by == "device" and (limited := tester_note(value, upper, plan.search.top, plan.search.unit)):
        limited_by = "tester"
        notes += limited
    above = measurer.looked_above(upper) if upper is not None and limited_by == "device" else ()
    notes += with_remedy(losses.rare_loss_note(measurer.attempts, upper, plan.search.unit) or above)
    notes.append(Note("method", f"MLRsearch for {criteria(plan.preset, plan.trial_seconds)}"))
    return Measurement(
        value=value,
        upper=upper,
        limited_by=limited_by,
        trials=verdict_counts(measurer.attempts),
        attempts=tuple(measurer.attempts),
        figures=figures,
        notes=tuple(notes),
    )


@dataclass(slots=True)
class _Measurer:
    """The library's view of our trials."""

    plan: MlrPlan
    trial: RunTrial
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    causes: dict[float, Counter[LimitedBy]] = field(default_factory=dict)

    def highest_load(self, start: float) -> float:
        """The first load of a doubling series of the shortest trials that loses much, or the tester's highest."""
        seconds = min(_shortest(goal, self.plan.trial_seconds) for goal in PRESETS[self.plan.preset])
        rate = start
        while rate < self.plan.search.top and not self._loses_much(rate, seconds):
            rate *= DOUBLING
        return min(rate, self.plan.search.top)

    def _loses_much(self, rate: float, seconds: float) -> bool:
        outcome = self._valid(rate, seconds)
        if outcome.verdict is not Verdict.FAIL:
            return outcome.verdict is not Verdict.PASS
        counts = _all_directions(outcome)
        return _forwarded_in_time(outcome, counts) < MUCH_LOST * counts.intended_frames

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run one trial; called by the library."""
        from MLRsearch import MeasurementResult  # noqa: PLC0415 - as above

        outcome = self._believed(intended_load, intended_duration)
        counts = _all_directions(outcome)
        if outcome.verdict in {Verdict.INVALID, Verdict.COLLAPSED}:
            counts = counts.model_copy(update={"received_frames": 0})
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=counts.intended_frames,
            offered_count=counts.offered_frames,
            forwarding_count=_forwarded_in_time(outcome, counts),
            offered_duration=intended_duration,
            duration_with_overheads=intended_duration,
        )

    def limit(self, upper: float) -> LimitedBy:
        """Return the cause of the bad trials at this load, which bound a goal."""
        causes = [counted for load, counted in self.causes.items() if math.isclose(load, upper)]
        return causes[0].most_common(1)[0][0] if causes else "device"

    def looked_above(self, upper: float) -> Sequence[Note]:
        """Return a note where a trial a little above a bound shows that lost frames made the bound, not overload."""
        faster = losses.rare_loss_suspected(self.attempts, upper, self.plan.width)
        if faster is None or faster > self.plan.search.top:
            return ()
        outcome = self._valid(faster, self.plan.trial_seconds)
        if outcome.verdict is Verdict.INVALID:
            return losses.rare_loss_untried(self.attempts, upper, self.plan.width, self.plan.search.unit)
        return losses.rare_loss_shown(outcome, faster, upper, self.plan.search.unit).notes

    def _believed(self, rate: float, seconds: float) -> Trial:
        """A trial that counts; where one bad trial is the end of a load, the majority of up to three."""
        outcome = self._valid(rate, seconds)
        decides_alone = not all(goal.exceed_ratio for goal in PRESETS[self.plan.preset])
        if self.plan.search.confirm and decides_alone and outcome.verdict in _BAD:
            outcome = self._tried_again(rate, seconds, outcome)
        if outcome.verdict is not Verdict.PASS:
            self.causes.setdefault(rate, Counter())[outcome.limited_by or "device"] += 1
        return outcome

    def _tried_again(self, rate: float, seconds: float, failed: Trial) -> Trial:
        """A PASS where two of three trials pass, else the one that failed."""
        again = self._valid(rate, seconds)
        if again.verdict is not Verdict.PASS:
            return failed
        third = self._valid(rate, seconds)
        passes = 1 + (third.verdict is Verdict.PASS)
        text = (
            f"{number(rate)} {self.plan.search.unit} failed first, and passed {passes} of 3 trials of {seconds:g} s; "
            "the majority counts, and a trial that passes at once is not repeated"
        )
        self.notes.append(Note("contradictions", text))
        return again if passes > 1 else failed

    def _valid(self, rate: float, seconds: float) -> Trial:
        tried = until_decided(lambda: self._run(rate, seconds), in_search(self.plan.search.invalid_repeats))
        if not tried.decided:
            self.notes.append(
                Note("search", f"{number(rate)} {self.plan.search.unit}: {tried.sentence(' and count as lost')}")
            )
        return tried.outcome

    def _run(self, rate: float, seconds: float) -> Trial:
        outcome = self.trial(rate, seconds, Bounds())
        self.attempts.append(Attempt(rate, seconds < self.plan.trial_seconds, outcome))
        if outcome.verdict is Verdict.COLLAPSED and not outcome.begun:
            raise GoneError(outcome.reason)
        return outcome


def _all_directions(outcome: Trial) -> StreamCounts:
    """Return frames and times of phase 2 as those of a single stream."""
    streams = tuple(outcome.phase2.values())
    return outcome.phase1.model_copy(
        update={
            "intended_frames": sum(stream.intended_frames for stream in streams),
            "offered_frames": sum(stream.offered_frames for stream in streams),
            "received_frames": sum(stream.received_frames for stream in streams),
            "nominal_ns": max((stream.nominal_ns for stream in streams), default=0),
            "sending_ns": max((stream.sending_ns for stream in streams), default=0),
        }
    )


def _forwarded_in_time(outcome: Trial, counts: StreamCounts) -> int:
    """Return the forwarded frames; for a sender that was slowed down, only those of the nominal time."""
    late = outcome.verdict is Verdict.FAIL and counts.sending_seconds > counts.nominal_seconds
    if not late or counts.received_frames < counts.offered_frames:
        return counts.received_frames
    return min(int(counts.received_frames * counts.nominal_seconds / counts.sending_seconds), counts.offered_frames - 1)
