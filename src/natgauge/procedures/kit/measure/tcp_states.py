# SPDX-License-Identifier: Apache-2.0
"""Trials that leave TCP connections in a state: open, half-open, or closed in one of two ways."""

from __future__ import annotations

from dataclasses import replace

from natgauge.measurer import Phase2Plan, TrialPlan
from natgauge.words import TcpState


def left_in(state: TcpState, plan: TrialPlan, rate: float) -> TrialPlan:
    """Return a trial that leaves its connections in a state.

    Before them the plan has phase 1 alone. Phase 2, at `rate` connections/s, sends the SYN-ACK of each ("half-open"),
    or closes each ("fin", "rst").
    """
    if state == "established":
        return plan
    seconds = plan.connections / rate
    phase2 = Phase2Plan(initiator_rate=rate, responder_rate=0.0, seconds=seconds)
    if state == "half-open":
        phase2 = Phase2Plan(initiator_rate=0.0, responder_rate=rate, seconds=seconds, reading_order="once")
    return replace(plan, phase2=phase2)
