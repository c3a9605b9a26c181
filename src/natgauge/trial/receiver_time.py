# SPDX-License-Identifier: Apache-2.0
"""Run time of the tester's own receiver for a frame on the cores of an `isolated` device.

The kernel receives a frame on the core that sent it. So a device that sends from its own cores also does the tester's
receive work there, and the figure includes that work. It is measured in an additional trial, like the last trial that
passed, while the kernel times the receiver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.agreement.generated import ReceiverTime
from natgauge.errors import NatgaugeError
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trials import TrialPlan

#: Neither phase of the trial sends for longer, in seconds: enough for ten thousands of frames from any device whose
#: cores the receiver keeps busy at all.
LONGEST_PHASE_SECONDS: Final = 1.0


def receiver_seconds(measurer: LabMeasurer) -> float | None:
    """Return the receiver's seconds per frame on the device's cores; None = no trial passed, or not measurable.

    One trial is run, like the measurer's last one that passed; it is neither judged nor recorded.
    """
    plan = measurer.passed
    if plan is None or measurer.place.placement != "isolated":
        return None
    measurer.observer.stage("timing the tester's receivers on the device's cores")
    try:
        return seconds_of(measurer.time_receivers(shortened(plan)))
    except NatgaugeError:
        # What was measured before is worth more than this; the result says that it is not known.
        return None


def seconds_of(time: ReceiverTime | None) -> float | None:
    """Return the seconds of one run, without the cost of timing; None = no run, or too short to measure."""
    if time is None or not time.runs or not time.empty_runs:
        return None
    nanoseconds = time.runs_ns / time.runs - time.empty_runs_ns / time.empty_runs
    return nanoseconds / 1e9 if nanoseconds > 0 else None


def shortened(plan: TrialPlan) -> TrialPlan:
    """Return a plan with the same frames and rates, at most `LONGEST_PHASE_SECONDS` per phase, without a pause."""
    phase2 = plan.phase2
    if phase2 is not None:
        phase2 = replace(phase2, seconds=min(phase2.seconds, LONGEST_PHASE_SECONDS), step=None, periods=1)
    connections = plan.connections
    if plan.has_phase1:
        connections = min(connections, max(1, round(plan.phase1_rate * LONGEST_PHASE_SECONDS)))
    return replace(
        plan,
        connections=connections,
        phase2=phase2,
        delays_from_seconds=0.0,
        delay_samples=None,
        record_loss_times=False,
        restart_at_seconds=None,
        settle_seconds=0.0,
    )
