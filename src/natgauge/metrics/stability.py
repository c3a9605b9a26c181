# SPDX-License-Identifier: Apache-2.0
"""Declaration of the stability: share of failed periods in hours of constant load."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

#: DeclaredFigure of the periods that were judged: those that are not INVALID.
JUDGED: Final = "judged_periods"

METRIC: Final = Metric(
    name="stability",
    unit="%",
    summary="share of failed periods in hours of constant load",
    title="Failures under constant load",
    source="RFC 9693 section 4.7, its trial repeated for hours",
    better="lower",
    does="fails in {value} of the judged periods at constant load",
    best="fails in fewest periods at constant load",
    figures=(
        DeclaredFigure("periods", "periods"),
        DeclaredFigure(JUDGED, "judged periods", answer="{judged} of {periods} periods judged"),
        DeclaredFigure("failed_periods", "failed periods"),
        DeclaredFigure("first_failure_seconds", "end of the first failed period", "s"),
        DeclaredFigure("worst_shortfall_percent", "shortfall of the worst period", "%"),
        DeclaredFigure("lost_percent_p", "p of a trend of the loss"),
    ),
    moved_by=frozenset(),
    measures_loss=True,
    follows_host=False,
)
