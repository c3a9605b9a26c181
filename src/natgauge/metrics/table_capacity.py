# SPDX-License-Identifier: Apache-2.0
"""Declaration of the table-capacity: highest number of connections that the device can hold."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

METRIC: Final = Metric(
    name="table-capacity",
    unit="connections",
    summary="highest number of connections that the device can hold",
    title="Connections held at once",
    source="RFC 9693 section 4.9",
    better="higher",
    does="keeps {value}",
    best="keeps most connections",
    figures=(
        DeclaredFigure("first_connections", "C0, first connections"),
        DeclaredFigure("first_rate", "R0, rate of C0", "connections/s"),
        DeclaredFigure("exponential_safe", "CS, safe connections"),
        DeclaredFigure("exponential_safe_rate", "RS, rate of CS", "connections/s"),
        DeclaredFigure("exponential_unsafe", "CT, unsafe connections"),
    ),
    moved_by=frozenset(),
    resource="open connections",
    shows_memory=True,
    follows_host=False,
)
