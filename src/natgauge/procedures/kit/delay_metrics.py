# SPDX-License-Identifier: Apache-2.0
"""Metrics of delays: trials whose frames are timed, at shares of the throughput; the tester's own part is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from natgauge.errors import BrokenError
from natgauge.measurer import BATCH_SECONDS, MOST_TOGETHER, Ability, Delays, TrialOutcome, TrialPlan
from natgauge.procedures.kit.frame_counts import lost_share, worst
from natgauge.procedures.kit.notes import repetitions_note, tolerance_note
from natgauge.procedures.kit.phase1 import Phase1Settings
from natgauge.procedures.kit.phase2 import Phase2Settings
from natgauge.procedures.kit.results import Measurement, Row
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import about
from natgauge.procedures.kit.standing import Standing
from natgauge.procedures.kit.throughput_shares import ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.time_budget import LEFT_OUT, TimeUpError
from natgauge.procedures.kit.values import shares

UNIT = "us"
#: In `shared` placement frames up to this share of the throughput leave one by one, which the tester can do then.
ALONE_SHARE: Final = 0.5
#: How a note begins that delays hold the wait for other frames that left together with theirs.
TOGETHER: Final = "in batches: "
#: How the note begins that tells the tester's own part.
OWN_PART: Final = "the tester's own part, its ports joined without a device, is "
#: RFC 8219 sections 7.2 and 7.3 want so many repetitions.
RFC_REPETITIONS = 20

#: Reads one direction's delays; names have no direction, times are in microseconds.
Reading = Callable[[Delays], Mapping[str, float]]


def _check_loads(name: str, text: str) -> None:
    shares(name, text)


#: For metrics with another default.
ABOUT_LOADS: Final = about("shares of the throughput, such as 100%,50%,10%", check=_check_loads)


@dataclass(frozen=True, kw_only=True)
class DelaySettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of a measurement of delays.

    Attributes:
        loads: shares of the throughput at which delays are recorded, such as "100%,50%,10%"; each 0.1 to 100 %.
    """

    loads: str = field(default="100%", metadata=ABOUT_LOADS)

    @property
    def times_frames(self) -> bool:
        """Always."""
        return True

    def timed_plan(self, phase1_rate: float, rate: float, share: float) -> TrialPlan:
        """A trial whose delays are recorded; `share` is that of the throughput."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        return replace(plan, record_delays=True, single_frames=share <= ALONE_SHARE)


DelaySettingsT = TypeVar("DelaySettingsT", bound=DelaySettings)


@dataclass(frozen=True, slots=True)
class Timing:
    """How a metric reads delays.

    Attributes:
        metric: its name.
        headline: name of the figure that is the value, without direction.
        read: one direction's delays.
    """

    metric: str
    headline: str
    read: Reading


def delays_read_by(timing: Timing) -> Callable[[TrialRunner, DelaySettingsT], _TimedTrials[DelaySettingsT]]:
    """The start of a metric: delays at each load; the value is the headline of the highest, the worst direction, in us.

    It raises BrokenError where no phase 1 works, the device forwards nothing without loss, or no trial at the highest
    load speaks of the device.
    """

    def start(runner: TrialRunner, settings: DelaySettingsT) -> _TimedTrials[DelaySettingsT]:
        return _TimedTrials(runner, settings, timing)

    return start


class _TimedTrials(Standing[DelaySettingsT]):
    """Delays at each load."""

    def __init__(self, runner: TrialRunner, settings: DelaySettingsT, timing: Timing) -> None:
        super().__init__(runner, settings)
        self.timing = timing
        self.throughput = throughput_of(self, settings)

    def once(self, _known: float | None) -> Measurement:
        rows: list[Row] = []
        figures: dict[str, float] = {}
        every = shares("loads", self.settings.loads)
        for number, share in enumerate(every):
            rate = self.throughput * share
            plan = self.settings.timed_plan(self.preparation.rate, rate, share)
            left = len(every) - number
            # The value is of the first load; any later one may stay undecided, or be left out.
            try:
                outcome = self.at(rate, plan, left) if figures else self.must(rate, plan, left)
            except TimeUpError as error:
                if not figures:
                    raise
                missing = ", ".join(f"{one * 100:g} %" for one in every[number:])
                self.repetition_notes.append(f"{LEFT_OUT}the loads {missing}: {error}")
                break
            if outcome is None:
                continue
            found = read(outcome, self.timing)
            figures = figures or found
            rows.append({"load_percent": share * 100, "rate": rate, "verdict": str(outcome.verdict), **found})
            self.repetition_notes.extend(_trial_notes(outcome, share))
        return self.measurement(figures[self.timing.headline], figures=figures, series=rows)

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[str]:
        return [
            f"100 % is {self.throughput:.0f} frames/s in each direction",
            self._own_note(),
            *self._together_note(),
            *repetitions_note(self.settings, RFC_REPETITIONS, "RFC 8219 section 7"),
            *tolerance_note(self.settings),
        ]

    def _together_note(self) -> list[str]:
        """What a device that works in the sender's context cannot be blamed for."""
        loads = [share for share in shares("loads", self.settings.loads) if share > ALONE_SHARE]
        if self.settings.placement != "shared" or not loads:
            return []
        each = 1 / (self.throughput * self.settings.active)
        wait = min(MOST_TOGETHER * each, max(BATCH_SECONDS, each))
        named = ", ".join(f"{share:.4g}" for share in (100 * one for one in loads))
        note = (
            f"{TOGETHER}in shared placement frames that left together wait for each other, {each * 1e6:.3g} us each: "
            f"at {named} % of the throughput up to {wait * 1e6:.3g} us of a delay are that wait, not the device's own; "
            f"at {ALONE_SHARE:.0%} and less they leave one by one"
        )
        return [note]

    def _own_note(self) -> str:
        """The tester's own part, which is never subtracted silently."""
        measurer = self.runner.measurer
        if Ability.OWN_DELAYS not in measurer.abilities:
            return "the tester's own delay was not measured; it is part of the figures"
        own = measurer.own_delays(self.settings.timed_plan(self.preparation.rate, self.throughput, 1.0))
        largest = max(self.timing.read(delays)[self.timing.headline] for delays in own.values())
        return f"{OWN_PART}{largest:.3g} us; it is not subtracted"


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
