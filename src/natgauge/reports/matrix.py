# SPDX-License-Identifier: Apache-2.0
"""The matrix of devices and metrics: a row for each device, a column for each metric, medians as cells."""

from __future__ import annotations

from collections.abc import Sequence

from natgauge.errors import UsageError
from natgauge.records.measurement import Result
from natgauge.reports.graded_doubts import of_columns
from natgauge.reports.rows import number, rows, unit_of
from natgauge.reports.sheet import Sheet, SheetRow

#: Mark of a figure that has doubts, which are listed below the table.
_DOUBTED = "*"


def sheet(results: Sequence[Result]) -> Sheet:
    """Return the matrix of results, at most one for each device and metric.

    Args:
        results: at least one.
    """
    set_alike = (row for row in rows(results) if not row.measured and len(set(row.cells)) == 1)
    same = [f"{row.heading} {row.printed[0]}" for row in set_alike if row.cells[0] is not None]
    headings = [f"{result.metric} ({unit_of(result)})" for result in results]
    columns = tuple(dict.fromkeys(headings))
    by_gateway: dict[str, dict[str, str]] = {}
    for heading, result in zip(headings, results, strict=True):
        cells = by_gateway.setdefault(result.gateway, {})
        if heading in cells:
            raise UsageError(
                f"report: --against metrics: two results are of {result.metric} of {result.gateway}; name folders "
                "of one set-up, or leave out --against"
            )
        cells[heading] = number(result.median) + (_DOUBTED if result.doubts else "")
    lines = [SheetRow("median of", columns)]
    lines += [
        SheetRow(gateway, tuple(cells.get(heading, "-") for heading in columns))
        for gateway, cells in by_gateway.items()
    ]
    notes = [f"All: {', '.join(same)}."] if same else []
    doubts = of_columns(
        [(result.gateway, heading, result.doubts) for heading, result in zip(headings, results, strict=True)]
    )
    return Sheet(tuple(lines), tuple(notes), tuple(f"{_DOUBTED} {line}" for line in doubts))
