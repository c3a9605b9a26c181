# SPDX-License-Identifier: Apache-2.0
"""Result of a procedure: every repetition with its evidence, and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Self

from annotated_types import Ge, Le

from natgauge.causes.cause import Cause, most_frequent
from natgauge.metrics import figures
from natgauge.notes import Note
from natgauge.records.repetition import Repetition
from natgauge.statistics.figure import FigureSummary
from natgauge.statistics.summary import LEAST_AUTOCORRELATED, VALUES_FOR_PERCENTILES, summarize
from natgauge.trials import Trial
from natgauge.words import LimitedBy, Verdict

#: The most trials that one stands for; no measurement has as many.
MOST_ALIKE: Final = 1_000_000


def repetition_notes(number: int, *, sampled: bool) -> list[Note]:
    """Return what a reader must know of a number of repetitions.

    `sampled`: each value rests on a sample, so that one repetition already shows spread.
    """
    notes = []
    plural = "repetition" if number == 1 else "repetitions"
    if number < VALUES_FOR_PERCENTILES:
        text = f"with {number} {plural} the 1st and 99th percentiles are the minimum and the maximum"
        notes.append(Note("repetitions", text))
    if number == 1 and not sampled:
        text = "a single repetition says nothing about spread; RFC 9693 section 6 requires several"
        notes.append(Note("repetitions", text))
    if number >= LEAST_AUTOCORRELATED:
        text = (
            "the confidence interval of the median assumes independent repetitions; on a host whose speed drifts it "
            "contains the median less often than its coverage says, with few repetitions also where no doubt says so"
        )
        notes.append(Note("repetitions", text))
    return notes


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial of a search: its load, whether it was a short probe, and its outcome.

    Attributes:
        is_aside: whether its load is another one than those of the search, whatever the number: a part of the
            connections or frames, or without the flood beside them. It is no bound of the value.
        times: how many trials it stands for, 1 to `MOST_ALIKE`: a campaign's journal has one of many that are alike.
    """

    load: float
    short: bool
    outcome: Trial
    is_aside: bool = False
    times: Annotated[int, Ge(1), Le(MOST_ALIKE)] = 1


@dataclass(frozen=True, slots=True)
class Measurement(Repetition):
    """One repetition with its trials.

    Attributes:
        sample: the single values of those figures of which this repetition has several, such as the time of each
            deletion (RFC 9693 section 4.8), by name.
        is_sampled: whether the value itself rests on a sample, so that one repetition already shows spread.
    """

    attempts: tuple[Attempt, ...] = ()
    sample: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    is_sampled: bool = False

    @property
    def searched(self) -> tuple[Attempt, ...]:
        """The trials of the loads among which the value was found."""
        return tuple(attempt for attempt in self.attempts if not attempt.is_aside)

    @property
    def deciding(self) -> tuple[Attempt, ...]:
        """The trials of `searched` without those that other trials outvoted.

        Where a load that passed is the value, a trial of no higher load that failed did so by chance, and so did one of
        a higher load that passed.
        """
        passed = {each.load for each in self.searched if each.outcome.verdict is Verdict.PASS and not each.short}
        if self.value not in passed:
            return self.searched
        outvoted = {True: Verdict.PASS, False: Verdict.FAIL}
        return tuple(each for each in self.searched if each.outcome.verdict is not outvoted[each.load > self.value])

    @property
    def disturbed(self) -> int:
        """Trials in which stalls or stolen time were seen, whatever their verdict."""
        return sum(attempt.times for attempt in self.attempts if attempt.outcome.disturbed)

    @property
    def passed(self) -> list[Trial]:
        """Outcomes of the trials of full length that passed at the value."""
        full = (each for each in self.searched if each.load == self.value and not each.short)
        return [each.outcome for each in full if each.outcome.verdict is Verdict.PASS]

    def adding(self, *notes: Note, **figures: float) -> Self:
        """Return the repetition with further notes and figures, which replace its own of the same names."""
        return replace(self, notes=(*self.notes, *notes), figures={**self.figures, **figures})


@dataclass(frozen=True, slots=True)
class MeasurementResult:
    """All repetitions of one measurement.

    `parameters` are the settings as run; `first` are results that were measured first, and that the rates of this
    measurement rest on. They keep their own doubts.
    """

    metric: str
    unit: str
    parameters: Mapping[str, Any]
    measurements: tuple[Measurement, ...]
    notes: tuple[Note, ...] = ()
    first: tuple[MeasurementResult, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """Values of all repetitions in their order."""
        return tuple(measurement.value for measurement in self.measurements)

    @property
    def summary(self) -> FigureSummary:
        """Summary of these values."""
        return summarize(self.values)

    @property
    def error(self) -> float | None:
        """The largest error of a repetition; None when one has no upper bound."""
        errors = [measurement.error for measurement in self.measurements]
        known = [error for error in errors if error is not None]
        return max(known) if len(known) == len(errors) else None

    @property
    def limited_by(self) -> LimitedBy:
        """Most frequent cause that limited a repetition."""
        return Counter(measurement.limited_by for measurement in self.measurements).most_common(1)[0][0]

    @property
    def cause(self) -> Cause | None:
        """The most frequent cause of the repetitions that the most frequent limit limited."""
        limited = [repetition for repetition in self.measurements if repetition.limited_by == self.limited_by]
        causes = [repetition.cause for repetition in limited if repetition.cause is not None]
        return most_frequent(causes) if causes else None

    @property
    def trials(self) -> dict[Verdict, int]:
        """Trials per verdict, all repetitions together."""
        return {verdict: sum(each.trials.get(verdict, 0) for each in self.measurements) for verdict in Verdict}

    @property
    def disturbed(self) -> int:
        """Trials in which stalls or stolen time were seen, whatever their verdict."""
        return sum(repetition.disturbed for repetition in self.measurements)

    @property
    def excused(self) -> int:
        """Trials that would have failed, and are INVALID because disturbances explain that."""
        attempts = [attempt for repetition in self.measurements for attempt in repetition.attempts]
        return sum(attempt.times for attempt in attempts if attempt.outcome.excused)

    @property
    def raised_timeout(self) -> int | None:
        """The longest UDP time-out in s to which natgauge raised the device's for a trial; None = it raised none."""
        first = [result.raised_timeout for result in self.first]
        trials = (attempt.outcome for repetition in self.measurements for attempt in repetition.attempts)
        return max(filter(None, (*first, *(outcome.raised_timeout for outcome in trials))), default=None)

    @property
    def figures(self) -> dict[str, FigureSummary]:
        """Summary of each further figure over all repetitions; of a sample over all its values.

        The median of a figure that a trial was run with is the lower one of two, so that a trial had it.
        """
        names = dict.fromkeys(name for measurement in self.measurements for name in measurement.figures)
        return {name: self._figure(name) for name in names}

    def _figure(self, name: str) -> FigureSummary:
        having = [each for each in self.measurements if name in each.figures]
        values = [value for each in having for value in each.sample.get(name, (each.figures[name],))]
        figure = figures().get(name)
        return summarize(values, is_tried=figure is not None and figure.is_tried)

    @property
    def is_sampled(self) -> bool:
        """Whether the value of each repetition rests on a sample, so that one repetition already shows spread."""
        return all(measurement.is_sampled for measurement in self.measurements)

    @property
    def repetition_notes(self) -> list[Note]:
        """What a reader must know of the number of repetitions; these notes are among `notes`."""
        return repetition_notes(len(self.measurements), sampled=self.is_sampled)


def make_result(
    metric: str,
    unit: str,
    parameters: Mapping[str, Any],
    measurements: Sequence[Measurement],
    notes: Iterable[Note] = (),
) -> MeasurementResult:
    """Put the repetitions together; equal notes appear once."""
    result = MeasurementResult(metric, unit, parameters, tuple(measurements))
    every = [*notes, *(note for each in measurements for note in each.notes), *result.repetition_notes]
    return replace(result, notes=tuple(dict.fromkeys(every)))


def verdict_counts(attempts: Iterable[Attempt]) -> dict[Verdict, int]:
    """Return the number of trials by verdict."""
    counts = Counter(attempt.outcome.verdict for attempt in attempts)
    return {verdict: counts[verdict] for verdict in Verdict}
