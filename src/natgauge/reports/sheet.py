# SPDX-License-Identifier: Apache-2.0
"""Content of a table for people, in all forms: the rows that have values, and the sentences below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.scalability import derived_rows
from natgauge.notes import NoteWord
from natgauge.records.measurement import Result
from natgauge.reports.rows import column_of, doubt_words, references, rows, uncompared

#: Doubts that are printed as sentences: they contain information on the device that the figure lacks.
_FINDINGS: Final[frozenset[NoteWord]] = frozenset(
    {"wide spread", "tester on device cores", "functional", "link limited", "flow control", "taking turns"}
)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row as text: label with unit, and one cell per column ("-" = no value).

    A row without cells is the heading of the rows that follow.
    """

    heading: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, independent of its form.

    Attributes:
        lines: rows; the first has the names of the columns.
        below: sentences below the table.
    """

    lines: tuple[SheetRow, ...]
    below: tuple[str, ...]

    @property
    def columns(self) -> int:
        """Number of columns without the labels."""
        return len(self.lines[0].cells)


def sheet(results: Sequence[Result]) -> Sheet:
    """Return the table of RFC 9693 section 6: one column per result.

    Raises:
        UsageError: there are no results.
    """
    return Sheet(tuple(lines_of(results)), tuple(below(results)))


def lines_of(results: Sequence[Result]) -> list[SheetRow]:
    """Return the rows that have a value for at least one result; the first has the devices.

    Raises:
        UsageError: there are no results.
    """
    shown = [SheetRow(row.heading, tuple(row.printed)) for row in rows(results) if row.label != "not compared"]
    return [line for line in shown if any(cell != "-" for cell in line.cells)]


def below(results: Sequence[Result], called: Callable[[int, Result], str] = column_of) -> list[str]:
    """Return the sentences below the table: doubts and findings of each result, and its references.

    Args:
        results: results of the table.
        called: returns the name of a result in the table, from its number, from 1.
    """
    derived, sentences = derived_rows(results), []
    for column, result in enumerate(results):
        where = called(column + 1, result)
        if called is column_of:
            # A metric's name keeps its spelling everywhere; this text begins with a word.
            where = where[:1].upper() + where[1:]
        if result.doubts:
            sentences.append(f"{where}: doubts: {doubt_words(result)}.")
        sentences += [
            f"{where}: {text}." for text in (*findings(result), *uncompared(derived, column, results, called))
        ]
    return [*sentences, *(f"{note}." for note in references(derived))]


def findings(result: Result) -> list[str]:
    """Return the doubts that are printed as sentences."""
    return [doubt.text for doubt in result.doubts if doubt.word in _FINDINGS]
