# SPDX-License-Identifier: Apache-2.0
"""Declaration of the first-packet-delay: delay of the frame that opens a connection, and of later frames."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

METRIC: Final = Metric(
    name="first-packet-delay",
    unit="us",
    summary="delay of the frame that opens a connection, next to that of later frames",
    source="RFC 8219 section 7.2, applied to the frames of phase 1",
    better="lower",
    does="delays the first frame of a connection by {value} (median)",
    best="delays first frames least",
    figures=(
        DeclaredFigure("first_worst_case_us", answer="1 first frame of 1,000 takes longer than {} us"),
        DeclaredFigure(
            "later_typical_us", "median delay of later frames", "us", answer="later frames take {} us (median)"
        ),
    ),
    value_figure="first_typical_us",
    moved_by=frozenset(),
)
