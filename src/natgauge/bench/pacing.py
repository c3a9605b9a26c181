# SPDX-License-Identifier: Apache-2.0
"""How many frames of a trial leave together, and for how long its senders may do nothing.

In `shared` placement the device works on a whole batch before the sender goes on, so a batch of a slow device looks
like a sender that stood still. Elsewhere a sender that stood still makes up for it a little faster than it sends: sent
at once, what fell due meanwhile would overflow the ring before the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from natgauge.facts import STALL_BOUND_SECONDS
from natgauge.measurer import BATCH_SECONDS, MOST_TOGETHER, TrialOutcome, TrialPlan
from natgauge.procedures.kit.result.delay_statistics import ABOVE_WORST_CASE
from natgauge.words import Placement

#: Batches that the device could have worked off at its rate while a sender did nothing: that was a stall. A search
#: doubles its rates, so an overloaded device needs twice the time for one.
STALL_BATCHES: Final = 10
#: Sending that took this many times its nominal length was held up by the device.
HELD_UP: Final = 1.5
#: Of the rate: up to four fifths of what the device can no frame is lost to it, and it is over before most trials are.
CATCH_UP_PERCENT: Final = 125
#: Of a phase 1 that only prepares, at half of what the device can, nobody waits for the last frame.
PREPARING_CATCH_UP_PERCENT: Final = 150
#: Softirqs may rightly hold a device's core for 2 ms, so no shorter stall can be told from its work.
LEAST_WATCHED_SECONDS: Final = 0.002
#: The engine takes no bound below this, in seconds: the timer interrupt is no stall.
LEAST_STALL_SECONDS: Final = 10e-6


@dataclass(frozen=True, slots=True)
class Pacing:
    """Of one trial.

    Attributes:
        batch: frames that leave together, 1 to 64.
        stall_seconds: a sender that did nothing for longer stood still.
        phase1_catch_up_percent: of the rate, the most while senders make up for a stall; None = as fast as they can.
        phase2_catch_up_percent: the same.
    """

    batch: int
    stall_seconds: float
    phase1_catch_up_percent: int | None = None
    phase2_catch_up_percent: int | None = None


def pacing(plan: TrialPlan, placement: Placement, ring: int | None = None, known_rate: float | None = None) -> Pacing:
    """How the frames of this trial are sent.

    Args:
        plan: of the trial.
        placement: where the device works.
        ring: frames that wait before each core of the device, > 0; None = not known.
        known_rate: see `learned`.
    """
    usual = STALL_BOUND_SECONDS["sender"]
    if placement != "shared":
        stall_seconds = usual if ring is None else _until_full(plan, ring, usual)
        phase1 = CATCH_UP_PERCENT if plan.phase2 is None else PREPARING_CATCH_UP_PERCENT
        return Pacing(MOST_TOGETHER, stall_seconds, phase1, CATCH_UP_PERCENT)
    rate = _deciding_rate(plan)
    device = rate if known_rate is None else min(rate, known_rate)
    batch = 1 if plan.single_frames else min(max(int(device * BATCH_SECONDS), 1), MOST_TOGETHER)
    return Pacing(batch, max(usual, STALL_BATCHES * batch / device))


def watched_bound(plan: TrialPlan) -> float:
    """Seconds for which a device's core may not be woken before it stood still.

    A stall of a trial whose frames are timed must not by itself make the worst case, so the bound is the time in which
    as many frames fall due as are slower than the worst case, within 2 to 5 ms.
    """
    usual = STALL_BOUND_SECONDS["watched"]
    if not plan.record_delays:
        return usual
    seconds = plan.connections / plan.phase1_rate if plan.phase2 is None else plan.phase2.seconds
    return min(max(ABOVE_WORST_CASE * (seconds - plan.delays_from_seconds), LEAST_WATCHED_SECONDS), usual)


def learned(known_rate: float | None, plan: TrialPlan, outcome: TrialOutcome) -> float | None:
    """The highest rate at which the device did what was more than it can, frames/s of all directions; None = unknown.

    Disturbances only lower it, so of several trials the highest is taken.

    Args:
        known_rate: of the trials before.
        plan: of a trial in `shared` placement.
        outcome: of this trial.
    """
    streams = [outcome.phase1] if plan.phase2 is None else list(outcome.phase2.values())
    nominal = max((counts.nominal_seconds for counts in streams), default=0.0)
    busy = max((counts.busy_seconds for counts in streams), default=0.0)
    if not nominal or busy < HELD_UP * nominal:
        return known_rate
    return max(known_rate or 0.0, sum(counts.offered for counts in streams) / busy)


def _deciding_rate(plan: TrialPlan) -> float:
    """Of all directions of the phase that a trial is about: phase 1 only prepares where there is a phase 2."""
    phase2 = plan.phase2
    return plan.phase1_rate if phase2 is None else phase2.initiator_rate + phase2.responder_rate


def _until_full(plan: TrialPlan, ring: int, usual: float) -> float:
    """Seconds in which as many frames of a direction fall due as the ring holds beside a batch."""
    rates = [] if plan.stateless else [plan.phase1_rate]
    if plan.phase2 is not None:
        step = 1.0 if plan.phase2.step is None else max(plan.phase2.step.share, 1.0)
        rates += [rate * step for rate in (plan.phase2.initiator_rate, plan.phase2.responder_rate)]
    room = max(ring - MOST_TOGETHER, ring / 2)
    return max(min(usual, room / max(rates)), LEAST_STALL_SECONDS)
