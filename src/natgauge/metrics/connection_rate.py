# SPDX-License-Identifier: Apache-2.0
"""Declaration of the connection-rate: highest rate at which every new connection is established."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Metric

METRIC: Final = Metric(
    name="connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established",
    title="New connections per second",
    source="RFC 9693 section 4.5",
    better="higher",
    does="opens {value}",
    best="opens most connections",
    moved_by=frozenset(),
    resource="new connections",
    phase=1,
    is_bounded=True,
    counts="opening",
    sends_data=False,
    shows_memory=True,
    turn=0,
)
