# SPDX-License-Identifier: Apache-2.0
"""Title and note that the user gives a report, in each form in which people read it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from natgauge.plain_text import one_line
from natgauge.reports import markdown
from natgauge.reports.latex import plain


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The user's own words for a report; empty = none."""

    title: str = ""
    note: str = ""

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The note, a line for each paragraph; empty lines are between them."""
        return tuple(" ".join(part.split()) for part in re.split(r"\n\s*\n", self.note) if part.strip())

    def above(self, form: str, text: str) -> str:
        """Return a table as text with these words above it; `form` is that of `natgauge report`."""
        title, note = one_line(self.title), [one_line(part) for part in self.paragraphs]
        if form == "markdown":
            title, note = f"# {markdown.escaped(title)}" if title else "", list(map(markdown.escaped, note))
        elif form == "latex":
            # The title is the caption of each table.
            title, note = "", list(map(plain, note))
        return "\n\n".join([*filter(None, [title, *note]), text])


NO_WORDS: Final = OwnWords()
