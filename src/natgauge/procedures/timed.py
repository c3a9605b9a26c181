# SPDX-License-Identifier: Apache-2.0
"""Measurements of recorded delays: the same trials at shares of the throughput, each read in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from natgauge.errors import BrokenError
from natgauge.measurer import Ability, Delays, Direction, KnowsOwnDelays, Measurer, TrialOutcome, TrialPlan
from natgauge.procedures import loaded
from natgauge.procedures.loaded import Loaded, LoadedSettings, lost_share, worst
from natgauge.procedures.preparation import phase2_notes
from natgauge.procedures.progress import Observer
from natgauge.procedures.rates import disturbed_note, repeat, tolerance_note
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.settings import about, refuse_unable, shares, verb

UNIT = "us"
#: RFC 8219 sections 7.2 and 7.3 want so many repetitions.
RFC_REPETITIONS = 20

Figures = Mapping[str, float]
#: Reads one direction's delays; names have no direction, times are in microseconds.
Reading = Callable[[Delays], Figures]
#: The trial of a rate of phase 1 and a rate of phase 2.
Planning = Callable[[float, float], TrialPlan]


@dataclass(frozen=True, kw_only=True)
class TimedSettings(LoadedSettings):
    """Settings of a measurement of delays.

    Attributes:
        loads: shares of the throughput at which delays are recorded, such as "100%,50%,10%"; each 0.1 to 100 %.
    """

    loads: str = field(default="100%", metadata=about("shares of the throughput, such as 100%,50%,10%"))

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        shares("loads", self.loads)

    @property
    def times_frames(self) -> bool:
        """Always."""
        return True

    def timed_plan(self, phase1_rate: float, rate: float) -> TrialPlan:
        """A trial whose delays are recorded."""
        return replace(self.plan(phase1_rate, rate, self.trial_seconds), record_delays=True)


@dataclass(frozen=True, slots=True)
class Timing:
    """How a metric reads delays.

    Attributes:
        metric: its name.
        headline: name of the figure that is the value, without direction.
        read: one direction's delays.
        own: whether the tester's own delay is worth reading in the same way.
    """

    metric: str
    headline: str
    read: Reading
    own: bool = True


def measure(
    measurer: Measurer, timing: Timing, settings: TimedSettings, observe: Observer, plan: Planning
) -> MeasurementResult:
    """Record delays at each load; the value is the headline of the highest load, the worst direction, in us.

    Args:
        measurer: performs the trials.
        timing: how delays are read.
        settings: of the procedure.
        observe: is told.
        plan: the trial of a rate of phase 1 and a rate of phase 2.

    Raises:
        BrokenError: no phase 1 works, or no trial at the highest load speaks of the device.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, timing.metric, settings)
    ready = loaded.start(measurer, timing.metric, settings, observe)
    measurements = repeat(ready.runner, settings.repeat, lambda _: _once(ready, timing, settings, plan))
    notes = [
        f"100 % is {ready.throughput:.0f} frames/s in each direction",
        *_own_notes(measurer, timing, plan(ready.preparation.rate, ready.throughput)),
        *_repetitions_note(settings),
        *tolerance_note(settings),
        *ready.preparation.note(),
        *phase2_notes(settings),
        *disturbed_note(measurements),
    ]
    return make_result(timing.metric, UNIT, settings.parameters(), measurements, notes)


def _once(ready: Loaded, timing: Timing, settings: TimedSettings, plan: Planning) -> Measurement:
    ready.start_repetition()
    rows: list[Mapping[str, float | str | None]] = []
    figures: dict[str, float] = {}
    every = shares("loads", settings.loads)
    for number, share in enumerate(every):
        rate = ready.throughput * share
        trial = plan(ready.preparation.rate, rate)
        left = len(every) - number
        outcome = ready.at(rate, trial, left) if figures else ready.must(rate, trial, left)
        if outcome is None:
            continue
        found = read(outcome, timing)
        figures = figures or found
        rows.append({"load_percent": share * 100, "rate": rate, "verdict": str(outcome.verdict), **found})
        ready.notes.extend(_trial_notes(outcome, share))
    return ready.measurement(figures[timing.headline], figures=figures, series=rows)


def read(outcome: TrialOutcome, timing: Timing) -> dict[str, float]:
    """Every figure of each direction, of both the one that is farther from 0, and what was lost.

    Raises:
        BrokenError: no delays were recorded.
    """
    if not outcome.delays:
        raise BrokenError(f"{timing.metric}: the trial left no delays, though they were asked for")
    each = {direction: timing.read(delays) for direction, delays in outcome.delays.items()}
    names = next(iter(each.values()))
    # A difference between delays may be negative; of a delay the largest is the worst.
    found = {name: max((figures[name] for figures in each.values()), key=abs) for name in names}
    if len(each) > 1:
        for direction, figures in each.items():
            found |= {f"{name}_from_{direction.value}": value for name, value in figures.items()}
    return found | {"lost_percent": 100 * worst({d: lost_share(counts) for d, counts in outcome.phase2.items()})}


def _trial_notes(outcome: TrialOutcome, share: float) -> list[str]:
    notes = []
    negative = sum(delays.negative for delays in outcome.delays.values())
    if negative:
        notes.append(f"{negative} frames seemed to arrive before they were sent: the clocks are not to be trusted")
    lost = {d: counts.lost for d, counts in outcome.phase2.items() if counts.lost}
    if lost:
        told = ", ".join(f"{number} from the {direction.value.capitalize()}" for direction, number in lost.items())
        notes.append(f"at {share:.0%} frames were lost ({told}); delays are of those that came")
    return notes


def _own_notes(measurer: Measurer, timing: Timing, plan: TrialPlan) -> list[str]:
    """The tester's own part, which is never subtracted silently."""
    if not timing.own or Ability.OWN_DELAYS not in measurer.abilities:
        return ["the tester's own delay was not measured; it is part of the figures"]
    knows = verb(measurer, KnowsOwnDelays)  # type: ignore[type-abstract] # a protocol is meant
    own: Mapping[Direction, Delays] = knows.own_delays(plan)
    largest = max(timing.read(delays)[timing.headline] for delays in own.values())
    return [f"the tester's own part, its ports joined without a device, is {largest:.3g} us; it is not subtracted"]


def _repetitions_note(settings: TimedSettings) -> list[str]:
    if settings.most_repetitions >= RFC_REPETITIONS:
        return []
    return [f"{settings.most_repetitions} repetitions; RFC 8219 section 7 wants {RFC_REPETITIONS}"]
