# SPDX-License-Identifier: Apache-2.0
"""System recovery (RFC 2544 section 26.5): how long frames are still lost after an overload has ended.

docs/method/recovery.md has the method. With A the time of the change and B the sending time of the last frame that was
lost, recovery = B - A; RFC 2544 prints the operands the other way round, which is negative.

Links and hosts lose single frames, too. Frames that are lost after a gap which the losses before it make improbable
(under 1 %), or that are spread over all of the second part as chance spreads them, are not B: the value is the time
without them, and its range has both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent, number
from natgauge.inputs.input import chosen, wrong
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import SYSTEM_RECOVERY
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import LEAST_CHANCE
from natgauge.procedures.kit.held_connections import HeldConnections, ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.phases import Phase1Settings, Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import top_rate
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import Bounds, TrialRunner, at_one_load, until_decided
from natgauge.trials import Direction, RateStep, Trial, TrialPlan
from natgauge.words import LimitedBy, Verdict, origin

if TYPE_CHECKING:
    from natgauge.agreement.generated import LostAfterStep

#: RFC 2544 section 26.5.
OVERLOAD = 1.1
AFTER_SHARE = 0.5
#: The least share of the overload that is above the throughput, where the tester sends no faster.
LEAST_EXCESS = 0.02
#: Losses in this last share of the second part mean that the device did not recover while it was watched.
TAIL_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class SystemRecoverySettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of the system recovery; `trial_seconds` is the overload's length, RFC 2544 requires 60."""

    overload: float = chosen(OVERLOAD, "overload, in multiples of the throughput", check=(1.01, 10))
    after_seconds: float = chosen(2.0, "time of observing the device after the overload", "s", (0.1, 3600))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.placement == "shared":
            raise wrong("placement", "shared loses nothing under overload, so nothing recovers; choose isolated")

    @property
    def phase2_seconds(self) -> float:
        """Seconds of overload and recovery together."""
        return self.trial_seconds + self.after_seconds

    def needs(self) -> frozenset[Ability]:
        """A change of the rate, and when frames were lost."""
        return super().needs() | {Ability.RATE_STEP, Ability.LOSS_TIMES}

    def overload_plan(self, phase1_rate: float, rate: float) -> TrialPlan:
        """Overload at this rate, and half of it afterwards."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        step = RateStep(share=AFTER_SHARE, seconds=self.after_seconds)
        phase2 = replace(self.phase2(rate, self.trial_seconds), step=step)
        return replace(plan, phase2=phase2, record_loss_times=True, at_rate=True)


class _SystemRecovery(HeldConnections[SystemRecoverySettings]):
    """The time in ms, of the slower direction."""

    def __init__(self, runner: TrialRunner, settings: SystemRecoverySettings) -> None:
        super().__init__(runner, settings)
        self.throughput = throughput_of(self, settings)
        self.rate = min(self.throughput * settings.overload, top_rate(runner.measurer) / settings.active)

    def trial(self, load: float, plan: TrialPlan, bounds: Bounds) -> Trial:
        return self.judged(super().trial(load, plan, bounds))

    def judged(self, outcome: Trial) -> Trial:
        """Return the outcome, as INVALID where a late tester sent half of the overload or less: it catches up later."""
        late = max((counts.worst_lag_ns for counts in outcome.phase2.values()), default=0) / 1e9
        excess = max(1 - self.throughput / self.rate, LEAST_EXCESS)
        if outcome.verdict is not Verdict.FAIL or late <= excess / 2 * self.settings.trial_seconds:
            return outcome
        reason = (
            f"the tester was {late * 1000:.4g} ms late at worst, so the overload may not have been sent at its rate"
        )
        return replace(outcome, verdict=Verdict.INVALID, limited_by="tester", failed_phase=None, reason=reason)

    def once(self, _known: float | None) -> Measurement:
        settings, rate = self.settings, self.rate

        def overload() -> Trial:
            return self.must(rate, settings.overload_plan(self.preparation.rate, rate), 1)

        def decides(outcome: Trial) -> bool:
            return not _doubtful(outcome, _recovery_seconds(outcome, settings.trial_seconds))

        # The overload is meant to lose frames, so these trials FAIL; what counts is when the last one was lost. A stall
        # after the change loses frames of a device that has recovered, so such a trial is tried again.
        tried = until_decided(overload, at_one_load(settings.invalid_repeats), decides)
        outcome = tried.outcome
        change, over = settings.trial_seconds, settings.after_seconds
        longest = _recovery_seconds(outcome, change)
        strays = {who: _strays(counts.lost_after_step, change, over) for who, counts in outcome.phase2.items()}
        each = {who: strays[who].after if strays[who].frames else seconds for who, seconds in longest.items()}
        self._refuse_unknown(outcome, each)
        notes: list[Note] = []
        limit: LimitedBy = "host" if _doubtful(outcome, longest) else "device"
        if limit == "host":
            text = "stalls lost frames of every trial, maybe the last one: the device may recover sooner"
            notes.append(Note("trials", text))
        if tried.trials > 1:
            text = f"{tried.trials - 1} trials were repeated, because stalls may have lost their last frame"
            notes.append(Note("trials", text, tried.trials - 1))
        figures = {f"recovery_ms_from_{direction.value}": seconds * 1000 for direction, seconds in each.items()}
        figures["lost_frames"] = float(sum(counts.lost for counts in outcome.phase2.values()))
        for who, counts in outcome.phase2.items():
            if counts.lost_after_step is not None:
                figures[f"lost_after_change_from_{who.value}"] = float(counts.lost_after_step.frames)
        if alone := sum(one.frames for one in strays.values()):
            least, most = (1000 * max(seconds.values()) for seconds in (each, longest))
            figures["recovery_ms_lowest"] = least
            # To the end: nobody knows how long it goes on.
            if most < 1000 * (1 - TAIL_SHARE) * over:
                figures["recovery_ms_highest"] = most
            text = f"{alone} frames were lost one by one later, the last {number(most)} ms after the overload"
            notes.append(Note("device", text, alone))
        return self.measurement(max(each.values()) * 1000, limited_by=limit, figures=figures, notes=notes)

    def _refuse_unknown(self, outcome: Trial, each: Mapping[Direction, float]) -> None:
        """Refuse a trial without a time: the overload lost nothing, or frames were still lost when it ended."""
        settings, last = self.settings, max(each.values())
        if not any(counts.lost for counts in outcome.phase2.values()):
            is_asked = self.rate >= self.throughput * settings.overload
            raise BrokenError(
                f"{SYSTEM_RECOVERY}: the overload of {number(self.rate)} {settings.rate_unit} lost no frame, so there "
                f"was nothing to recover from; {'give more overload' if is_asked else 'the tester sends no faster'}"
            )
        if last >= (1 - TAIL_SHARE) * settings.after_seconds:
            stalls = ", maybe by stalls" if _doubtful(outcome, each) else ""
            raise BrokenError(
                f"{SYSTEM_RECOVERY}: frames were still lost {last:.3g} s after the overload{stalls}, at the end of the "
                f"{settings.after_seconds:g} s of observing; give more after seconds"
            )

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        share = self.rate / self.throughput
        text = f"overload of {number(self.rate)} {self.settings.rate_unit}, {in_percent(share)} of the throughput"
        return [Note("method", text)]


def _recovery_seconds(outcome: Trial, change_seconds: float) -> dict[Direction, float]:
    """For each direction the time from the change of the rate to the sending of the last lost frame, at least 0."""
    for direction, counts in outcome.phase2.items():
        if counts.lost and counts.last_lost_ns is None:
            raise BrokenError(
                f"{SYSTEM_RECOVERY}: {counts.lost} frames {origin(direction)} were lost, "
                "but the trial did not record when"
            )
    return {
        direction: max(0.0, (counts.last_lost_ns or 0) / 1e9 - change_seconds)
        for direction, counts in outcome.phase2.items()
    }


class _Strays(NamedTuple):
    """Frames that were lost one by one after a recovery, and the seconds from the change to its end."""

    after: float
    frames: int


def _strays(lost: LostAfterStep | None, change: float, over: float) -> _Strays:
    """Return what was lost apart from the recovery, in the `over` seconds after the change; none where nobody knows."""
    if lost is None or not lost.frames:
        return _Strays(0.0, 0)
    times = [max(ns / 1e9 - change, 0.0) for ns in lost.latest_ns]
    for last, (time, following) in enumerate(pairwise(times), start=1):
        # So many are lost in the gap if the device goes on to lose frames as before it.
        later = len(times) - last
        expected = (lost.frames - later) * (following - time) / time if time else math.inf
        if following > time and math.exp(-expected) < LEAST_CHANCE:
            return _Strays(time, later)
    is_chance = (times[-1] / over) ** lost.frames >= LEAST_CHANCE
    return _Strays(0.0, lost.frames if is_chance else 0)


def _doubtful(outcome: Trial, each: Mapping[Direction, float]) -> bool:
    return outcome.excused_frames > 0 and max(each.values()) > 0


PROCEDURE = Procedure(
    SYSTEM_RECOVERY,
    settings=SystemRecoverySettings,
    start=_SystemRecovery,
    profiles={
        "quick": {"trial_seconds": 1.0, "after_seconds": 1.0},
        "standard": {"trial_seconds": 10.0, "after_seconds": 10.0},
        "rfc": {"trial_seconds": 60.0, "after_seconds": 60.0},
    },
)
