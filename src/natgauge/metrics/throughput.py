# SPDX-License-Identifier: Apache-2.0
"""Declaration of the throughput: highest frame rate without frame loss, over established connections."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Criterion, Metric

METRIC: Final = Metric(
    name="throughput",
    unit="frames/s",
    summary="highest frame rate without frame loss, over established connections",
    title="Frames per second without loss",
    source="RFC 9693 section 4.7, RFC 2544 section 26.1",
    better="higher",
    does="forwards {value}",
    criterion=Criterion(strict=" without loss"),
    best="forwards most frames",
    moved_by=frozenset(),
    resource="frames",
    is_bounded=True,
    counts="frames",
    turn=1,
)
