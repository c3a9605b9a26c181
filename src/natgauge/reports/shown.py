# SPDX-License-Identifier: Apache-2.0
"""What a table for people shows, in whatever form: the rows that say something, and what stands below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from natgauge.reports.rows import rows, uncompared
from natgauge.results.model import Result


@dataclass(frozen=True, slots=True)
class Line:
    """One row, printed: what it is called, with its unit, and one cell per result ("-" = nothing to say)."""

    heading: str
    cells: tuple[str, ...]


def lines_of(results: Sequence[Result]) -> list[Line]:
    """The rows that say something of a result at least, the first one of devices.

    Raises:
        UsageError: there are no results.
    """
    shown = [Line(row.heading, tuple(row.printed)) for row in rows(results) if row.label != "not compared"]
    return [line for line in shown if any(cell != "-" for cell in line.cells)]


def below(results: Sequence[Result]) -> list[str]:
    """Sentences that belong under the table: the doubts of each column, and why it is not compared."""
    found = []
    for number, result in enumerate(results, start=1):
        where = f"Column {number}, {result.dut}"
        if result.doubts:
            found.append(f"{where}: doubts: {doubt_words(result)}.")
        found += [f"{where}: {why}." for why in uncompared(result, results)]
    return found


def doubt_words(result: Result) -> str:
    """Each doubt by its word."""
    return ", ".join(doubt.word for doubt in result.doubts)
