# SPDX-License-Identifier: Apache-2.0
"""What a table for people shows, in whatever form: the rows that say something, and what stands below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.reports.rows import doubt_words, references, rows, uncompared
from natgauge.results.model import DoubtWord, Result
from natgauge.results.scalability import derived_rows

#: Doubts that are told whole: they say something of the device that its figure does not.
_FINDINGS: Final[frozenset[DoubtWord]] = frozenset(
    {"wide spread", "tester on device cores", "functional", "link limited", "flow control", "taking turns"}
)


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
    """Sentences that belong under the table: doubts and findings of each column, and what it was compared with."""
    derived, said = derived_rows(results), []
    for column, result in enumerate(results):
        where = f"Column {column + 1}, {result.dut}"
        if result.doubts:
            said.append(f"{where}: doubts: {doubt_words(result)}.")
        said += [f"{where}: {text}." for text in (*findings(result), *uncompared(derived, column))]
    return [*said, *(f"{note}." for note in references(derived))]


def findings(result: Result) -> list[str]:
    """Doubts that are told whole."""
    return [doubt.text for doubt in result.doubts if doubt.word in _FINDINGS]
