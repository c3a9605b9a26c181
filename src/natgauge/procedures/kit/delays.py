# SPDX-License-Identifier: Apache-2.0
"""Metrics of delays: their statistics, and trials whose frames are timed, at shares of the throughput.

The statistics are percentiles of recorded delays, and the two variations of RFC 5481. Frames that did not come have no
delay. They are reported as lost and left out: packet delay variation is of the frames that came (RFC 5481 section 4.2),
and a difference needs both frames of its pair (RFC 5481 section 4.1).

The tester's own part of a delay is reported. A core that stops delays all frames that are due in that time. These
delays belong to the host; docs/method/delays.md has what follows from that. Even a few such frames move the device's
own slow frames to lower ranks, so a trial whose figures they move is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from natgauge.delays import Delays, Variation
from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.inputs.input import described
from natgauge.inputs.measuring_types import Shares, shares
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import TIMED_FRAMES
from natgauge.metrics.metric import Metric
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import lost_share
from natgauge.procedures.kit.held_connections import HeldConnections, ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.phases import Phase1Settings, Phase2Settings
from natgauge.procedures.kit.results import Measurement, repetitions_note, tolerance_note
from natgauge.procedures.kit.runner import Bounds, TimeUpError, TrialRunner, left_out
from natgauge.records.repetition import Row
from natgauge.trials import LEAST_WATCHED_SECONDS, Trial, TrialPlan, together
from natgauge.words import Placement, Verdict, origin

if TYPE_CHECKING:
    from natgauge.agreement.generated import StreamCounts


Buckets = Sequence[tuple[float, float, int]]

#: RFC 8219 section 7.2: typical latency is the median, worst case latency the 99.9th percentile.
TYPICAL = 50.0
WORST_CASE = 99.9
#: The share of the frames that are slower than the worst case.
ABOVE_WORST_CASE = 0.001
#: The width of a bucket, as a share of its delays: figures nearer to each other than this may be the same delay.
BUCKET_WIDTH = 0.01


def percentile_of(buckets: Buckets, percent: float) -> float:
    """The middle of the bucket that holds the nearest-rank percentile (RFC 2330 section 11.3); exact to 0.5 %."""
    return sum(_bucket_of(buckets, percent)) / 2


def _bucket_of(buckets: Buckets, percent: float) -> tuple[float, float]:
    """Both ends of the bucket that holds the nearest-rank percentile.

    The buckets are in rising order, with one frame at least; 0 < percent <= 100.
    """
    total = sum(frames for _, _, frames in buckets)
    if not total or not 0 < percent <= 100:
        raise ValueError(f"percentile {percent} of {total} frames: want 0 < percent <= 100 and frames")
    # Exact: 99.9 * 1000 / 100 must have rank 999, whatever floating point makes of it.
    rank = math.ceil(Fraction(str(percent)) * total / 100)
    for lower, upper, frames in buckets:
        rank -= frames
        if rank <= 0:
            return lower, upper
    raise AssertionError("a rank within the total lies in a bucket")


def percentile_within(values: Delays | Variation, percent: float) -> float:
    """A percentile of what was recorded, in seconds, never outside of the exact extremes."""
    return min(max(percentile_of(values.buckets, percent), values.minimum), values.maximum)


def ends_within(values: Delays | Variation, percent: float) -> tuple[float, float]:
    """Between which values in seconds a percentile is: the ends of its bucket, never outside of the exact extremes."""
    lower, upper = _bucket_of(values.buckets, percent)
    return max(lower, values.minimum), min(upper, values.maximum)


def typical_ends(delays: Delays) -> tuple[float, float]:
    """Between which values in seconds the median is."""
    return ends_within(delays, TYPICAL)


def delay_variation(delays: Delays) -> float:
    """Packet delay variation in s: the 99.9th percentile of the delays - their minimum (RFC 8219 section 7.3.1)."""
    return percentile_within(delays, WORST_CASE) - delays.minimum


def ends_of_variation(delays: Delays) -> tuple[float, float]:
    """Between which values in seconds the packet delay variation is: the minimum is exact, the percentile is not."""
    lower, upper = ends_within(delays, WORST_CASE)
    return lower - delays.minimum, upper - delays.minimum


def without_slowest(delays: Delays, frames: int) -> Delays | None:
    """The rest without the `frames` slowest, and as many of the largest differences up and down; None = none is left.

    Where it is not known which frames a stall delayed, but how many, each percentile of the others lies between that of
    what is left and that of all.
    """
    left = _trimmed(delays.buckets, frames)
    if frames == 0 or not left:
        return delays if frames == 0 else None
    variation = delays.variation
    if variation is not None:
        between = _trimmed(_trimmed(variation.buckets, frames)[::-1], frames)[::-1]
        variation = None if not between else _within(variation, between)
    kept = sum(number for _, _, number in left)
    return replace(
        delays,
        frames=kept + delays.negative,
        maximum=min(delays.maximum, left[-1][1]),
        mean=math.fsum((lower + upper) / 2 * number for lower, upper, number in left) / kept,
        buckets=left,
        variation=variation,
    )


def _trimmed(buckets: Buckets, frames: int) -> tuple[tuple[float, float, int], ...]:
    """The buckets without the last `frames`."""
    kept = list(buckets)
    while kept and frames:
        lower, upper, number = kept.pop()
        if number > frames:
            kept.append((lower, upper, number - frames))
            break
        frames -= number
    return tuple(kept)


def _within(variation: Variation, buckets: tuple[tuple[float, float, int], ...]) -> Variation:
    return Variation(
        pairs=sum(pairs for _, _, pairs in buckets),
        minimum=max(variation.minimum, buckets[0][0]),
        maximum=min(variation.maximum, buckets[-1][1]),
        buckets=buckets,
    )


#: In `shared` placement frames up to this share of the throughput leave one by one, which the tester can do then.
ALONE_SHARE: Final = 0.5
#: A trial is repeated so often at most because too many of its frames were due in stalls.
MOST_STALLED: Final = 3
#: Names of figures in words, where the name is none.
_SAID: Final[Mapping[str, str]] = {
    "p99_us": "99th percentile",
    "delay_99_9_us": "99.9th percentile of the delay",
    "ipdv_spread_us": "spread of the IPDV",
}
#: Repetitions that RFC 8219 sections 7.2 and 7.3 want.
RFC_REPETITIONS = 20

#: Reads one direction's delays; names have no direction, times are in microseconds.
Reading = Callable[[Delays], Mapping[str, float]]


def _check_loads(name: str, text: str) -> None:
    shares(name, text)


#: Metrics with another default use this description for their own field.
ABOUT_LOADS: Final = described(
    "loads as shares of the throughput, or of the connection rate, such as 100%,50%,10%",
    check=_check_loads,
    type=Shares(),
)


@dataclass(frozen=True, kw_only=True)
class DelaySettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of a measurement of delays."""

    loads: str = field(default="100%", metadata=ABOUT_LOADS)

    times_frames = True

    def timed_plan(self, phase1_rate: float, rate: float, share: float) -> TrialPlan:
        """A trial whose delays are recorded; `share` is that of the throughput."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        return replace(plan, record_delays=True, at_rate=True, single_frames=share <= ALONE_SHARE)


DelaySettingsT = TypeVar("DelaySettingsT", bound=DelaySettings)


class _Moved(NamedTuple):
    """A figure of one direction that frames in stalls changed, by its name in words.

    The value is in us; without the slowest frames, as many as were due in stalls, None = not known.
    """

    name: str
    value: float
    without: float | None

    @property
    def share(self) -> float:
        """The change, as a share of the larger figure; infinite if not known."""
        if self.without is None:
            return math.inf
        return abs(self.value - self.without) / max(abs(self.value), abs(self.without))


@dataclass(frozen=True, slots=True)
class Timing:
    """Definition of a delay metric.

    Attributes:
        percentiles: names of the figures that are also reported without frames in stalls, and that decide whether a
            trial is repeated.
        ends: returns between which values in seconds the headline of a direction is; None = it is exact.
        waits: number of frames that make a headline, each of which may wait for those that left with it.
        of_slowest: whether the slowest frames alone are the headline, which one stall may have delayed.
        others: names of further figures that are also reported without frames in stalls, but do not repeat a trial.
    """

    metric: Metric
    read: Reading
    percentiles: tuple[str, ...]
    others: tuple[str, ...] = ()
    ends: Callable[[Delays], tuple[float, float]] | None = None
    waits: int = 1
    of_slowest: bool = False

    def of_headline(self, every: Iterable[Delays]) -> dict[str, float]:
        """Return between which values the headline of the worse direction is, in us, and of how many frames it is."""
        directions = list(every)
        counted = {TIMED_FRAMES: float(min(delays.frames for delays in directions))}
        names = self.metric.sampled_between
        if self.ends is None or names is None:
            return counted
        each = [self.ends(delays) for delays in directions]
        return counted | {name: 1e6 * max(ends) for name, ends in zip(names, zip(*each, strict=True), strict=True)}

    def figures(self, delays: Delays) -> dict[str, float]:
        """Return the figures for all frames, and without the slowest frames, as many as were due in stalls."""
        figures = dict(self.read(delays))
        due = delays.due_in_stalls
        left = None if due is None else without_slowest(delays, due)
        if left is None or (left.variation is None) != (delays.variation is None):
            return figures
        rest = self.read(left)
        return figures | {_without_stalls(name): rest[name] for name in (*self.percentiles, *self.others)}

    def moved(self, outcome: Trial) -> list[_Moved]:
        """The percentiles of each direction that frames in stalls moved, or may have moved, by more than a bucket."""
        moved = []
        for direction, delays in outcome.delays.items():
            due = delays.due_in_stalls
            if not (outcome.disturbed if due is None else due):
                continue
            figures = self.figures(delays)
            for name in self.percentiles:
                value, without = figures[name], figures.get(_without_stalls(name))
                if without is None or abs(value - without) > BUCKET_WIDTH * abs(value):
                    whose = f" {origin(direction)}" if len(outcome.delays) > 1 else ""
                    said = _SAID.get(name, name.removesuffix("_us").replace("_", " "))
                    moved.append(_Moved(said + whose, value, without))
        return moved


class TimedTrials(HeldConnections[DelaySettingsT]):
    """Delays at each load; the value is the headline of the highest, of the worst direction, in us."""

    def __init__(self, runner: TrialRunner, settings: DelaySettingsT, timing: Timing) -> None:
        super().__init__(runner, settings)
        self.timing = timing
        #: Trials at the current load whose percentiles stalls moved, each with its outcome by that rule.
        self._stalled: list[tuple[Trial, Trial]] = []
        self.throughput = throughput_of(self, settings)

    def once(self, _known: float | None) -> Measurement:
        """Measure each load once; BrokenError where no trial at the highest one measures the device."""
        rows: list[Row] = []
        figures: dict[str, float] = {}
        every = shares("loads", self.settings.loads)
        time_is_up = False
        for number, share in enumerate(every):
            rate = self.throughput * share
            plan = self.settings.timed_plan(self.preparation.rate, rate, share)
            left = len(every) - number
            self._stalled = []
            # The value is of the first load; any later one may stay undecided, or be left out.
            try:
                outcome = self.at(rate, plan, left) if figures else self.must(rate, plan, left)
            except TimeUpError as error:
                outcome = self.best_of_invalid()
                if outcome is None and not figures:
                    raise
                missing = ", ".join(f"{load * 100:g} %" for load in every[number + (outcome is not None) :])
                if missing:
                    self.repetition_notes.append(left_out(f"the loads {missing}", error))
                time_is_up = True
            if outcome is not None and figures and not outcome.delays:
                text = f"at {in_percent(share)} of the throughput no frame was timed: {outcome.reason}"
                self.repetition_notes.append(Note("device", text))
            elif outcome is not None:
                figures_of_load = read(outcome, self.timing)
                figures = figures or figures_of_load | self.timing.of_headline(outcome.delays.values())
                rows.append(
                    {"load_percent": share * 100, "rate": rate, "verdict": str(outcome.verdict), **figures_of_load}
                )
                is_value = len(rows) == 1
                self.repetition_notes.extend(_trial_notes(outcome, share, is_value=is_value))
                self.repetition_notes.extend(self._stalls_note(outcome, share))
            if time_is_up:
                break
        return self.measurement(figures[self.timing.metric.value_figure], figures=figures, series=rows)

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        """Return what 100 % is, and what of the delays is not, or may not be, the device's own."""
        settings, loads = self.settings, shares("loads", self.settings.loads)
        return [
            Note("throughput", f"100 % is {written(self.throughput)} {settings.rate_unit}"),
            self._own_note(),
            *together_note(
                settings.placement, loads, self.throughput * settings.active, "throughput", self.timing.waits
            ),
            *unseen_stalls_note(
                settings.placement, settings.trial_seconds, longer_trials, 0.0 if self.timing.of_slowest else None
            ),
            *repetitions_note(settings, RFC_REPETITIONS, "RFC 8219 section 7"),
            *tolerance_note(settings.loss_tolerance),
        ]

    def trial(self, load: float, plan: TrialPlan, bounds: Bounds) -> Trial:
        """Run a trial; it is INVALID where frames that were due in stalls moved a percentile."""
        outcome = super().trial(load, plan, bounds)
        judged = self.judged(outcome)
        if judged is not outcome:
            self._stalled.append((outcome, judged))
        return judged

    def judged(self, outcome: Trial) -> Trial:
        """Return the outcome, as INVALID where frames that were due in stalls moved a percentile."""
        if outcome.verdict not in {Verdict.PASS, Verdict.FAIL} or not self.timing.moved(outcome):
            return outcome
        reason = f"{_percent(_stalled_share(outcome))} of the timed frames were due while a core was stalled"
        return replace(outcome, verdict=Verdict.INVALID, limited_by="host", failed_phase=None, reason=reason)

    def is_enough(self, outcome: Trial) -> bool:
        """Whether no repeat is needed; true also after `MOST_STALLED` repeats because of stalls."""
        return super().is_enough(outcome) or len(self._stalled) > min(MOST_STALLED, self.settings.invalid_repeats)

    def best_of_invalid(self) -> Trial | None:
        """Return the trial with the fewest frames in stalls, of those at this load whose percentiles stalls moved."""
        if not self._stalled:
            return None
        least, judged = min(self._stalled, key=lambda each: _stalled_share(each[0]))
        self.count(judged, least)
        return least

    def _stalls_note(self, outcome: Trial, share: float) -> list[Note]:
        moved = self.timing.moved(outcome)
        if not moved:
            return []
        most, number = max(moved, key=lambda each: each.share), len(self._stalled)
        trial = f"the best of {number} trials" if number > 1 else "the only trial that measured the device"
        how_far = (
            f"how far that moved the {most.name} is not known"
            if most.without is None
            else f"the {most.name} is {written(most.value)} us, and {written(most.without)} us without as many of the "
            "slowest frames; the device's own lies between the two; figures without those frames are called \"without "
            'stalls"'
        )
        text = (
            f"at {written(100 * share)} % of the throughput {_percent(_stalled_share(outcome))} of the timed frames "
            f"were due while a core was stalled, in {trial}: {how_far}"
        )
        return [Note("frames in stalls", text)]

    def _own_note(self) -> Note:
        """The tester's own part at the load of the value, which is never subtracted silently."""
        measurer = self.runner.measurer
        if Ability.OWN_DELAYS not in measurer.abilities:
            return Note("own delay", "the tester's own delay was not measured; it is part of the figures")
        share = shares("loads", self.settings.loads)[0]
        own = measurer.own_delays(self.settings.timed_plan(self.preparation.rate, self.throughput * share, share))
        largest = max(self.timing.read(delays)[self.timing.metric.value_figure] for delays in own.values())
        text = (
            f"the tester's own part at {in_percent(share)} of the throughput, its ports joined without a device, is "
            f"{written(largest)} us; it is not subtracted"
        )
        return Note("own delay", text, value=largest)


def together_note(placement: Placement, loads: Iterable[float], rate: float, of: str, waits: int = 1) -> list[Note]:
    """Return a note on the part of delays that is not the device's own, for a device in the sender's context.

    `loads` are shares of `rate`, which is that of all directions in frames/s, > 0; `of` names it. The value of the note
    is the part of the headline, which is of the highest load and contains so many `waits`.
    """
    named = ", ".join(written(100 * share) for share in loads if share > ALONE_SHARE)
    batch = together(rate)
    if placement != "shared" or not named or batch == 1:
        return []
    text = (
        f"in shared placement frames that left together wait for each other, {written(1e6 / rate)} us each: at "
        f"{named} % of the {of} up to {written(1e6 * batch / rate)} us of a delay are that wait, not the device's "
        f"own; at {in_percent(ALONE_SHARE)} and less they leave one by one"
    )
    return [Note("batches", text, value=waits * 1e6 * batch / rate)]


def unseen_stalls_note(
    placement: Placement, seconds: float, remedy: Callable[[float], str], leaves: float | None = None
) -> list[Note]:
    """Return a note on stalls that are too short to be seen, but long enough for the 99.9th percentile.

    Args:
        leaves: what such a stall leaves of the headline, in us; None = it does not move it.
        seconds: time for which a trial sends frames that are timed, > 0.
        remedy: returns what prevents that, where a trial must send for so many seconds at least.
    """
    least = LEAST_WATCHED_SECONDS / ABOVE_WORST_CASE
    # In the sender's own context nothing is sent during a stall, so it delays only frames that left together.
    if placement == "shared" or seconds >= least * (1 - 1e-9):
        return []
    text = (
        f"in trials of {written(seconds)} s one stall of the device's core shorter than "
        f"{LEAST_WATCHED_SECONDS * 1e3:g} ms, which is not seen, can be the whole 99.9th percentile; {remedy(least)} "
        "prevent that"
    )
    return [Note("frames in stalls", text, value=leaves)]


def longer_trials(least: float) -> str:
    """Trials of so many seconds, where their length is a setting."""
    return f"trials of {least:g} s or more (--trial-seconds)"


def read(outcome: Trial, timing: Timing) -> dict[str, float]:
    """Every figure of each direction, of both the one that is farther from 0, and what was lost."""
    if not outcome.delays:
        raise BrokenError(f"{timing.metric.name}: the trial left no delays, although they were requested")
    each = {direction: timing.figures(delays) for direction, delays in outcome.delays.items()}
    names = [name for name in next(iter(each.values())) if all(name in figures for figures in each.values())]
    # A difference between delays may be negative; of a delay the largest is the worst.
    figures_of_both = {name: max((figures[name] for figures in each.values()), key=abs) for name in names}
    if len(each) > 1:
        for direction, figures in each.items():
            figures_of_both |= {f"{name}_from_{direction.value}": value for name, value in figures.items()}
    return figures_of_both | {"lost_percent": 100 * max(map(lost_share, outcome.phase2.values()), default=0.0)}


def too_high_note(outcome: Trial, share: float, timed: Iterable[StreamCounts]) -> Note:
    """Return a doubt about a trial that the device failed at the load of the value; `timed` has the frames of it."""
    lost = max(map(lost_share, timed), default=0.0)
    came = "; delays are of those that came" if lost else ""
    return Note("load too high", f"at {in_percent(share)} the device failed: {outcome.reason}{came}", value=lost)


def _without_stalls(name: str) -> str:
    """The name of a figure without the frames that were due in stalls: its unit stays at the end."""
    return f"{name.removesuffix('_us')}_without_stalls_us"


def _stalled_share(outcome: Trial) -> float:
    """Share of a direction's timed frames that were due in stalls, of the worse direction.

    Where it is not known, all of them may have been, if the trial was disturbed.
    """
    unknown = math.inf if outcome.disturbed else 0.0
    each = [
        unknown if delays.due_in_stalls is None else min(delays.due_in_stalls / delays.frames, 1.0)
        for delays in outcome.delays.values()
    ]
    return max(each, default=0.0)


def _percent(share: float) -> str:
    return "an unknown part" if math.isinf(share) else in_percent(share)


def _trial_notes(outcome: Trial, share: float, *, is_value: bool) -> list[Note]:
    notes = []
    negative = sum(delays.negative for delays in outcome.delays.values())
    if negative:
        text = f"{negative} frames seemed to arrive before they were sent: the clocks are not to be trusted"
        notes.append(Note("tester", text, negative))
    if is_value and outcome.verdict is Verdict.FAIL:
        return [*notes, too_high_note(outcome, share, outcome.phase2.values())]
    lost = {d: counts.lost for d, counts in outcome.phase2.items() if counts.lost}
    if lost:
        by_direction = ", ".join(f"{number} {origin(direction)}" for direction, number in lost.items())
        text = f"at {in_percent(share)} frames were lost ({by_direction}); delays are of those that came"
        notes.append(Note("device", text, sum(lost.values())))
    return notes
