# SPDX-License-Identifier: Apache-2.0
"""Declaration of the cost: CPU time per frame, compared with plain forwarding."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import Criterion, Metric

#: What the figures of a quantity are called behind its name.
RATIO, LOW, HIGH = "ratio_to_forwarding", "ratio_low", "ratio_high"
OWN, FORWARDING, TESTER = "ns", "forwarding_ns", "tester_ns"

METRIC: Final = Metric(
    name="cost",
    unit="x forwarding",
    summary="CPU time per frame, compared with plain forwarding",
    title="Work for a frame",
    source="RFC 9693 sections 4.4, 4.7 (trials replaced by slices next to plain forwarding)",
    better="lower",
    does="takes {number} times the CPU time of plain forwarding for a frame",
    criterion=Criterion(tolerant=""),
    best="takes least CPU time for a frame",
    moved_by=frozenset(),
    follows_host=False,
)
