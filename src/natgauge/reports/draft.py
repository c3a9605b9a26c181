# SPDX-License-Identifier: Apache-2.0
"""The table in the form of Internet-Drafts: plain text, at most 72 characters per line (RFC 7994 section 4.3).

Columns that do not fit into one table follow in further tables, each with the row labels.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from natgauge.reports.sheet import Sheet, SheetRow

WIDTH: Final = 72
#: Greatest width of labels and cells; longer texts are broken into several lines.
_LABEL: Final = 24
_CELL: Final = 20
#: A last column with wider cells contains sentences, which get the rest of the line where there are no frames.
_SENTENCE: Final = 2 * _CELL
#: The text of a draft is indented; columns have gaps; narrower labels would be hard to read.
_INDENT: Final = 3
_APART: Final = 2
_LEAST_LABEL: Final = 14
#: A blank at which no line is broken.
_JOINED: Final = "\N{NO-BREAK SPACE}"
#: What the frame adds to each column: "| " and " ", and once the last "|".
_FRAME: Final = 3


def render(shown: Sheet) -> str:
    """Return framed tables of a sheet, each at most `WIDTH` characters wide."""
    label = min(_LABEL, _label(shown))
    parts = _parts(_widths(shown.lines), WIDTH - label - _FRAME - 1, _FRAME)
    return _pieces(shown, parts, lambda first, last: _framed(shown.lines, first, last, label))


def plain(shown: Sheet, width: int = WIDTH, indent: int = _INDENT) -> str:
    """Return tables of a sheet without frames, so that more columns fit.

    Args:
        width: most characters of a line, at least 50.
    """
    natural = _widths(shown.lines, most=width)
    widths = [min(_CELL, each) for each in natural]
    label = _label(shown)
    room = width - indent - sum(column + _APART for column in widths)
    if room >= min(label, _LEAST_LABEL):
        label = min(label, room)
        parts = [(0, len(widths))]
        if natural[-1] > _SENTENCE:
            widths[-1] = min(natural[-1], widths[-1] + room - label)
    else:
        label = min(label, width // 3)
        parts = _parts(widths, width - indent - label, _APART)
    return _pieces(
        shown, parts, lambda first, last: _unframed(shown.lines, slice(first, last), [label, *widths], indent), width
    )


def with_words(lines: Sequence[SheetRow], width: int) -> list[str]:
    """Return a table without frames whose last column, of words, gets the rest of the line; none where it has no room.

    Figures are broken before a parenthesis alone.
    """
    head, *rest = lines
    joined = [head, *(replace(line, cells=(*map(_whole, line.cells[:-1]), *line.cells[-1:])) for line in rest)]
    rows = [line.cells[:-1] for line in joined if line.cells]
    widths = [max(len(part) for cell in cells for part in cell.split(" ")) for cells in zip(*rows, strict=True)]
    label = max(len(line.heading) for line in lines if line.cells)
    room = width - label - sum(widths) - _APART * (len(widths) + 1)
    if room < _CELL:
        return []
    found = _unframed(joined, slice(None), [label, *widths, room], 0, left=(0, len(widths) + 1))
    return [line.replace(_JOINED, " ") for line in found]


def _whole(cell: str) -> str:
    return " (".join(part.replace(" ", _JOINED) for part in cell.split(" ("))


def _pieces(
    shown: Sheet, parts: Sequence[tuple[int, int]], piece: Callable[[int, int], Iterator[str]], width: int = WIDTH
) -> str:
    """Return a table for each part, with its column numbers where there are several, then the sentences below."""
    text: list[str] = []
    for first, last in parts:
        if len(parts) > 1:
            columns = f"Column {first + 1}" if last == first + 1 else f"Columns {first + 1} to {last}"
            text.append(f"{columns} of {shown.columns}:")
        text += [*piece(first, last), ""]
    for sentence in shown.below:
        text += textwrap.wrap(sentence, width)
    return "\n".join(text).rstrip("\n")


def _unframed(
    lines: Sequence[SheetRow], part: slice, widths: Sequence[int], indent: int, left: Collection[int] = ()
) -> Iterator[str]:
    label, *cells = widths
    own = [label, *cells[part]]
    left = left or {column for column, width in enumerate(own) if column == 0 or width > _CELL}
    for line in lines:
        if not line.cells:
            yield ""
            yield from textwrap.wrap(line.heading, sum(own) + _APART * len(own), initial_indent=" " * indent)
            continue
        heads = textwrap.wrap(line.heading, label, subsequent_indent=" ")
        wrapped = [textwrap.wrap(cell, width) for cell, width in zip(line.cells[part], own[1:], strict=True)]
        for texts in _padded([heads, *wrapped], own, left):
            yield f"{'':{indent}}{(' ' * _APART).join(texts)}".rstrip()


def _padded(cells: Sequence[Sequence[str]], widths: Sequence[int], left: Collection[int] = (0,)) -> Iterator[list[str]]:
    """Yield the texts of each line of a row, padded to the widths; `left`: columns that are aligned to the left."""
    for texts in zip_longest(*cells, fillvalue=""):
        yield [
            f"{text:{'<' if column in left else '>'}{width}}"
            for column, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]


def _label(shown: Sheet) -> int:
    return max(len(line.heading) for line in shown.lines if line.cells)


def _parts(widths: Sequence[int], room: int, apart: int) -> list[tuple[int, int]]:
    """Return the first column and the one after the last of each table; `room` for columns next to the labels."""
    parts, first, used = [], 0, 0
    for column, width in enumerate(widths):
        if column > first and used + width + apart > room:
            parts.append((first, column))
            first, used = column, 0
        used += width + apart
    return [*parts, (first, len(widths))]


def _widths(lines: Sequence[SheetRow], most: int = _CELL) -> list[int]:
    rows = [line.cells for line in lines if line.cells]
    return [min(most, max(len(cells[column]) for cells in rows)) for column in range(len(rows[0]))]


def _framed(lines: Sequence[SheetRow], first: int, last: int, label: int) -> Iterator[str]:
    """The first row is the heading, as in RFC 9693 section 6."""
    # A row that is empty for these columns is not empty for others; every table has all rows.
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
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    return ("| " + " | ".join(texts) + " |" for texts in _padded(cells, widths))
