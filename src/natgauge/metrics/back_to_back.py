# SPDX-License-Identifier: Apache-2.0
"""Declaration of the back-to-back: longest burst without frame loss, and the buffer behind it."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import TESTER_RATES, Criterion, Metric

METRIC: Final = Metric(
    name="back-to-back",
    unit="frames",
    summary="longest burst at full speed without frame loss, and the buffer size that follows from it",
    title="Longest burst without loss",
    source="RFC 9004",
    better="higher",
    does="forwards a burst of {value}",
    criterion=Criterion(strict=" without loss"),
    best="forwards the longest burst",
    moved_by=TESTER_RATES,
)
