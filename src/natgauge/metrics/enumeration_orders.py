# SPDX-License-Identifier: Apache-2.0
"""Declaration of the enumeration orders: connections created, for each enumeration order of phase 1."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Metric

METRIC: Final = Metric(
    name="enumeration-orders",
    unit="%",
    summary="connections created and connection rate, for each enumeration order of phase 1",
    title="New connections by enumeration order",
    source="RFC 9693 section 4.4",
    does="creates connections with {value} of the frames whose four tuples are drawn with replacement",
    moved_by=frozenset({"connection_rate_timeout_seconds"}),
    sends_data=False,
    follows_host=False,
)
