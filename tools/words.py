# SPDX-License-Identifier: Apache-2.0
"""Words of the documentation and its long sentences: `python -m tools.words` prints them, with each budget.

A word is what `wc -w` counts. Evidence (benchmarks/) and pages made of data (records/) do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
#: The most words of a sentence outside of tables and code.
LONGEST: Final = 40
#: Words that a reader reads in a minute.
_PACE: Final = 230
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
#: What begins a block of its own: an item of a list, a heading, a quotation.
_ITEM: Final = re.compile(r"^\s*(?:[-*] |\d+\. |#+ |> )")
_SENTENCE: Final = re.compile(r"(?<=[.!?])[\"*)]*\s+")
_READER: Final = re.compile(r"^\*For .+\. (\d+) minutes?\.\*$", re.MULTILINE)


class Budget(NamedTuple):
    """The most words of some pages together."""

    name: str
    pages: tuple[str, ...]
    most: int


BUDGETS: Final = (
    Budget("README", ("README.md",), 700),
    Budget("method and metrics", ("METHOD.md", "docs/method/*.md"), 9_000),
    Budget("changelog", ("CHANGELOG.md",), 1_500),
    Budget("tutorials", ("docs/tutorial-*.md",), 1_500),
    Budget("all documentation", ("*.md", "docs/**/*.md"), 40_000),
)


def pages(*patterns: str) -> list[Path]:
    """Return the pages of some patterns, each once."""
    return sorted({page for pattern in patterns for page in ROOT.glob(pattern)})


def count(page: Path) -> int:
    """Return the number of words of a page, code and tables included."""
    return len(page.read_text(encoding="utf-8").split())


def used(budget: Budget) -> int:
    """Return the words of a budget's pages."""
    return sum(map(count, pages(*budget.pages)))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, without tables and code; a piece of code in a line is one word."""
    blocks, block = [], ""
    for line in [*_COMMENT.sub("", _FENCE.sub("", text)).splitlines(), ""]:
        if not line.strip() or line.startswith("|") or _ITEM.match(line):
            blocks.append(block)
            block = ""
        if not line.startswith("|"):
            block += f" {line.strip()}"
    for one in blocks:
        yield from _SENTENCE.split(_LINK.sub(r"\1", _INLINE.sub("code", one)).strip())


def too_long(text: str) -> list[str]:
    """Return the sentences of a page that have too many words."""
    return [one for one in sentences(text) if len(one.split()) > LONGEST]


def wrong_minutes(text: str) -> str:
    """Return what is wrong with the line that names a page's reader and minutes; empty = nothing."""
    named = _READER.search(text)
    if named is None:
        return "no line such as *For operators. 3 minutes.*"
    needed = max(1, round(len(text.split()) / _PACE))
    return "" if abs(int(named[1]) - needed) <= max(1, needed // 5) else f"{needed} minutes, not {named[1]}"


def main() -> int:
    """Print the words of each page and budget, and long sentences; 1 if a budget or a sentence is too long."""
    every = pages("*.md", "docs/**/*.md")
    for page in every:
        print(f"{count(page):7,}  {page.relative_to(ROOT)}")
    wrong = [f"{page.relative_to(ROOT)}: {one}" for page in every for one in too_long(page.read_text(encoding="utf-8"))]
    over = [one for one in BUDGETS if used(one) > one.most]
    print(*(f"{used(one):7,} of {one.most:,}  {one.name}" for one in BUDGETS), *wrong, sep="\n")
    return 1 if wrong or over else 0


if __name__ == "__main__":
    sys.exit(main())
