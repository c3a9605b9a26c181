# SPDX-License-Identifier: Apache-2.0
"""Output of a script in sections, each below a heading of its own."""

from __future__ import annotations

from typing import Final

#: Begins the heading of a section.
SECTION: Final = "== "


def sections_of(text: str) -> dict[str, list[str]]:
    """Lines that say something, by the heading above them; what a machine greets with before is passed over."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(SECTION):
            lines = sections.setdefault(line.removeprefix(SECTION), [])
        elif line.strip():
            lines.append(line.rstrip())
    return sections
