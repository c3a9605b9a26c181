# SPDX-License-Identifier: Apache-2.0
"""Declaration of the resolution-rate: highest rate at which every DNS query receives a correct answer in time."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Criterion, Metric

METRIC: Final = Metric(
    name="resolution-rate",
    unit="queries/s",
    summary="highest rate at which every DNS query receives a correct answer in time",
    title="DNS queries per second",
    source="draft-lencse-v6ops-transition-scalability-05 section 5",
    better="higher",
    does="passes {value}",
    criterion=Criterion(strict=", all of them answered{within}", tolerant=", at least {kept} of them answered{within}"),
    best="passes most DNS queries",
    # The draft's: 16 threads of 100 source ports each.
    traffic={"destination_ports": "53", "connections": 1600},
    moved_by=frozenset(),
    is_bounded=True,
    counts="queries",
)
