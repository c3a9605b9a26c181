# SPDX-License-Identifier: Apache-2.0
"""Declaration of the frame-loss: frame loss rate by load, from overload down to no loss."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import TESTER_RATES, Criterion, DeclaredFigure, Metric

#: Highest rate, in frames/s of each direction, from which on down trials lost nothing, or no more than was tolerated.
WITHOUT_LOSS: Final = "highest_rate_without_loss"
WITHIN_TOLERANCE: Final = "highest_rate_within_tolerance"

METRIC: Final = Metric(
    name="frame-loss",
    unit="%",
    summary="frame loss rate by load, from overload down to no loss",
    title="Frame loss by load",
    source="RFC 2544 section 26.3",
    better="lower",
    does="loses {value} of the frames at the highest load",
    criterion=Criterion(tolerant=""),
    best="loses fewest frames at the highest load",
    figures=(*(DeclaredFigure(name, answer="{loss} up to {} {unit}") for name in (WITHOUT_LOSS, WITHIN_TOLERANCE)),),
    moved_by=TESTER_RATES,
    measures_loss=True,
    draws_loss=True,
    follows_host=False,
)
