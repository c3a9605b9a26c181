# SPDX-License-Identifier: Apache-2.0
"""The table as Markdown with GitHub's tables, such as for the summary of a job in continuous integration."""

from __future__ import annotations

import re
from collections.abc import Sequence

from natgauge.records.measurement import Result
from natgauge.reports.sheet import Sheet, sheet


def table(results: Sequence[Result]) -> str:
    """A table whose first line names the devices, then a list of what stands below.

    Raises:
        UsageError: there are no results.
    """
    return render(sheet(results))


def render(shown: Sheet) -> str:
    """Any table."""
    head, *rest = shown.lines
    lines = [
        row([head.heading, *head.cells]),
        "|" + "|".join([" --- ", *(" ---: " for _ in head.cells)]) + "|",
        *(row([line.heading, *(line.cells or [""] * shown.columns)]) for line in rest),
    ]
    notes = [f"- {escaped(note)}" for note in shown.below]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(map(escaped, cells)) + " |"


def escaped(text: str) -> str:
    """Text as it is: what Markdown would take for a mark is shown as it is; a cell has no second line."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
