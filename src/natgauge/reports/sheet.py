# SPDX-License-Identifier: Apache-2.0
"""Content of a table for people, in all forms: the rows that have values, and the sentences below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from natgauge.analysis.contrast import drift, search_share, take_turns, widened_by_doubts
from natgauge.figure_text import in_percent
from natgauge.interval_text import Written
from natgauge.plain_text import capital
from natgauge.records.measurement import Result
from natgauge.reports import main_figure
from natgauge.reports.graded_doubts import mark, of_columns
from natgauge.reports.main_figure import interval_of, is_by_ends, stated_number
from natgauge.reports.rows import (
    IN_UNIT,
    ResultRow,
    column_of,
    compared_rows,
    references,
    rows,
    uncompared,
    unit_of,
    unlike_bits,
)
from natgauge.words import Verdict, listed

#: What ranges are in tables whose medians have rows of their own, and in those where the median has one.
OF_VALUES: Final = "Percentiles and brackets are of the measured values alone."
_EXPECTED: Final = (
    "{} where another run on this machine is expected. That is no confidence interval, but the range of the repetitions"
)
#: What is written of such a range: the longer side in percent, or both ends, or one of them for each figure.
_SIGNS: Final[Mapping[frozenset[bool], str]] = {
    frozenset({False}): "± (the larger side) is",
    frozenset({True}): "Brackets are",
    frozenset({False, True}): "± (the larger side) and brackets are",
}
_IN_TURNS: Final = (
    "A ratio of two values can be known better than that: their repetitions took turns, so that a change of the "
    "machine's speed acts on both."
)
_NOT_KNOWN: Final = "brackets are the range of the repetitions"


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
        in_paper: the doubts for readers of a paper; None = as for others.
        ranges: what all cells have, and what the ranges in them are, in sentences; empty = nobody needs to be told.
        for_text: sentences for the text of a paper, which its table has no room for.
        ends_in_words: whether the last column has words, for which text has the rest of the line.
    """

    lines: tuple[SheetRow, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    in_paper: tuple[str, ...] | None = None
    ranges: str = ""
    for_text: tuple[str, ...] = ()
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
    ranges = [(interval_of(result), result) for result in results if main_figure.statement_of(result).is_median]
    written = {
        at: is_by_ends(result, each.low, each.high)
        for at, (each, result) in enumerate(ranges)
        if each.is_expected and each.low != each.high
    }
    expected = [ranges[at][1] for at in written]
    sentences = []
    if expected:
        errors = [share for result in expected if (share := search_share(result))]
        drifts = [share for result in expected if (share := drift(result))]
        more = [f"the search error ({_percent(errors)} of the median)"] if errors else []
        more += [f"the drift of a virtual machine ({_percent(drifts)} of that end)"] if drifts else []
        of_squares = "the root of the sum of the squares of " if len(more) > 1 else ""
        wider = f", widened at each end by {of_squares}{listed(more)}" if more else ""
        what = "and by what the doubts say" if any(map(widened_by_doubts, expected)) else ""
        signs = _SIGNS[frozenset(written.values())]
        sentences.append(f"{_EXPECTED.format(signs)}{wider}{what and f', {what}'}.")
        pairs = [pair for pair in combinations(expected, 2) if pair[0].metric == pair[1].metric]
        if drifts and any(take_turns(*pair) for pair in pairs):
            sentences.append(_IN_TURNS)
    if any(not each.is_expected and each.low != each.high for each, _ in ranges):
        alone = capital(f"{_NOT_KNOWN}, and no confidence intervals.")
        sentences.append(f"Where that is not known, {_NOT_KNOWN}." if sentences else alone)
    return " ".join(sentences)


def of_trials(results: Sequence[Result]) -> str:
    """Return how many trials did not count, and how many the machine disturbed; empty where each was undisturbed."""
    every = sum(number for result in results for number in result.trials.values())
    invalid = sum(result.trials.get(Verdict.INVALID, 0) for result in results)
    disturbed = sum(result.disturbed for result in results)
    if not invalid and not disturbed:
        return ""
    left_out = f", {invalid} were INVALID: they do not count, and were repeated" if invalid else ""
    often = f"; {disturbed}, INVALID or not," if left_out else f", {disturbed}"
    return f"Of {every} trials{left_out}{often} were disturbed by the machine."


def _percent(shares: Sequence[float]) -> str:
    least, most = (in_percent(share) for share in (min(shares), max(shares)))
    return most if least == most else f"{least.removesuffix(' %')} to {most}"


def printed(row: ResultRow, results: Sequence[Result], scale: float = 1.0) -> list[str]:
    """Return the cells of a row as text; medians have the bounds that doubts leave, times `scale`, and their marks."""
    if row.label != "median":
        return row.printed
    texts = []
    for text, result in zip(row.printed, results, strict=True):
        stated = "" if main_figure.statement_of(result).is_median else f", {stated_number(result, scale)}"
        said = f"{text}{stated}{mark(result.doubts)}"
        texts.append(Written(said, text.value) if isinstance(text, Written) else said)
    return texts


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
        SheetRow(row.heading, tuple(printed(row, results)), unit if row.label in IN_UNIT else "")
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
        lacking = main_figure.missing(result).strip(" ()")
        for text in (*uncompared(derived, column, results, called), *filter(None, [lacking, bits])):
            missing.setdefault(text, []).append(called(column + 1, result))
    sentences = [f"{'; '.join(names)}: {text}." for text, names in missing.items()]
    if called is column_of:
        # A metric's name keeps its spelling everywhere; this text begins with a word.
        sentences = list(map(capital, sentences))
    return [*sentences, *(f"{note}." for note in references(derived))]
