# SPDX-License-Identifier: Apache-2.0
"""A figure of a record from the values of the repetitions."""

from __future__ import annotations

from typing import Any

from natgauge.records.measurement import STATISTICS, FigureSummary
from natgauge.statistics.summary import Summary


def figure_of(summary: Summary) -> FigureSummary:
    """Return the record of a summary."""
    return FigureSummary(**statistics_of(summary), count=len(summary.repetitions))


def statistics_of(summary: Summary) -> dict[str, Any]:
    """Return the statistics that figures and results have, by the names of their fields."""
    return {name: getattr(summary, name) for name in STATISTICS}
