# SPDX-License-Identifier: Apache-2.0
"""The table as Markdown with GitHub's tables, such as for the summary of a job in continuous integration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from natgauge.plain_text import one_line
from natgauge.reports.sheet import Sheet

#: A comment, which is not shown, between two characters of what would be linked otherwise.
_NOTHING: Final = "<!-- -->"
#: Beginnings of mentions and mail addresses, of addresses with a scheme, and of those without one; on GitHub also of
#: issues and of hashes of commits, of which seven digits are enough.
_LINKED: Final = re.compile(
    r"@(?=\w)|(?<=\w):(?=//)|\b(?:mailto|xmpp):|\bwww(?=\.)|\bGH(?=-\d)|\b[0-9a-f]{6}(?=[0-9a-f]{34}\b)", re.IGNORECASE
)


def render(shown: Sheet) -> str:
    """Return a sheet as Markdown."""
    head, *rest = shown.lines
    figures = [" ---: "] * (shown.columns - shown.ends_in_words)
    lines = [
        row([head.heading, *head.cells]),
        "|" + "|".join([" --- ", *figures, *([" --- "] if shown.ends_in_words else [])]) + "|",
        *(row([line.heading, *(line.cells or [""] * shown.columns)]) for line in rest),
    ]
    notes = [f"- {escaped(note)}" for note in shown.below]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def answered(sentences: Sequence[str], shown: Sheet) -> str:
    """Return sentences as a list above a sheet."""
    listed = [f"- {escaped(sentence)}" for sentence in sentences]
    return "\n".join([*listed, *([""] if listed else []), render(shown)])


def row(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table, with the cells escaped."""
    return "| " + " | ".join(map(escaped, cells)) + " |"


def escaped(text: str) -> str:
    """Escape a text's Markdown characters, and join its lines; it mentions nobody and links nowhere."""
    escapes = re.sub(r"([\\`*_\[\]<>|#~$]|&(?=[#\w]))", r"\\\1", " ".join(one_line(text).split()))
    return _LINKED.sub(lambda match: f"{match[0]}{_NOTHING}", escapes)
