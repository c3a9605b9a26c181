# SPDX-License-Identifier: Apache-2.0
"""The table as Markdown with GitHub's tables, such as for the summary of a job in continuous integration."""

from __future__ import annotations

import re
from collections.abc import Sequence

from natgauge.reports.shown import below, lines_of
from natgauge.results.model import Result


def table(results: Sequence[Result]) -> str:
    """A table whose first line names the devices, then a list of what stands below.

    Raises:
        UsageError: there are no results.
    """
    head, *rest = lines_of(results)
    lines = [
        _line([head.heading, *head.cells]),
        "|" + "|".join([" --- ", *(" ---: " for _ in head.cells)]) + "|",
        *(_line([line.heading, *line.cells]) for line in rest),
    ]
    notes = below(results)
    return "\n".join([*lines, *([""] if notes else []), *(f"- {_plain(note)}" for note in notes)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """What Markdown would take for a mark is shown as it is; a cell has no second line."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
