# SPDX-License-Identifier: Apache-2.0
"""The table in markup languages: LaTeX for papers, which needs no package, and Markdown with GitHub's tables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Final

from natgauge.plain_text import one_line
from natgauge.reports.graded_doubts import read_in
from natgauge.reports.sheet import Sheet

#: Characters of a label, as far as they come from a title.
_LONGEST: Final = 60
_LABEL: Final = re.compile(r"\\label\{(.*?)\}")
_SPECIAL: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    # In some fonts this is a dash.
    "|": r"\textbar{}",
    # Two hyphens would be a dash.
    "-": "-{}",
    # Signs of natgauge itself, which some of LaTeX's engines or fonts lack.
    "†": r"\textdagger{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def render_latex(shown: Sheet, title: str = "", measured: str = "", label: str = "") -> str:
    """Return a sheet as LaTeX: with a title a table that floats, with its caption and a label, else what is in it.

    `title` has no full stop; `measured`: further sentences of the caption, which also says how cells are read; `label`
    is in words, and otherwise the title.
    """
    head, *rest = shown.lines
    lines = [
        r"\begin{tabular}{l" + "r" * shown.columns + "}",
        r"\hline",
        _line([head.heading, *head.cells]),
        r"\hline",
        *(
            _line([f"{line.heading} ({line.unit})" if line.unit else line.heading, *line.cells])
            if line.cells
            else rf"\hline \multicolumn{{{shown.columns + 1}}}{{l}}{{{plain(line.heading)}}} \\"
            for line in rest
        ),
        r"\hline",
        r"\end{tabular}",
    ]
    doubts = shown.doubts if shown.in_paper is None else shown.in_paper
    lines += [rf"\par{{\footnotesize {plain(note)}\par}}" for note in (*doubts, *shown.notes)]
    lines += [f"% {plain(sentence)}" for sentence in shown.for_text]
    if title:
        cells = [cell for line in shown.lines for cell in line.cells]
        sentences = (f"{title.removesuffix('.')}.", measured, shown.ranges, read_in(cells))
        caption = plain(" ".join(filter(None, sentences)))
        words = re.sub(r"[^a-z0-9]+", "-", (label or title).lower())[:_LONGEST].strip("-")
        above = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{words}}}"]
        lines = [*above, *lines, r"\end{table}"]
    return "\n".join(lines)


def document(tables: Sequence[str]) -> str:
    """Return tables of one document; a label that an earlier one has gets a number, because LaTeX refers to one."""
    taken: set[str] = set()

    def own(found: re.Match[str]) -> str:
        words = found[1]
        ways = itertools.chain([words], (f"{words}-{number}" for number in itertools.count(2)))
        taken.add(label := next(way for way in ways if way not in taken))
        return rf"\label{{{label}}}"

    return _LABEL.sub(own, "\n\n".join(tables))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(plain, cells)) + r" \\"


def plain(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    escapes = re.sub(r"-(?=-)|[\\~^<>|&%$#_{}†±≈]", lambda match: _SPECIAL[match[0]], one_line(text))
    # After the end of a row LaTeX takes these for arguments.
    return f"{{}}{escapes}" if escapes.lstrip()[:1] in ("[", "*") else escapes


#: A comment, which is not shown, between two characters of what would be linked otherwise.
_NOTHING: Final = "<!-- -->"
#: Beginnings of mentions and mail addresses, of addresses with a scheme, and of those without one; on GitHub also of
#: issues and of hashes of commits, of which seven digits are enough.
_LINKED: Final = re.compile(
    r"@(?=\w)|(?<=\w):(?=//)|\b(?:mailto|xmpp):|\bwww(?=\.)|\bGH(?=-\d)|\b[0-9a-f]{6}(?=[0-9a-f]{34}\b)", re.IGNORECASE
)


def render_markdown(shown: Sheet) -> str:
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
    return "\n".join([*listed, *([""] if listed else []), render_markdown(shown)])


def row(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table, with the cells escaped."""
    return "| " + " | ".join(map(escaped, cells)) + " |"


def escaped(text: str) -> str:
    """Escape a text's Markdown characters, and join its lines; it mentions nobody and links nowhere."""
    escapes = re.sub(r"([\\`*_\[\]<>|#~$]|&(?=[#\w]))", r"\\\1", " ".join(one_line(text).split()))
    return _LINKED.sub(lambda match: f"{match[0]}{_NOTHING}", escapes)
