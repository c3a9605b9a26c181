# SPDX-License-Identifier: Apache-2.0
"""Declaration of the validated-connection-rate: of new connections that then forward replies."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

METRIC: Final = Metric(
    name="validated-connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established and then forwards replies",
    title="New connections per second, each with a reply",
    source="RFC 9693 section 4.6",
    better="higher",
    does="opens {value}, each of which then forwards a reply",
    best="opens most validated connections",
    figures=(
        DeclaredFigure("validation_rate", is_tried=True),
        DeclaredFigure("alpha", is_tried=True),
    ),
    moved_by=frozenset(),
    resource="new connections",
    phase=1,
    is_bounded=True,
    # Its rate is that of phase 1.
    counts="opening",
    shows_memory=True,
)
