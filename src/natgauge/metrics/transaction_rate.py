# SPDX-License-Identifier: Apache-2.0
"""Declaration of the transaction-rate: highest rate at which TCP connections are opened, used once and closed."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

#: Entries that closed connections fill in the device's table where this rate lasts, by the device's own time-out.
LINGERING_ENTRIES: Final = "lingering_entries"

METRIC: Final = Metric(
    name="transaction-rate",
    unit="transactions/s",
    summary="highest rate at which TCP connections are opened, used once and closed",
    title="TCP transactions per second",
    source="RFC 9693 section 4.5, applied to TCP",
    better="higher",
    does="completes {value}",
    best="completes most transactions",
    figures=(DeclaredFigure(LINGERING_ENTRIES, "entries of closed connections", "connections"),),
    traffic={"transport": "tcp"},
    moved_by=frozenset(),
    phase=1,
    is_bounded=True,
    counts="transaction",
    sends_data=False,
)
