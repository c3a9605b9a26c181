# SPDX-License-Identifier: Apache-2.0
"""Declaration of the expiry: rate at which connections expire."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Metric

METRIC: Final = Metric(
    name="expiry",
    unit="connections/s",
    summary="rate at which connections expire",
    title="Connections that expire per second",
    source="RFC 9693 section 4.8 (its command replaced by the device's time-outs)",
    does="lets {value} expire",
    moved_by=frozenset(),
    phase=1,
    sends_data=False,
    without_frames=True,
    follows_host=False,
)
