# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry, for terminals and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.sizing import Sizing, Subscribers
from natgauge.figure_text import in_full, with_noun
from natgauge.records.measurement import Result
from natgauge.reports.sizing.chosen import left_out
from natgauge.reports.sizing.facts import doubt_lines, meaning_of_marks, own_work, sentences_of
from natgauge.reports.sizing.question import question_of, sum_of_all
from natgauge.reports.sizing.table import table_of, transposed
from natgauge.reports.sizing.verdict import answer_lines, groups_by_answer
from natgauge.tables import aligned

#: The most gateways that are columns of the page's table; of more each is a row.
_MOST_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What results say of subscribers, without their doubts; the question is with the sum of all of them.

    Attributes:
        verdicts: of gateways with the same answer the lines: the answer, what ends it first, then each of several.
        table: the head, and a row for each limit; behind its name and the need of all is a cell for each gateway.
    """

    title: str
    question: str
    verdicts: tuple[tuple[str, ...], ...]
    table: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]

    @property
    def page_table(self) -> tuple[tuple[str, ...], ...]:
        """The table with as many columns as a page has room for."""
        return self.table if len(self.table[0]) - 2 <= _MOST_COLUMNS else transposed(self.table)


def answer_of(found: Sequence[Sizing]) -> SizeAnswer:
    """Return the answer on all gateways, of which there is at least one."""
    asked = found[0].asked
    gateways = list(dict.fromkeys(sizing.results[0].gateway for sizing in found))
    subscribers = with_noun(in_full(asked.number), "subscribers")
    title = (
        f"Does {gateways[0]} carry {subscribers}?" if len(gateways) == 1 else f"Which gateway carries {subscribers}?"
    )
    return SizeAnswer(
        title,
        f"{question_of(asked)}{sum_of_all(found)}.",
        tuple(tuple(answer_lines(group)) for group in groups_by_answer(found)),
        tuple(table_of(found)),
        (*sentences_of(found), *own_work(found), *meaning_of_marks(found)),
    )


def exit_status(found: Sequence[Sizing], subscribers: int) -> int:
    """0 where every gateway carries them, 1 where one does not, 5 where it cannot be told of one."""
    fits = {sizing.fits(subscribers) for sizing in found}
    return 1 if "does not carry" in fits else 5 if "cannot tell" in fits else 0


def text(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = (), width: int = 100) -> str:
    """Return the answers, one table, and what they rest on; of the results given, which are left out.

    Args:
        width: where a table with a column for each gateway is wider, each gateway is a row, if that is narrower.
    """
    said, left = answer_of(found), left_out(given, asked)
    by_gateway, by_limit = (_aligned(table) for table in (said.table, transposed(said.table)))
    fits = max(map(len, by_gateway)) <= max(width, *map(len, by_limit))
    parts = [
        [said.question],
        *said.verdicts,
        by_gateway if fits else by_limit,
        [*said.sentences, *doubt_lines(found)],
        [f"Not used: {left}."] if left else [],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    return aligned(table, right=range(1, len(table[0])))
