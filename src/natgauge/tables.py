# SPDX-License-Identifier: Apache-2.0
"""Tables for terminals, pipes and files: columns that are aligned, and never wrapped or cut."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Collection, Sequence
from typing import Final

from natgauge.plain_text import one_line

#: Width of lines that go to a file or a pipe, and the least width.
_COLUMNS: Final = 100
_LEAST: Final = 60
#: Wider than any table, so that no cell is wrapped.
_WIDTH: Final = 100_000


def columns() -> int:
    """Return the most characters of a line: those of the terminal, 100 where standard output is none; at least 60."""
    return max(_LEAST, shutil.get_terminal_size((_COLUMNS, 0)).columns)


def wrapped(text: str, width: int) -> str:
    """Return a text whose lines are broken between words; the rest of a line is indented below it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= width:
            lines.append(line)
            continue
        rest = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows as lines without colours; columns are two blanks apart, each as wide as its widest cell.

    Args:
        right: numbers of the columns, from 0, whose cells are aligned to the right.
    """
    from rich.console import Console  # noqa: PLC0415 - most commands print no table
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if not rows:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(len(rows[0])):
        table.add_column(justify="right" if column in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    printed = io.StringIO()
    Console(file=printed, width=_WIDTH, color_system=None, force_terminal=False).print(table)
    return [line.rstrip() for line in printed.getvalue().splitlines()]
