# SPDX-License-Identifier: Apache-2.0
"""Trials at known rates over established connections: what delays, loss, recovery and tear-down share.

Disturbed trials are run again, and with a slower phase 1 where phase 1 failed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from natgauge.causes.cause import FULL
from natgauge.errors import BrokenError
from natgauge.figure_text import number
from natgauge.inputs.input import chosen, described, paced
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.metric import HELD_FIGURE, HIGHEST_FIGURE
from natgauge.notes import Note
from natgauge.procedures.kit import rate_search
from natgauge.procedures.kit.binary_search import SearchSpan
from natgauge.procedures.kit.phases import (
    LITERAL,
    Phase1Settings,
    Preparation,
    UnpreparableError,
    measure_first,
    prepare,
)
from natgauge.procedures.kit.procedure import Answered, Repetitions
from natgauge.procedures.kit.results import Attempt, Measurement, MeasurementResult, verdict_counts
from natgauge.procedures.kit.runner import TIME, Bounds, TrialRunner, at_one_load, is_valid, units_in, until_decided
from natgauge.procedures.kit.settings import COMMON, TrialSettings
from natgauge.records.repetition import Row
from natgauge.trials import Trial, TrialPlan
from natgauge.words import LimitedBy, Verdict

Phase1T = TypeVar("Phase1T", bound=Phase1Settings)


class HeldConnections(Repetitions[Phase1T]):
    """A measurement over established connections; the constructor finds a safe phase 1.

    `first_notes` are those of metrics that were measured first.
    """

    def __init__(self, runner: TrialRunner, settings: Phase1T, preparation: Preparation | None = None) -> None:
        super().__init__(runner, settings)
        self.preparation = prepare(runner, settings) if preparation is None else preparation
        if self.preparation.rate == 0:
            raise BrokenError(f"{runner.metric}: {_unpreparable(self.preparation)}")
        self.first_notes: list[Note] = []
        self.repetition_notes: list[Note] = []
        self._attempts: list[Attempt] = []

    def phase1_notes(self) -> Sequence[Note]:
        """Return notes on the final rate of phase 1 and on metrics that were measured first."""
        return [*self.preparation.notes(), *self.first_notes]

    def trial(self, load: float, plan: TrialPlan, bounds: Bounds) -> Trial:
        """Run one trial, with a slower phase 1 where that has proven too fast; UnpreparableError where none works."""
        slowed = replace(plan, phase1_rate=min(plan.phase1_rate, self.preparation.rate))
        trial = self.preparation.run(self.runner, slowed, load, bounds, self.judged)
        outcome = self.preparation.judge(trial)
        if self.preparation.hopeless:
            loss = self.settings.measures_loss
            raise UnpreparableError(self.runner.metric, self.preparation, trial, measures_loss=loss)
        return outcome

    def judged(self, outcome: Trial) -> Trial:
        """The outcome by the metric's own rules."""
        return outcome

    def at(self, rate: float, plan: TrialPlan, trials_left: int | None = None) -> Trial | None:
        """Try a plan until a trial measures the device; None (and a note) when none does.

        The rate is in frames/s of each direction. Phase 1 of the plan is slowed down where needed.
        """

        def kept() -> Trial:
            outcome = self.trial(rate, plan, Bounds(trials_left=trials_left))
            self._attempts.append(Attempt(rate, short=False, outcome=outcome))
            return outcome

        tried = until_decided(kept, at_one_load(self.settings.invalid_repeats), self.is_enough)
        outcome = tried.outcome if is_valid(tried.outcome) else self.best_of_invalid()
        if outcome is None:
            self.repetition_notes.append(Note("trials", f"{number(rate)} {self._unit(plan)}: {tried.sentence()}"))
        return outcome

    def _unit(self, plan: TrialPlan) -> str:
        return units_in(self.runner.metric, plan)[0]

    def is_enough(self, outcome: Trial) -> bool:
        """Whether a trial at a load needs no repeat."""
        return is_valid(outcome)

    def best_of_invalid(self) -> Trial | None:
        """A trial that counts where all repeats at a load were INVALID; None = there is no such trial."""
        return None

    def count(self, returned: Trial, replacement: Trial) -> None:
        """Let a trial of this repetition count as it was found, in place of how it was judged."""
        self._attempts = [
            replace(attempt, outcome=replacement) if attempt.outcome is returned else attempt
            for attempt in self._attempts
        ]

    def must(self, rate: float, plan: TrialPlan, trials_left: int | None = None) -> Trial:
        """Run a trial without which there is no result: BrokenError where none measured the device, or it collapsed."""
        outcome = self.at(rate, plan, trials_left)
        if outcome is None:
            raise BrokenError(f"{self.runner.metric}: {self.repetition_notes[-1]}")
        if outcome.verdict is Verdict.COLLAPSED:
            raise BrokenError(
                f"{self.runner.metric}: the device collapsed at {number(rate)} {self._unit(plan)}: {outcome.reason}"
            )
        return outcome

    def measurement(
        self,
        value: float,
        *,
        limited_by: LimitedBy = "device",
        figures: Mapping[str, float] | None = None,
        notes: Sequence[Note] = (),
        series: Sequence[Row] = (),
    ) -> Measurement:
        """Return the repetition made of all trials since the last call; the next repetition begins with none."""
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
    """Return the reason why no rate of phase 1 is safe."""
    notes = () if preparation.rough is None else preparation.rough.notes
    for note in notes:
        if note.word == "loss at every rate":
            return f"phase 1: {note}; a --loss-tolerance above that lets it pass"
        if note.word == "late at every rate":
            return f"phase 1: {note}"
    return all_at_no_rate(notes, held=preparation.rough is not None and HELD_FIGURE in preparation.rough.figures)


def all_at_no_rate(notes: Sequence[Note], *, held: bool) -> str:
    """Return why no rate establishes all connections; `held`: the device holds only a number of them."""
    fewer = "; give fewer --connections, or the device a larger table (--table-size)" if held else ""
    return f"the device establishes all connections at no rate: {'; '.join(map(str, notes))}{fewer}"


SearchT = TypeVar("SearchT", bound=rate_search.SearchSettings)

#: Probes for the bracket last this share of a trial, and not less than the seconds.
PROBE_SHARE: Final = 0.1
LEAST_PROBE_SECONDS: Final = 0.25
#: The slowest load tried sends this many frames a direction.
LEAST_FRAMES: Final = 100
#: Where a search without a known connection rate starts, in frames/s.
FIRST_RATE: Final = 50_000.0


def unprepared(preparation: Preparation, figures: Mapping[str, float]) -> Answered | None:
    """Return the answer without a connection rate: a rate of phase 2 of 0, for the same reason; None = there is one."""
    rough = preparation.rough
    if preparation.rate > 0 or rough is None:
        return None
    note = Note("phase 1", "phase 1 established all connections at no rate, so phase 2 was not tried")
    # The upper bound was one of the connection rate, in connections/s.
    return Answered(replace(rough.measurements[0], upper=None, figures=figures), [note, *rough.notes])


class HeldRate(rate_search.SearchedRate[SearchT]):
    """The highest rate of phase 2, in frames/s of each active direction."""

    phase = 2

    def __init__(self, runner: TrialRunner, settings: SearchT, preparation: Preparation) -> None:
        super().__init__(runner, settings)
        self.preparation = preparation
        self.probe_seconds = max(PROBE_SHARE * settings.phase2_seconds, LEAST_PROBE_SECONDS)
        # A trial that is as long as a probe needs none.
        self.short_probes = self.probe_seconds < settings.phase2_seconds
        # Kept here as well: the search loses its own list when phase 1 cannot be prepared.
        self.judged: list[Attempt] = []

    @abstractmethod
    def load(self, rate: float, seconds: float) -> TrialPlan:
        """The trial that tries this rate for so long."""

    @abstractmethod
    def figures(self, value: float) -> dict[str, float]:
        """Return the further figures that belong to the rate."""

    def search_once(self, known: float | None) -> Measurement:
        """Search once; where the table is too small for the connections, the answer is 0."""
        self.judged = []
        try:
            repetition = self.searched(known)
        except UnpreparableError as failure:
            if failure.outcome.limited_by not in FULL:
                raise
            repetition = _given_up(failure, self.judged)
        return replace(repetition, figures={**self.figures(repetition.value), **repetition.figures})

    def searched(self, known: float | None) -> Measurement:
        """Search by bisection."""
        return super().search_once(known)

    def length(self) -> rate_search.Length:
        """The length of phase 2: phase 1 only prepares, and its lateness decides nothing."""
        return rate_search.length_of_trials(self.settings.phase2_seconds)

    def seconds(self, rate: float) -> float:  # noqa: ARG002 - the same for every rate
        """Length of phase 2 in s, the same at every rate."""
        return self.settings.phase2_seconds

    @abstractmethod
    def span(self) -> SearchSpan:
        """Return the range of rates to search, in frames/s of each active direction."""

    def phase1_notes(self) -> Sequence[Note]:
        """Return notes on the final rate of phase 1."""
        return self.preparation.notes()

    def trial(self, rate: float, seconds: float, bounds: Bounds) -> Trial:
        """Try a rate for so long."""
        outcome = self.preparation.run(self.runner, self.load(rate, seconds), rate, bounds)
        judged = self.preparation.judge(outcome)
        self.judged.append(Attempt(rate, seconds < self.settings.phase2_seconds, judged))
        if self.preparation.hopeless:
            raise UnpreparableError(self.runner.metric, self.preparation, outcome)
        return judged

    def probe(self, rate: float, short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        """Run the trial of a rate, or a short one."""
        return self.trial(rate, self.probe_seconds if short else self.settings.phase2_seconds, bounds)


def _given_up(failure: UnpreparableError, attempts: list[Attempt]) -> Measurement:
    """Return the answer 0 of a device whose table is too small for the connections."""
    limit, note = failure.outcome.limited_by or "table", Note("phase 1", str(failure))
    return Measurement(
        0.0,
        None,
        limit,
        verdict_counts(attempts),
        attempts=tuple(attempts),
        notes=(note,),
        cause=failure.outcome.cause,
    )


#: The search for the throughput that the rates are shares of: finer than any share that a user may set.
THROUGHPUT_ERROR = SearchError(share=0.02)
#: For metrics with a single load.
ABOUT_LOAD: Final = described("load, as a share of the throughput", "share", (0.01, 1))


@dataclass(frozen=True, kw_only=True)
class ThroughputShareSettings(TrialSettings):
    """Settings of a measurement whose rates are shares of the throughput.

    The throughput is that of each direction, for the same frames and connections.
    """

    throughput_rate: float | None = chosen(
        None, "throughput of the device", "frames/s", partial(paced, unit="frames/s"), default="measured first"
    )


def throughput_of(held: HeldConnections[Any], settings: ThroughputShareSettings, share: float | None = None) -> float:
    """The throughput in frames/s of each direction, over connections that a safe phase 1 is known for.

    Where loss is measured, and the device loses a share at every rate, it is the highest rate with no more than that.
    `share` is of the time that is left, where a lower bound suffices; None = the search must be done, or TimeUpError
    says why it is not.
    """
    if settings.throughput_rate:
        return settings.throughput_rate
    runner, preparation = held.runner, held.preparation
    known = None if preparation.is_none else preparation.connection_rate
    # RFC 2544 sections 24 and 26.1: with `rfc` as when the throughput is measured for itself.
    literal = settings.profile == LITERAL
    error = COMMON[LITERAL]["error"] if literal else THROUGHPUT_ERROR
    result = measure_first(
        "throughput", runner, settings, share=share, error=error, confirm=literal, connection_rate=known
    )
    runner.first.append(result)
    (repetition,) = result.measurements
    if repetition.limited_by == TIME:
        upper = "" if repetition.upper is None else f", less than {number(repetition.upper)}"
        text = f"halving the throughput left out, at least {number(repetition.value)} {held.settings.rate_unit}{upper}"
        held.first_notes.append(Note("time used up", text))
    text = (
        f"throughput {number(result.summary.median)} {held.settings.rate_unit}: one search within "
        f"{result.parameters['error']}, trials of {result.parameters['trial_seconds']:g} s"
    )
    held.first_notes.append(Note("throughput", text))
    advice = rate_search.length_of_trials(result.parameters["trial_seconds"]).advice
    searched = SearchError.parse(result.parameters["error"])
    placement = result.parameters["placement"]
    held.first_notes += rate_search.short_note(result.measurements, placement, searched, advice, "the throughput")
    if result.summary.median == 0:
        if held.settings.measures_loss and HIGHEST_FIGURE in result.figures:
            return _in_place_of_throughput(held, result)
        notes = "; ".join(map(str, result.notes))
        raise BrokenError(f"{runner.metric}: the throughput that it needs first is 0: {notes}")
    return result.summary.median


def _in_place_of_throughput(held: HeldConnections[Any], result: MeasurementResult) -> float:
    """The highest rate of a device that loses a share at every rate, with no more than this share, and a note."""
    rate = result.figures[HIGHEST_FIGURE].median
    text = (
        f"the device loses a share at every rate, so {number(rate)} {held.settings.rate_unit}, the "
        "highest rate at which it lost no more, takes the place of the throughput"
    )
    held.first_notes.append(Note("throughput", text))
    return rate
