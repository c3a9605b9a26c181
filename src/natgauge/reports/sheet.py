# SPDX-License-Identifier: Apache-2.0
"""What a table for people shows, in whatever form: the rows that say something, and what stands below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.scalability import derived_rows
from natgauge.notes import NoteWord
from natgauge.records.measurement import Result
from natgauge.reports.rows import column_of, doubt_words, references, rows, uncompared

#: Doubts that are told whole: they say something of the device that its figure does not.
_FINDINGS: Final[frozenset[NoteWord]] = frozenset(
    {"wide spread", "tester on device cores", "functional", "link limited", "flow control", "taking turns"}
)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row, printed: what it is called, with its unit, and one cell per column ("-" = nothing to say).

    A line without cells is a heading of those that follow.
    """

    heading: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table before it has a form.

    Attributes:
        lines: the first one names the columns.
        below: sentences that belong under it.
    """

    lines: tuple[SheetRow, ...]
    below: tuple[str, ...]

    @property
    def columns(self) -> int:
        """How many there are beside the headings."""
        return len(self.lines[0].cells)


def sheet(results: Sequence[Result]) -> Sheet:
    """The table of RFC 9693 section 6: one column per result.

    Raises:
        UsageError: there are no results.
    """
    return Sheet(tuple(lines_of(results)), tuple(below(results)))


def lines_of(results: Sequence[Result]) -> list[SheetRow]:
    """The rows that say something of a result at least, the first one of devices.

    Raises:
        UsageError: there are no results.
    """
    shown = [SheetRow(row.heading, tuple(row.printed)) for row in rows(results) if row.label != "not compared"]
    return [line for line in shown if any(cell != "-" for cell in line.cells)]


def below(results: Sequence[Result], called: Callable[[int, Result], str] = column_of) -> list[str]:
    """Sentences that belong under the table: doubts and findings of each result, and what it was compared with.

    Args:
        results: of the table.
        called: how a result is called there; it is given its number, from 1.
    """
    derived, said = derived_rows(results), []
    for column, result in enumerate(results):
        where = called(column + 1, result)
        if called is column_of:
            # A metric is written as it is called, wherever it stands; this is a word.
            where = where[:1].upper() + where[1:]
        if result.doubts:
            said.append(f"{where}: doubts: {doubt_words(result)}.")
        said += [f"{where}: {text}." for text in (*findings(result), *uncompared(derived, column, results, called))]
    return [*said, *(f"{note}." for note in references(derived))]


def findings(result: Result) -> list[str]:
    """Doubts that are told whole."""
    return [doubt.text for doubt in result.doubts if doubt.word in _FINDINGS]
