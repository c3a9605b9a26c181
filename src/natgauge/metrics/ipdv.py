# SPDX-License-Identifier: Apache-2.0
"""Declaration of the ipdv: inter-packet delay variation at the throughput."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Metric

METRIC: Final = Metric(
    name="ipdv",
    unit="us",
    summary="inter-packet delay variation at the throughput",
    title="Inter-packet delay variation",
    source="RFC 8219 section 7.3.2, RFC 5481 section 4.1",
    better="lower",
    does="varies the delay from frame to frame by {value}",
    best="varies delays from frame to frame least",
    value_figure="ipdv_spread_us",
    moved_by=frozenset(),
)
