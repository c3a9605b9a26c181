# SPDX-License-Identifier: Apache-2.0
"""Text made of the entries of doubts: their words and properties for other packages, and the documentation's table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Final

from natgauge.doubts import doubts
from natgauge.doubts.doubt import Doubt
from natgauge.notes import KnownDoubt

#: The page with the table of doubts.
PAGE: Final = Path(__file__).parents[1] / "records" / "doubts.md"
#: Comments of the page before and after the table.
_BEGIN: Final = "<!-- made of src/natgauge/doubts by `python -m tools.described` -->\n"
_END: Final = "<!-- end -->\n"

_WORDS: Final = '''\
# SPDX-License-Identifier: Apache-2.0
"""Words of all doubts, for type checkers and for the schemas of records.

Made of the entries in `natgauge.doubts` by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Literal

#: Reasons to trust a figure less.
DoubtWord = Literal[
'''
_PROPERTIES: Final = """\
# SPDX-License-Identifier: Apache-2.0
# Properties of doubts that views of records need.
# Made of the entries in natgauge.doubts by `python -m tools.described`; a test holds that it is up to date.

"""
#: The most characters of a line.
_WIDTH: Final = 120


def words() -> str:
    """Return the module with the words of all doubts."""
    lines, line = [], "   "
    for word in doubts():
        if len(line) + len(word) + 4 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f' "{word}",'
    return "\n".join([_WORDS.rstrip(), *lines, line, "]  # fmt: skip\n"])


def properties() -> str:
    """Return the copy of the entries that is read with records."""
    return _PROPERTIES + "".join(f"{json.dumps(word)} = {{ {_of(doubt)} }}\n" for word, doubt in doubts().items())


def _of(doubt: Doubt) -> str:
    own = {field.name: getattr(doubt, field.name) for field in fields(KnownDoubt) if field.name != "word"}
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in own.items() if value)


def page() -> str:
    """Return the page with the table of the present entries.

    Raises:
        ValueError: the page lacks one of the two comments.
    """
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    return f"{before}{_BEGIN}{_table(doubts().values())}{_END}{rest.split(_END)[1]}"


def _table(every: Iterable[Doubt]) -> str:
    columns = ("Word", "About", "Grade", "Share", "Leaves", "Meaning", "What to do")
    rows = ["| " + " | ".join(columns) + " |", f"|{'---|' * len(columns)}"]
    for doubt in every:
        grade = f"`{doubt.grade}`{f'; {doubt.grades}' if doubt.grades else ''}"
        leaves = {"at least": "at least", "at most": "at most"}.get(doubt.leaves, "")
        cells = (f"`{doubt.word}`", doubt.about, grade, doubt.share, leaves, doubt.meaning, doubt.remedy)
        rows.append(f"| {' | '.join(cells)} |")
    return "".join(f"{row}\n" for row in rows)
