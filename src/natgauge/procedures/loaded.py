# SPDX-License-Identifier: Apache-2.0
"""Trials at known rates over established connections: what latency, delay variation, loss and recovery share.

Their rates are shares of the throughput, which is taken from an earlier result or measured first, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from natgauge.errors import BrokenError
from natgauge.measurer import Counts, Direction, Measurer, TrialOutcome, TrialPlan, Verdict
from natgauge.procedures import throughput
from natgauge.procedures.preparation import EstablishingSettings, Preparation, PreparedSettings, prepare
from natgauge.procedures.progress import Bounds, Observer, TrialRunner
from natgauge.procedures.rates import disturbed_note, repeat
from natgauge.procedures.results import Attempt, Measurement, MeasurementResult, make_result, verdict_counts
from natgauge.procedures.settings import SearchError, about, inner, positive, refuse_unable

#: The search for the throughput that the rates are shares of: finer than any share that is asked for.
THROUGHPUT_ERROR = SearchError(share=0.02)
#: Its trials need not be as long as those whose delays are recorded.
LONGEST_SEARCH_TRIAL_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class LoadedSettings(PreparedSettings):
    """Settings of a measurement whose rates are shares of the throughput.

    Attributes:
        throughput_rate: the device's throughput in frames/s of each direction, for the same frames and connections;
            None = measured first.
    """

    throughput_rate: float | None = field(
        default=None, metadata=about("throughput of the device, measured first when not given", "frames/s")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        if self.throughput_rate is not None:
            positive("throughput rate", self.throughput_rate, "frames/s")


@dataclass(slots=True)
class Loaded:
    """Runs trials at known rates; disturbed ones again, and with a slower phase 1 where phase 1 failed.

    Attributes:
        runner: hands trials on.
        settings: of the measurement.
        preparation: of phase 1.
        throughput: in frames/s of each direction; 0 where it does not matter.
        attempts: all trials since the last repetition began.
        notes: since then.
    """

    runner: TrialRunner
    settings: EstablishingSettings
    preparation: Preparation
    throughput: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def start_repetition(self) -> None:
        """Forget the trials of the one before."""
        self.attempts, self.notes = [], []

    def once(self, load: float, plan: TrialPlan, bounds: Bounds) -> TrialOutcome:
        """Run one trial, with a slower phase 1 where that has proven too fast.

        Raises:
            BrokenError: phase 1 cannot establish the connections.
            NatgaugeError: the trial could not be run at all.
        """
        slowed = replace(plan, phase1_rate=min(plan.phase1_rate, self.preparation.rate))
        told = self.runner.run(slowed, load, bounds)
        outcome = self.preparation.judge(told)
        self.attempts.append(Attempt(load, short=False, outcome=outcome))
        if self.preparation.hopeless:
            raise BrokenError(f"{self.runner.metric}: phase 1 could not establish the connections: {told.reason}")
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
        outcome = None
        for _ in range(self.settings.invalid_repeats + 1):
            outcome = self.once(rate, plan, Bounds(trials_left=trials_left))
            if outcome.verdict is not Verdict.INVALID:
                return outcome
        repeats = self.settings.invalid_repeats + 1
        reason = "" if outcome is None else outcome.reason
        self.notes.append(f"{rate:.0f} frames/s: {repeats} trials were INVALID, the last one because of {reason}")
        return None

    def must(self, rate: float, plan: TrialPlan, trials_left: int | None = None) -> TrialOutcome:
        """The same where nothing can be said without this trial.

        Raises:
            BrokenError: no trial spoke of the device, or the device collapsed.
        """
        outcome = self.at(rate, plan, trials_left)
        if outcome is None:
            raise BrokenError(f"{self.runner.metric}: {self.notes[-1]}")
        if outcome.verdict is Verdict.COLLAPSED:
            raise BrokenError(f"{self.runner.metric}: the device collapsed at {rate:.0f} frames/s: {outcome.reason}")
        return outcome

    def measurement(
        self,
        value: float,
        *,
        limited_by: str = "device",
        figures: Mapping[str, float] | None = None,
        notes: Sequence[str] = (),
        series: Sequence[Mapping[str, float | str | None]] = (),
    ) -> Measurement:
        """What the trials of this repetition come to."""
        return Measurement(
            value=value,
            upper=None,
            limited_by=limited_by,
            trials=verdict_counts(self.attempts),
            attempts=tuple(self.attempts),
            figures=figures or {},
            notes=(*self.notes, *notes),
            series=tuple(series),
        )


def start(
    measurer: Measurer,
    metric: str,
    settings: EstablishingSettings,
    observe: Observer,
    *,
    throughput_wanted: bool = True,
) -> Loaded:
    """Find a safe phase 1 and, for `LoadedSettings` that want it, the throughput.

    Raises:
        BrokenError: the device establishes no connections, or forwards nothing without loss.
        NatgaugeError: a trial could not be run at all.
    """
    preparation = prepare(measurer, settings, observe)
    if preparation.rate == 0:
        notes = "" if preparation.rough is None else "; ".join(preparation.rough.notes)
        raise BrokenError(f"{metric}: the device establishes no connections at any rate: {notes}")
    known = 0.0
    if throughput_wanted and isinstance(settings, LoadedSettings):
        known = settings.throughput_rate or _throughput(measurer, metric, settings, preparation, observe)
    runner = TrialRunner(measurer, metric, settings.most_repetitions, observe)
    return Loaded(runner, settings, preparation, known)


def measure_standing(
    measurer: Measurer,
    named: tuple[str, str],
    settings: EstablishingSettings,
    observe: Observer,
    once: Callable[[Loaded], Measurement],
) -> MeasurementResult:
    """Measure something of connections that are only established, with no phase 2 and so no throughput.

    Args:
        measurer: performs the trials.
        named: the metric and its unit.
        settings: of the procedure.
        observe: is told.
        once: one repetition.

    Raises:
        UsageError: the tester cannot do it here.
        BrokenError: the device establishes no connections.
        NatgaugeError: a trial could not be run at all.
    """
    metric, unit = named
    refuse_unable(measurer.abilities, metric, settings)
    ready = start(measurer, metric, settings, observe)

    def repetition(_known: float | None) -> Measurement:
        ready.start_repetition()
        return once(ready)

    measurements = repeat(ready.runner, settings.repeat, repetition)
    notes = [*ready.preparation.note(), *disturbed_note(measurements)]
    return make_result(metric, unit, settings.parameters(), measurements, notes)


def _throughput(
    measurer: Measurer, metric: str, settings: LoadedSettings, preparation: Preparation, observe: Observer
) -> float:
    asked = inner(
        throughput.Settings,
        settings,
        error=THROUGHPUT_ERROR,
        confirm=False,
        trial_seconds=min(settings.trial_seconds, LONGEST_SEARCH_TRIAL_SECONDS),
        directions=settings.directions,
        connection_rate=None if settings.stateless else preparation.connection_rate,
        stateless=settings.stateless,
        foreground_share=settings.foreground_share,
    )
    found = throughput.run(measurer, asked, observe)
    if found.summary.median == 0:
        raise BrokenError(f"{metric}: the device forwards at no rate without loss: {'; '.join(found.notes)}")
    return found.summary.median


def lost_share(counts: Counts) -> float:
    """Frames lost as a share of those offered (RFC 2544 section 26.3); 0 when none was."""
    return counts.lost / counts.offered if counts.offered else 0.0


def shortfall(counts: Counts) -> float:
    """How much too slow the sending was, as a share: what the device refused by slowing the sender down."""
    if counts.sending_seconds <= counts.nominal_seconds or counts.nominal_seconds <= 0:
        return 0.0
    return 1 - counts.nominal_seconds / counts.sending_seconds


def worst(values: Mapping[Direction, float]) -> float:
    """The largest of all directions'."""
    return max(values.values(), default=0.0)
