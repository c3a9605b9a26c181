# SPDX-License-Identifier: Apache-2.0
"""Batch size of a trial, and the length from which a sender's pause counts as a stall.

In `shared` placement the device processes a whole batch before the sender continues, so a batch of a slow device looks
like a stall of the sender. In other placements a sender catches up after a stall only a little faster than its rate:
sent at once, the late frames would overflow the ring before the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.agreement.trial import LEAST_STALL_SECONDS
from natgauge.procedures.kit.result.delay_statistics import ABOVE_WORST_CASE
from natgauge.trials import LEAST_WATCHED_SECONDS, MOST_TOGETHER, Trial, TrialPlan, together
from natgauge.words import Placement

#: A CPU that did nothing of its task for longer than this was disturbed. These are the gaps the engine starts to count
#: at: a sender is never without work, a watched CPU is sampled more coarsely. Where a ring before the device would be
#: full sooner, or the device needs longer for a single frame, the sender's follows.
STALL_BOUND_SECONDS: Final[Mapping[Literal["sender", "watched"], float]] = {"sender": 0.001, "watched": 0.005}
#: Batches that the device could have worked off at its rate while a sender did nothing: that was a stall. A search
#: doubles its rates, so an overloaded device needs twice the time for one.
STALL_BATCHES: Final = 10
#: No device needs longer for a frame: where rates are low, it is the sender that was woken late.
LONGEST_FRAME_SECONDS: Final = 0.01
#: Sending that took this many times its nominal length was held up by the device.
HELD_UP: Final = 1.5
#: Percent of the rate at which senders catch up. Below 80 % of the device's capacity that causes no loss, and it ends
#: before the end of most trials.
CATCH_UP_PERCENT: Final = 125
#: The same for a phase 1 that only prepares, at half of the device's capacity: its last frame may be late.
PREPARING_CATCH_UP_PERCENT: Final = 150


@dataclass(frozen=True, slots=True)
class Pacing:
    """Batches and stalls of one trial.

    Attributes:
        batch: frames of a batch, 1 to 64.
        phase1_catch_up_percent: highest rate after a stall, in percent of the intended rate; None = no limit.
        phase2_catch_up_percent: like `phase1_catch_up_percent`, for phase 2.
    """

    batch: int
    stall_seconds: float
    phase1_catch_up_percent: int | None = None
    phase2_catch_up_percent: int | None = None


def pacing(plan: TrialPlan, placement: Placement, ring: int | None = None, known_rate: float | None = None) -> Pacing:
    """Return the pacing of a trial; the ring is that before each core of the device, in frames, None = not known."""
    usual = STALL_BOUND_SECONDS["sender"]
    if placement != "shared":
        stall_seconds = usual if ring is None else _until_full(plan, ring, usual)
        phase1 = CATCH_UP_PERCENT if plan.phase2 is None else PREPARING_CATCH_UP_PERCENT
        return Pacing(MOST_TOGETHER, stall_seconds, phase1, CATCH_UP_PERCENT)
    rate = _deciding_rate(plan)
    device = rate if known_rate is None else min(rate, known_rate)
    batch = 1 if plan.single_frames else together(device)
    return Pacing(batch, max(usual, min(STALL_BATCHES * batch / device, LONGEST_FRAME_SECONDS)))


def watched_bound(plan: TrialPlan) -> float:
    """Return the seconds after which a pause of a device's core counts as a stall.

    In a trial with timed frames, a shorter stall must not decide the worst case alone. So the bound is the time in
    which the share of frames above the worst case's percentile falls due, within 2 to 5 ms.
    """
    usual = STALL_BOUND_SECONDS["watched"]
    if not plan.record_delays:
        return usual
    seconds = plan.connections / plan.phase1_rate if plan.phase2 is None else plan.phase2.seconds
    return min(max(ABOVE_WORST_CASE * (seconds - plan.delays_from_seconds), LEAST_WATCHED_SECONDS), usual)


def learned(known_rate: float | None, trial: Trial) -> float | None:
    """Return the highest rate of the device in overloaded trials, frames/s of all directions; None = not known.

    Disturbances only lower the rate, so the highest of several trials counts.
    """
    streams = [trial.phase1] if trial.plan.phase2 is None else list(trial.phase2.values())
    nominal = max((counts.nominal_seconds for counts in streams), default=0.0)
    busy = max((counts.busy_seconds for counts in streams), default=0.0)
    if not nominal or busy < HELD_UP * nominal:
        return known_rate
    return max(known_rate or 0.0, sum(counts.offered_frames for counts in streams) / busy)


def _deciding_rate(plan: TrialPlan) -> float:
    """Return the rate of all directions of phase 2, or of phase 1 where there is no phase 2."""
    phase2 = plan.phase2
    return plan.phase1_rate if phase2 is None else phase2.initiator_rate + phase2.responder_rate


def _until_full(plan: TrialPlan, ring: int, usual: float) -> float:
    """Return the seconds in which the frames of a direction fill the ring, with room for one batch."""
    rates = [plan.phase1_rate] if plan.has_phase1 else []
    if plan.phase2 is not None:
        step = 1.0 if plan.phase2.step is None else max(plan.phase2.step.share, 1.0)
        rates += [rate * step for rate in (plan.phase2.initiator_rate, plan.phase2.responder_rate)]
    room = max(ring - MOST_TOGETHER, ring / 2)
    return max(min(usual, room / max(rates)), LEAST_STALL_SECONDS)
