# SPDX-License-Identifier: Apache-2.0
"""Result of a procedure: every repetition with its evidence, their summary, shared notes, and figures of the device.

Notes that several metrics have are each a list, empty where there is nothing to say. Figures of the device are the
spread over its cores, losses by device of a chain, memory, open connections, its log.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Self

from annotated_types import Ge, Le

from natgauge.causes.cause import Cause, most_frequent
from natgauge.device_work import CoreWork, WorkByCore, total
from natgauge.figure_text import in_percent, with_noun
from natgauge.metrics import figures
from natgauge.metrics.metric import (
    CORE_IMBALANCE,
    ESTABLISHED,
    IDLE_CORES,
    LOST_PERCENT_AT,
    MICROJOULES_PER_CONNECTION,
    MICROJOULES_PER_FRAME,
    OCTETS_PER_CONNECTION,
    WATTS,
)
from natgauge.notes import Note
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.readings import LOG_FIGURES
from natgauge.records.repetition import Repetition
from natgauge.statistics.summary import LEAST_AUTOCORRELATED, VALUES_FOR_PERCENTILES, FigureSummary, summarize
from natgauge.trials import Trial
from natgauge.words import DRAWN, LimitedBy, Verdict

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


def failed_by_device(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the trials that failed for the device itself, and not for its table, its ports or its log."""
    return [each for each in attempts if each.outcome.verdict is Verdict.FAIL and each.outcome.limited_by == "device"]


def disturbed_note(measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of disturbed trials, and of those that failed because of it; empty if none."""
    outcomes: list[Trial] = [attempt.outcome for repetition in measurements for attempt in repetition.attempts]
    disturbed = sum(outcome.disturbed for outcome in outcomes)
    invalid = sum(outcome.verdict is Verdict.INVALID for outcome in outcomes)
    if not disturbed and not invalid:
        return []
    text = f"{disturbed} of {len(outcomes)} trials were disturbed, {invalid} were INVALID and not counted"
    notes = [Note("trials", text, disturbed + invalid)]
    if excused := sum(outcome.excused for outcome in outcomes):
        notes.append(Note("trials", excused_text(excused, len(outcomes)), excused))
    return notes


def command_failures_note(measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of failed tries of commands to the device; empty if none."""
    times = [attempt.outcome.command_failures for repetition in measurements for attempt in repetition.attempts]
    if not (failed := sum(times)):
        return []
    trials = sum(map(bool, times))
    text = f"{failed} tries of commands to the device failed in {trials} of {len(times)} trials"
    return [Note("trials", text, failed)]


def excused_text(excused: int, trials: int) -> str:
    """Return a text on the number of excused trials and the reason."""
    return f"{excused} of {trials} trials were excused: disturbances explain why they failed"


def tolerance_note(share: float) -> list[Note]:
    """Return a note on the share of the frames that a passing trial may lose; RFC 9693 tolerates no loss."""
    if share == 0:
        return []
    return [Note("settings", f"up to {in_percent(share)} of the frames could be lost in a passing trial")]


def zero_checksum_note(settings: TrialSettings, measurements: Iterable[Measurement]) -> list[Note]:
    """Return a note on the number of frames without a checksum over IPv6, where they count as received."""
    if settings.zero_checksum != "accept":
        return []
    outcomes = [attempt.outcome for repetition in measurements for attempt in repetition.attempts]
    streams = [counts for outcome in outcomes for counts in (outcome.phase1, *outcome.phase2.values())]
    zero = sum(counts.zero_checksums or 0 for counts in streams)
    received = sum(counts.received_frames for counts in streams)
    text = f"{zero} of {received} received frames had a UDP checksum of 0 over IPv6, which RFC 8200 forbids"
    return [Note("settings", text, value=float(zero))]


def repetitions_note(settings: TrialSettings, wanted: int, source: str) -> list[Note]:
    """Return a note if there are fewer repetitions than the standard requires; `source` names standard and section."""
    if settings.most_repetitions >= wanted:
        return []
    return [Note("repetitions", f"{with_noun(settings.most_repetitions, 'repetitions')}; {source} requires {wanted}")]


#: Messages of a handshake: what opens, its answer, and the Initiator's reaction to the answer. A transaction has more.
_HANDSHAKE: Final = 3
#: A core is idle with less than this share of the mean frames and of the busiest core's time.
IDLE_SHARE: Final = 0.1
#: With fewer frames for each core, chance alone spreads them unevenly.
LEAST_FRAMES: Final = 100


def with_device_figures(measurement: Measurement) -> Measurement:
    """Return the repetition with those of these figures that the lab and the device report, or why one is missing."""
    deciding = measurement.deciding
    figures = {**_core_figures(deciding), **_lost_at(deciding), **_log_figures(deciding), **_energy(deciding)}
    measurement = measurement.adding(*_energy_note(deciding), **figures)
    # A connection takes as much memory at any load.
    reported = [attempt.outcome.readings.octets_per_connection for attempt in measurement.attempts]
    octets = tuple(value for value in reported if value is not None)
    if not octets:
        return measurement
    # Each trial is a value of the sample.
    sampled = replace(measurement, sample={**measurement.sample, OCTETS_PER_CONNECTION: octets})
    return sampled.adding(**{OCTETS_PER_CONNECTION: statistics.median(octets)})


def _core_figures(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return `CORE_IMBALANCE` and `IDLE_CORES` over the deciding trials together; empty where no work is known."""
    known = [attempt for attempt in attempts if attempt.outcome.readings.core_work]
    work = total(attempt.outcome.readings.core_work for attempt in _deciding(known))
    uneven = imbalance(work)
    return {} if uneven is None else {CORE_IMBALANCE: uneven, IDLE_CORES: float(len(idle_cores(work)))}


def imbalance(work: WorkByCore) -> float | None:
    """Return the frames of the busiest core divided by the mean of all cores, from 1 to the number of cores.

    Where devices of a chain have cores of their own, each device is taken by itself, and the largest value counts.
    None where no device has several cores, or where each has fewer than `LEAST_FRAMES` frames for each core.
    """
    known = [each for each in map(_imbalance, _by_devices(work)) if each is not None]
    return max(known, default=None)


def idle_cores(work: WorkByCore) -> list[int]:
    """Return the cores that did next to nothing (`IDLE_SHARE`), ascending; empty where `imbalance` is None."""
    return sorted(core for of_device in _by_devices(work) for core in _idle(of_device))


def _by_devices(work: WorkByCore) -> Iterable[WorkByCore]:
    groups: dict[str, dict[int, CoreWork]] = {}
    for core, of_core in work.items():
        groups.setdefault(of_core.devices, {})[core] = of_core
    return groups.values()


def _imbalance(work: WorkByCore) -> float | None:
    frames = sum(of_core.frames for of_core in work.values())
    if len(work) < 2 or frames < LEAST_FRAMES * len(work):
        return None
    return max(of_core.frames for of_core in work.values()) * len(work) / frames


def _idle(work: WorkByCore) -> list[int]:
    if _imbalance(work) is None:
        return []
    mean = sum(of_core.frames for of_core in work.values()) / len(work)
    longest = max(of_core.busy_seconds or 0.0 for of_core in work.values())
    return [
        core
        for core, of_core in work.items()
        if of_core.frames < IDLE_SHARE * mean
        and (of_core.busy_seconds is None or not longest or of_core.busy_seconds < IDLE_SHARE * longest)
    ]


def _log_figures(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the figures of the log in the last deciding trial; empty where no log was compared."""
    known = [each for each in attempts if (log := each.outcome.readings.log) is not None and log.connections]
    deciding = _deciding(known) or known
    log = deciding[-1].outcome.readings.log if deciding else None
    if log is None:
        return {}
    return {figure.name: value for figure in LOG_FIGURES if (value := figure.of(log)) is not None}


def _deciding(known: Sequence[Attempt]) -> Sequence[Attempt]:
    """Return the trials of the highest load that passed; where none passed, those of the lowest load that failed."""
    for verdict, best in ((Verdict.PASS, max), (Verdict.FAIL, min)):
        loads = [attempt.load for attempt in known if attempt.outcome.verdict is verdict]
        if loads:
            return [attempt for attempt in known if attempt.outcome.verdict is verdict and attempt.load == best(loads)]
    return []


def _metered(attempts: Sequence[Attempt]) -> Sequence[Trial]:
    """Return the trials at the highest load that passed, of those in which a meter was read."""
    passed = [each for each in attempts if each.outcome.verdict is Verdict.PASS and each.outcome.readings.energy]
    return [attempt.outcome for attempt in _deciding(passed)]


def _energy(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the power at the highest load that passed, and the energy of a frame or connection; empty = not known."""
    outcomes, joules, seconds = [], 0.0, 0.0
    for outcome in _metered(attempts):
        energy = outcome.readings.energy
        if energy is not None and energy.joules is not None:
            outcomes.append(outcome)
            joules += energy.joules
            seconds += energy.seconds
    opened = sum(outcome.phase1.received_frames for outcome in outcomes)
    sent = any(counts.received_frames for outcome in outcomes for counts in outcome.phase2.values())
    streams = (counts for outcome in outcomes for counts in (*outcome.streams, outcome.flood) if counts is not None)
    frames = sum(counts.received_messages for counts in streams)
    if not seconds or not opened + sent:
        return {}
    # Frames that draw their four tuples are more than the connections that they open.
    drawn = any(outcome.plan.order == DRAWN for outcome in outcomes)
    name, number = (MICROJOULES_PER_FRAME, frames) if sent or drawn else (MICROJOULES_PER_CONNECTION, opened)
    return {WATTS: joules / seconds, name: 1e6 * joules / number}


def _energy_note(attempts: Sequence[Attempt]) -> list[Note]:
    """Return a note where no trial at the highest load that passed has an energy."""
    read = [outcome.readings.energy for outcome in _metered(attempts)]
    why = [energy.why_unknown for energy in read if energy is not None]
    if not why or not all(why):
        return []
    return [Note("method", f"power and energy are not known: at the highest load that passed {why[-1]}")]


def _lost_at(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the share of the lost frames that each device dropped, in percent, by the name of the figure.

    The deciding trials are those of the lowest load that the device failed. Their frames may be dropped at a place
    without a counter, so the sum may be less than 100. Two interfaces may count the same frame, so the shares are of
    the counted frames where these are more than the lost ones. Empty for a single device, and without lost frames.
    """
    failed = [each for each in failed_by_device(attempts) if each.outcome.readings.dropped and _lost(each.outcome)]
    outcomes = [attempt.outcome for attempt in _deciding(failed)]
    dropped: Counter[str] = Counter()
    for outcome in outcomes:
        dropped.update({place.split(" ")[0]: 0 for place in outcome.readings.dropped})
        for place, frames in outcome.readings.dropped.items():
            dropped[place.split(" ")[0]] += max(0, frames)
    lost = max(sum(map(_lost, outcomes)), dropped.total())
    if len(dropped) < 2 or not lost:
        return {}
    return {f"{LOST_PERCENT_AT}{device}": 100 * frames / lost for device, frames in dropped.items()}


def _lost(outcome: Trial) -> int:
    """Frames that were sent and did not come; a device drops none that nobody could send, and any of a flood."""
    streams = (counts for counts in (*outcome.streams, outcome.flood) if counts is not None)
    return sum(max(0, counts.offered_frames - counts.received_frames) for counts in streams)


def with_handshakes(measurement: Measurement) -> Measurement:
    """Return the repetition with `ESTABLISHED`, if its connections open with a handshake."""
    known = [one.readings.established for one in measurement.passed if len(one.phase1.messages) >= _HANDSHAKE]
    counts = [count for count in known if count is not None]
    return measurement.adding(**{ESTABLISHED: float(counts[-1])}) if counts else measurement
