# SPDX-License-Identifier: Apache-2.0
"""Declaration of the latency: typical and worst case latency, at the throughput and below it."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

METRIC: Final = Metric(
    name="latency",
    unit="us",
    summary="typical and worst case latency, at the throughput and below it",
    title="Delay of a frame",
    source="RFC 8219 section 7.2",
    better="lower",
    does="delays a frame by {value} (median)",
    best="delays frames least",
    figures=(DeclaredFigure("worst_case_latency_us", answer="1 frame of 1,000 takes longer than {} us"),),
    value_figure="typical_latency_us",
    moved_by=frozenset(),
)
