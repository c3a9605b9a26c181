# SPDX-License-Identifier: Apache-2.0
"""Declaration of the pdv: packet delay variation at the throughput."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Metric

METRIC: Final = Metric(
    name="pdv",
    unit="us",
    summary="packet delay variation at the throughput",
    title="Packet delay variation",
    source="RFC 8219 section 7.3.1, RFC 5481 section 4.2",
    better="lower",
    does="varies the delay of frames by {value}",
    best="varies delays least",
    value_figure="pdv_us",
    moved_by=frozenset(),
)
