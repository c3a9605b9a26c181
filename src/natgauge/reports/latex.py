# SPDX-License-Identifier: Apache-2.0
"""The table as LaTeX for papers; it needs no LaTeX package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from natgauge.plain_text import one_line
from natgauge.reports.sheet import Sheet

_SPECIAL: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def render(shown: Sheet) -> str:
    """Return a sheet as LaTeX."""
    head, *rest = shown.lines
    lines = [
        r"\begin{tabular}{l" + "r" * shown.columns + "}",
        r"\hline",
        _line([head.heading, *head.cells]),
        r"\hline",
        *(
            _line([line.heading, *line.cells])
            if line.cells
            else rf"\hline \multicolumn{{{shown.columns + 1}}}{{l}}{{{plain(line.heading)}}} \\"
            for line in rest
        ),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join([*lines, *(rf"\par{{\footnotesize {plain(note)}\par}}" for note in shown.below)])


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(plain, cells)) + r" \\"


def plain(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    escapes = re.sub(r"[\\~^<>&%$#_{}]", lambda match: _SPECIAL[match[0]], one_line(text))
    # After the end of a row LaTeX takes these for arguments.
    return f"{{}}{escapes}" if escapes.lstrip()[:1] in ("[", "*") else escapes
