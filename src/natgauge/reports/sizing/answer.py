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
from natgauge.reports.sizing.table import Table, tables_of, transposed
from natgauge.reports.sizing.verdict import answer_lines, first_metric, groups_by_answer, which_carry
from natgauge.reports.sizing.words import commands_of
from natgauge.tables import aligned

#: The most gateways that are columns of the page's table; of more each is a row.
_MOST_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What results say of subscribers, without their doubts; the question is with the sum of all of them.

    Attributes:
        verdicts: which carry all, if answers differ; then of gateways with the same answer the lines: the answer, the
            cores of all, why, and what limits it.
        tables: each with its head, and a row for each limit; behind its name is a cell for each gateway.
        metric: that of the result that limits first; None = no result does.
    """

    title: str
    question: str
    verdicts: tuple[tuple[str, ...], ...]
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    metric: str | None = None

    @property
    def page_tables(self) -> tuple[Table, ...]:
        """The tables with as many columns as a page has room for."""
        is_wide = len(self.tables[0][0]) - 1 > _MOST_COLUMNS
        return tuple(map(transposed, self.tables)) if is_wide else self.tables


def answer_of(found: Sequence[Sizing]) -> SizeAnswer:
    """Return the answer on all gateways, of which there is at least one."""
    asked = found[0].asked
    gateways = list(dict.fromkeys(sizing.results[0].gateway for sizing in found))
    subscribers = with_noun(in_full(asked.number), "subscribers")
    title = (
        f"Does {gateways[0]} carry {subscribers}?" if len(gateways) == 1 else f"Which gateway carries {subscribers}?"
    )
    groups = groups_by_answer(found)
    verdicts = [
        *([which_carry(found)] if len(groups) > 1 else []),
        *(answer_lines(group, is_whole=len(groups) == 1) for group in groups),
    ]
    return SizeAnswer(
        title,
        f"{question_of(asked)}{sum_of_all(found)}.",
        tuple(map(tuple, verdicts)),
        tuple(tables_of(found)),
        (*sentences_of(found), *own_work(found), *meaning_of_marks(found)),
        tuple((what, tuple(own)) for what, own in commands_of(found).items()),
        first_metric(found[0]),
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
    parts = [
        [said.question],
        *said.verdicts,
        *(_narrow(table, width) for table in said.tables),
        [*said.sentences, *doubt_lines(found)],
        *([f"{what}:", *(f"  {command}" for command in commands)] for what, commands in said.commands),
        [f"Not used: {left}."] if left else [],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _narrow(table: Table, width: int) -> list[str]:
    """The lines of a table, with a row for each gateway where it is too wide and that is narrower."""
    by_gateway, by_limit = (_aligned(each) for each in (table, transposed(table)))
    return by_gateway if max(map(len, by_gateway)) <= max(width, *map(len, by_limit)) else by_limit


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    return aligned(table, right=range(1, len(table[0])))
