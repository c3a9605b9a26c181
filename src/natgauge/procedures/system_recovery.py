# SPDX-License-Identifier: Apache-2.0
"""System recovery (RFC 2544 section 26.5): how long frames are still lost after an overload has ended.

Phase 2 sends at 110 % of the throughput and then, without a pause, at half of that rate. With A the time of the change
and B the sending time of the last frame that was lost, recovery = B - A; RFC 2544 prints the operands the other way
round, which is negative. A device that lost nothing after the change recovered at once.

In `shared` placement an overload slows the sender down and loses nothing, so there is nothing to recover from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability, Direction, Measurer, RateStep, TrialOutcome, TrialPlan
from natgauge.procedures import loaded
from natgauge.procedures.loaded import Loaded, LoadedSettings
from natgauge.procedures.preparation import phase2_notes
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, ignore
from natgauge.procedures.rates import disturbed_note, repeat, top_rate
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.settings import about, in_range, refuse_unable

METRIC = "system-recovery"
UNIT = "ms"
#: RFC 2544 section 26.5.
OVERLOAD = 1.1
AFTER_SHARE = 0.5
#: Losses in this last share of the second part mean that the device did not recover while it was watched.
TAIL_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Settings(LoadedSettings):
    """Settings of the system recovery; `trial_seconds` is the overload's length, RFC 2544 wants 60.

    Attributes:
        overload: rate of the overload as a share of the throughput, 1.01 to 10.
        after_seconds: how long the device is watched afterwards, 0.1 to 3600.
    """

    overload: float = field(default=OVERLOAD, metadata=about("rate of the overload, in multiples of the throughput"))
    after_seconds: float = field(default=2.0, metadata=about("time for which the device is watched afterwards", "s"))

    def __post_init__(self) -> None:
        """Refuse what is out of range or says nothing."""
        super().__post_init__()
        in_range("overload", self.overload, 1.01, 10)
        in_range("after seconds", self.after_seconds, 0.1, 3600, "s")
        if self.placement == "shared":
            raise UsageError("placement: shared loses nothing under overload, so nothing recovers; choose isolated")

    @property
    def phase2_seconds(self) -> float:
        """Overload and watching."""
        return self.trial_seconds + self.after_seconds

    def needs(self) -> frozenset[Ability]:
        """A change of the rate, and when frames were lost."""
        return super().needs() | {Ability.RATE_STEP, Ability.LOSS_TIMES}

    def overload_plan(self, phase1_rate: float, rate: float) -> TrialPlan:
        """Overload at this rate, and half of it afterwards."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        step = RateStep(share=AFTER_SHARE, seconds=self.after_seconds)
        phase2 = replace(self.phase2(rate, self.trial_seconds), step=step)
        return replace(plan, phase2=phase2, record_loss_times=True)


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the system recovery time in ms, of the slower direction.

    Raises:
        BrokenError: no phase 1 works, the device forwards at no rate, or no trial speaks of the device.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    ready = loaded.start(measurer, METRIC, settings, observe)
    rate = min(ready.throughput * settings.overload, top_rate(measurer) / settings.active)
    measurements = repeat(ready.runner, settings.repeat, lambda _: _once(ready, settings, rate))
    notes = [
        f"overload of {rate:.0f} frames/s in each direction, {rate / ready.throughput:.0%} of the throughput",
        *ready.preparation.note(),
        *phase2_notes(settings),
        *disturbed_note(measurements),
    ]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def recovery_seconds(outcome: TrialOutcome, change_seconds: float) -> dict[Direction, float]:
    """For each direction the time from the change of the rate to the sending of the last lost frame, at least 0.

    Raises:
        BrokenError: frames were lost, but not when.
    """
    for direction, counts in outcome.phase2.items():
        if counts.lost and counts.last_lost_seconds is None:
            who = direction.value.capitalize()
            raise BrokenError(
                f"{METRIC}: {counts.lost} frames from the {who} were lost, but the trial did not tell when"
            )
    return {
        direction: max(0.0, (counts.last_lost_seconds or 0.0) - change_seconds)
        for direction, counts in outcome.phase2.items()
    }


def _once(ready: Loaded, settings: Settings, rate: float) -> Measurement:
    ready.start_repetition()
    # The overload is meant to lose frames, so these trials FAIL; what counts is when the last one was lost. A stall
    # after the change loses frames of a device that has recovered, so such a trial is tried again.
    for _ in range(settings.invalid_repeats + 1):
        outcome = ready.must(rate, settings.overload_plan(ready.preparation.rate, rate), 1)
        each = recovery_seconds(outcome, settings.trial_seconds)
        if not _doubtful(outcome, each):
            break
    notes, limit = _doubts(outcome, each, settings)
    figures = {f"recovery_ms_from_{direction.value}": seconds * 1000 for direction, seconds in each.items()}
    figures["lost_frames"] = float(sum(counts.lost for counts in outcome.phase2.values()))
    return ready.measurement(max(each.values()) * 1000, limited_by=limit, figures=figures, notes=notes)


def _doubtful(outcome: TrialOutcome, each: Mapping[Direction, float]) -> bool:
    return outcome.disturbed and max(each.values()) > 0


def _doubts(outcome: TrialOutcome, each: Mapping[Direction, float], settings: Settings) -> tuple[list[str], str]:
    if not any(counts.lost for counts in outcome.phase2.values()):
        return ["the overload lost no frame, so there was nothing to recover from"], "tester"
    if max(each.values()) >= (1 - TAIL_SHARE) * settings.after_seconds:
        note = (
            f"frames were still lost at the end: the device takes longer than {settings.after_seconds:g} s to recover"
        )
        return [note], "tester"
    if _doubtful(outcome, each):
        return ["every trial was disturbed, which may have lost the last frame: the device may recover sooner"], "host"
    return [], "device"


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="time for which frames are lost after an overload",
    source="RFC 2544 section 26.5",
    settings=Settings,
    run=run,
)
