# SPDX-License-Identifier: Apache-2.0
"""Declaration of the subscribers: how many of one profile a device carries."""

from __future__ import annotations

from typing import Final

from natgauge.metrics import floods
from natgauge.metrics.metric import Criterion, Metric

METRIC: Final = Metric(
    name="subscribers",
    unit="subscribers",
    summary="highest number of subscribers of one profile: new connections, open ones and frames at once",
    source="RFC 9693 sections 4.5 and 4.7, both at once",
    better="higher",
    does="carries {value}",
    criterion=Criterion(strict=" without losing a frame or a new connection"),
    best="carries most subscribers",
    figures=floods.FIGURES,
    traffic={"connections": 1_000_000},
    moved_by=frozenset(),
)
