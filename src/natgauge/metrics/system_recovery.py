# SPDX-License-Identifier: Apache-2.0
"""Declaration of the system-recovery: duration of frame loss after an overload."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import TESTER_RATES, Metric

METRIC: Final = Metric(
    name="system-recovery",
    unit="ms",
    summary="duration of frame loss after an overload",
    title="Recovery after an overload",
    source="RFC 2544 section 26.5",
    better="lower",
    does="loses frames for {value} after an overload",
    best="recovers soonest from an overload",
    moved_by=TESTER_RATES,
)
