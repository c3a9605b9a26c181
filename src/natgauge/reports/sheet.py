# SPDX-License-Identifier: Apache-2.0
"""Content of a table for people, in all forms: the rows that have values, and the sentences below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.plain_text import capital
from natgauge.records.measurement import Result
from natgauge.reports import doubtful
from natgauge.reports.graded_doubts import of_columns
from natgauge.reports.main_figure import interval_of
from natgauge.reports.rows import IN_UNIT, column_of, compared_rows, references, rows, uncompared, unit_of, unlike_bits

#: What ranges are in tables whose medians have rows of their own, and in those where the median has one.
OF_VALUES: Final = (
    "Percentiles, brackets and ± are of the measured values alone; strokes of figures are where another run is "
    "expected."
)
_OF_RUNS: Final = (
    "Brackets and ± are where another run on the same machine is expected or, in doubt, the range of the repetitions; "
    "they are no confidence intervals."
)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row as text: label with unit, and one cell per column ("-" = no value).

    A row without cells is the heading of the rows that follow.

    Attributes:
        unit: unit of the cells, which the label lacks, because other rows of a wider table say it.
        column: name of the row for programs, which depends on no other result; empty = its heading.
    """

    heading: str
    cells: tuple[str, ...]
    unit: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, independent of its form.

    Attributes:
        in_paper: the doubts for readers of a paper; empty = as for others.
        ranges: what the ranges in its cells are, as a sentence; empty = nobody needs to be told.
        ends_in_words: whether the last column has words, for which text has the rest of the line.
    """

    lines: tuple[SheetRow, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    in_paper: tuple[str, ...] = ()
    ranges: str = ""
    ends_in_words: bool = False
    leads: bool = False

    @property
    def below(self) -> tuple[str, ...]:
        """All sentences below the table."""
        return (*self.doubts, *self.notes)

    @property
    def columns(self) -> int:
        """Number of columns without the labels."""
        return len(self.lines[0].cells)


def of_runs(results: Sequence[Result]) -> str:
    """Return what the ranges of a table with a cell for each result are; empty where no cell has one."""
    every = map(interval_of, results)
    return _OF_RUNS if any(each.low != each.high for each in every) else ""


def sheet(results: Sequence[Result]) -> Sheet:
    """Return the table of RFC 9693 section 6: one column per result."""
    doubts, of_paper = of_columns(
        [("", str(column), result.doubts) for column, result in enumerate(results, start=1)], "column"
    )
    return Sheet(tuple(lines_of(results)), tuple(notes(results)), doubts, of_paper, OF_VALUES)


def lines_of(results: Sequence[Result]) -> list[SheetRow]:
    """Return the rows that have a value for at least one result; the first has the devices."""
    units = {unit_of(result) for result in results}
    unit = units.pop() if len(units) == 1 else ""
    shown = [
        SheetRow(row.heading, tuple(row.printed), unit if row.label in IN_UNIT else "")
        for row in rows(results)
        if row.label != "not compared"
    ]
    return [line for line in shown if any(cell != "-" for cell in line.cells)]


def notes(results: Sequence[Result], called: Callable[[int, Result], str] = column_of) -> list[str]:
    """Return the sentences on what results lack: repetitions, comparisons, bits; each once. References follow.

    Args:
        called: returns the name of a result in the table, from its number, from 1.
    """
    derived = compared_rows(results)
    missing: dict[str, list[str]] = {}
    for column, (result, bits) in enumerate(zip(results, unlike_bits(results), strict=True)):
        lacking = doubtful.missing(result).strip(" ()")
        for text in (*uncompared(derived, column, results, called), *filter(None, [lacking, bits])):
            missing.setdefault(text, []).append(called(column + 1, result))
    sentences = [f"{'; '.join(names)}: {text}." for text, names in missing.items()]
    if called is column_of:
        # A metric's name keeps its spelling everywhere; this text begins with a word.
        sentences = list(map(capital, sentences))
    return [*sentences, *(f"{note}." for note in references(derived))]
