# SPDX-License-Identifier: Apache-2.0
"""Declaration of the tear-down-rate: rate at which connections are torn down."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

#: Connections that the device's table has after those were closed.
ENTRIES_LEFT: Final = "entries_left"

METRIC: Final = Metric(
    name="tear-down-rate",
    unit="connections/s",
    summary="rate at which connections are torn down when the device's table is cleared, or by FINs or resets of TCP",
    title="Connections closed per second",
    source="RFC 9693 section 4.8",
    better="higher",
    does="tears down {value}",
    best="tears down connections fastest",
    figures=(
        DeclaredFigure("full_seconds", "emptying a full table", "s"),
        DeclaredFigure("empty_seconds", "emptying an empty table", "s"),
        DeclaredFigure("difference_seconds", "deletion of the connections", "s"),
        DeclaredFigure(ENTRIES_LEFT, "entries left after closing", "connections"),
    ),
    sampled_between=("rate_lowest", "rate_highest"),
    moved_by=frozenset(),
    phase=1,
    counts="closing",
    sends_data=False,
    without_frames=True,
    shows_memory=True,
)
