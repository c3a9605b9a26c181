# SPDX-License-Identifier: Apache-2.0
"""The table as Internet-Drafts have it: plain text, no line longer than 72 characters (RFC 7994 section 4.3).

Columns that do not fit beside each other follow in further tables, each with the labels of the rows again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.reports.shown import Line, Sheet, sheet
from natgauge.results.model import Result

WIDTH: Final = 72
#: The widest that labels and cells are before they are broken into several lines.
_LABEL: Final = 24
_CELL: Final = 20
#: Text of a draft is indented; columns stand apart; narrower labels would be hard to read.
_INDENT: Final = 3
_APART: Final = 2
_LEAST_LABEL: Final = 14
#: What the frame adds to each column: "| " and " ", and once the last "|".
_FRAME: Final = 3


def table(results: Sequence[Result]) -> str:
    """Framed tables of as many results as fit, then what stands below.

    Raises:
        UsageError: there are no results.
    """
    return render(sheet(results))


def render(shown: Sheet) -> str:
    """Any table."""
    lines = shown.lines
    parts = list(_parts(lines))
    text: list[str] = []
    for first, last in parts:
        if len(parts) > 1:
            told = f"Column {first + 1}" if last == first + 1 else f"Columns {first + 1} to {last}"
            text.append(f"{told} of {shown.columns}:")
        text += [*_framed(lines, first, last), ""]
    for sentence in shown.below:
        text += textwrap.wrap(sentence, WIDTH)
    return "\n".join(text).rstrip("\n")


def plain(shown: Sheet) -> str:
    """Any table, without frames: so more columns fit beside each other."""
    rows = [line for line in shown.lines if line.cells]
    widths = _widths(rows)
    left = WIDTH - _INDENT - sum(width + _APART for width in widths)
    label = max(map(len, (line.heading for line in rows)))
    if left < min(label, _LEAST_LABEL):
        return render(shown)
    text = []
    for line in shown.lines:
        if line.cells:
            heads = textwrap.wrap(line.heading, min(label, left), subsequent_indent=" ")
            cells = [textwrap.wrap(cell, width) for cell, width in zip(line.cells, widths, strict=True)]
            for number in range(max(len(heads), *map(len, cells))):
                parts = [f"{_at(cell, number):>{width + _APART}}" for cell, width in zip(cells, widths, strict=True)]
                text.append(f"{'':{_INDENT}}{_at(heads, number):<{min(label, left)}}{''.join(parts)}".rstrip())
        else:
            text += ["", *textwrap.wrap(line.heading, WIDTH - _INDENT, initial_indent=" " * _INDENT)]
    text += ["", *(part for sentence in shown.below for part in textwrap.wrap(sentence, WIDTH))]
    return "\n".join(text).rstrip("\n")


def _at(parts: Sequence[str], number: int) -> str:
    return parts[number] if number < len(parts) else ""


def _parts(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """First column and the one behind the last of each table."""
    label = min(_LABEL, max(len(line.heading) for line in lines if line.cells))
    widths = _widths(lines)
    first, used = 0, label + _FRAME + 1
    for column, width in enumerate(widths):
        if column > first and used + width + _FRAME > WIDTH:
            yield first, column
            first, used = column, label + _FRAME + 1
        used += width + _FRAME
    yield first, len(widths)


def _widths(lines: Sequence[Line]) -> list[int]:
    return [
        min(_CELL, max(len(line.cells[column]) for line in lines if line.cells))
        for column in range(len(lines[0].cells))
    ]


def _framed(lines: Sequence[Line], first: int, last: int) -> Iterator[str]:
    """The first row is the heading, as in RFC 9693 section 6."""
    label = min(_LABEL, max(len(line.heading) for line in lines if line.cells))
    # What says nothing for these columns says something for others; every table has all rows.
    widths = [label, *_widths(lines)[first:last]]
    yield _rule(widths, "=")
    for number, line in enumerate(lines):
        if line.cells:
            yield from _broken((line.heading, *line.cells[first:last]), widths)
        else:
            yield from _broken((line.heading,), [sum(widths) + _FRAME * (len(widths) - 1)])
        yield _rule(widths, "=" if number == 0 else "-")


def _rule(widths: Sequence[int], stroke: str) -> str:
    return "+" + "+".join(stroke * (width + 2) for width in widths) + "+"


def _broken(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row in as many lines as its longest cell needs; labels to the left, cells to the right."""
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        label, *others = (
            f"{part:<{width}}" if column == 0 else f"{part:>{width}}"
            for column, (part, width) in enumerate(zip(parts, widths, strict=True))
        )
        yield "| " + " | ".join([label, *others]) + " |"
