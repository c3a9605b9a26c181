# SPDX-License-Identifier: Apache-2.0
"""A figure of a record from the values of the repetitions."""

from __future__ import annotations

from natgauge.records.measurement import FigureSummary
from natgauge.statistics.summary import Summary


def figure_of(summary: Summary) -> FigureSummary:
    """Return the record of a summary."""
    return FigureSummary(
        median=summary.median,
        p1=summary.p1,
        p99=summary.p99,
        minimum=summary.minimum,
        maximum=summary.maximum,
        mean=summary.mean,
        standard_deviation=summary.standard_deviation,
        count=len(summary.repetitions),
    )
