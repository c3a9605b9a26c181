# SPDX-License-Identifier: Apache-2.0
"""The table as Markdown with GitHub's tables, such as for the summary of a job in continuous integration."""

from __future__ import annotations

import re
from collections.abc import Sequence

from natgauge.reports.sheet import Sheet


def render(shown: Sheet) -> str:
    """Return a sheet as Markdown."""
    head, *rest = shown.lines
    lines = [
        row([head.heading, *head.cells]),
        "|" + "|".join([" --- ", *(" ---: " for _ in head.cells)]) + "|",
        *(row([line.heading, *(line.cells or [""] * shown.columns)]) for line in rest),
    ]
    notes = [f"- {escaped(note)}" for note in shown.below]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def row(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table, with the cells escaped."""
    return "| " + " | ".join(map(escaped, cells)) + " |"


def escaped(text: str) -> str:
    """Escape a text's Markdown characters, and join its lines."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
