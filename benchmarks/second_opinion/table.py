# SPDX-License-Identifier: Apache-2.0
"""The table of all testers' figures next to the true ones."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks import command
from benchmarks.second_opinion.questions import Question

_COLUMNS: Final = (
    *("Question", "True", "Tester", "Median", "Minimum to maximum", "Difference", "Turns with a figure"),
    *("Trials, rejected by the tester", "Seconds of a turn"),
)


def page(
    described: dict[str, str | int | float], asked: Mapping[str, Question], turns: Sequence[Mapping[str, Any]]
) -> str:
    """Machine and table in Markdown."""
    parts = command.heading("A second opinion on the same gateway", described)
    parts.append(f"| {' | '.join(_COLUMNS)} |")
    parts += ["|---|--:|---|--:|--:|--:|--:|--:|--:|"]
    for name, question in asked.items():
        for tester in question.testers:
            mine = [turn for turn in turns if (turn["question"], turn["tester"]) == (name, tester)]
            if mine:
                parts.append(_row(question, tester, mine))
    return "\n".join([*parts, ""])


def _row(question: Question, tester: str, turns: Sequence[Mapping[str, Any]]) -> str:
    values = [turn["value"] for turn in turns if turn["value"] is not None]
    shown = ["no figure", "", ""]
    if values:
        median = statistics.median(values)
        difference = "" if question.true is None else f"{median / question.true - 1:+.1%}"
        shown = [f"{median:,.0f}", f"{min(values):,.0f} to {max(values):,.0f}", difference]
    trials, invalid = (sum(turn[what] for turn in turns) for what in ("trials", "invalid"))
    cells = [
        f"{question.words} ({question.unit})",
        "not known" if question.true is None else f"{question.true:,.1f}",
        tester,
        *shown,
    ]
    cells += [f"{len(values)} of {len(turns)}", f"{trials}, {invalid}"]
    cells.append(f"{statistics.median(turn['seconds'] for turn in turns):,.0f}")
    return f"| {' | '.join(cells)} |"
