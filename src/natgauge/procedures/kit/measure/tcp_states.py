# SPDX-License-Identifier: Apache-2.0
"""Trials that leave TCP connections in a state: open, half-open, or closed in one of two ways."""

from __future__ import annotations

from dataclasses import replace

from natgauge.measurer import Phase2Plan, TrialPlan
from natgauge.words import TcpState


def left_in(state: TcpState, plan: TrialPlan, rate: float) -> TrialPlan:
    """Return a trial that leaves its connections in a state.

    Args:
        state: "half-open": phase 2 sends the SYN-ACK of each connection. "fin" and "rst": phase 2 closes each.
        plan: trial with phase 1 alone, which opens them.
        rate: rate of phase 2, in connections/s; > 0.
    """
    if state == "established":
        return plan
    seconds = plan.connections / rate
    phase2 = Phase2Plan(initiator_rate=rate, responder_rate=0.0, seconds=seconds)
    if state == "half-open":
        phase2 = Phase2Plan(initiator_rate=0.0, responder_rate=rate, seconds=seconds, reading_order="once")
    return replace(plan, phase2=phase2)
