# SPDX-License-Identifier: Apache-2.0
"""How long the tester's own receiver runs for a frame on the cores of an `isolated` device.

The kernel has a frame received where it was sent from, so a device that sends from its own cores does the tester's
receive work on them, and the figure tells that as the device's. Measured where it is done: in one trial more, like the
last one that passed, while the kernel times the receiver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.bench.lab_measurer import LabMeasurer
from natgauge.errors import NatgaugeError
from natgauge.measurer import TrialPlan
from natgauge.trials import ReceiverTime

#: Neither phase of the trial sends for longer, in seconds: enough for ten thousands of frames from any device whose
#: cores the receiver keeps busy at all.
LONGEST_PHASE_SECONDS: Final = 1.0


def receiver_seconds(measurer: LabMeasurer, passed: TrialPlan | None = None) -> float | None:
    """Seconds that the receiver ran for a frame on the device's cores; None = no trial passed, or it cannot be told.

    One trial is run; nothing of it is judged or kept.

    Args:
        measurer: on whose bench the trial is run.
        passed: plan of a trial that passed, which may have been run on an earlier bench; None = the plan of this
            measurer's last trial that passed.
    """
    plan = measurer.passed if passed is None else passed
    if plan is None or measurer.place.placement != "isolated":
        return None
    measurer.watch.stage("timing the tester's receivers on the device's cores")
    try:
        return seconds_of(measurer.time_receivers(shortened(plan)))
    except NatgaugeError:
        # What was measured before is worth more than this; the result says that it is not known.
        return None


def seconds_of(time: ReceiverTime | None) -> float | None:
    """Seconds of one run without what timing it takes; None = it was not run, or is lost in that."""
    if time is None or not time.runs or not time.empty_runs:
        return None
    nanoseconds = time.runs_ns / time.runs - time.empty_runs_ns / time.empty_runs
    return nanoseconds / 1e9 if nanoseconds > 0 else None


def shortened(plan: TrialPlan) -> TrialPlan:
    """The same frames at the same rates, for `LONGEST_PHASE_SECONDS` in each phase at most, and nothing happens."""
    phase2 = plan.phase2
    if phase2 is not None:
        phase2 = replace(phase2, seconds=min(phase2.seconds, LONGEST_PHASE_SECONDS), step=None)
    connections = plan.connections
    if not plan.stateless:
        connections = min(connections, max(1, round(plan.phase1_rate * LONGEST_PHASE_SECONDS)))
    return replace(
        plan,
        connections=connections,
        phase2=phase2,
        delays_from_seconds=0.0,
        delay_samples=None,
        record_loss_times=False,
        restart_at_seconds=None,
    )
