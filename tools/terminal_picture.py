# SPDX-License-Identifier: Apache-2.0
"""Draw what a command printed as a terminal: `python -m tools.terminal_picture demo.txt demo.svg "make demo"`.

The picture is SVG that loads no font, so it looks the same in a page without a network.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

#: Characters of a line; longer lines are wrapped, as a terminal of this width does.
_WIDTH: Final = 100
_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def picture(text: str, title: str) -> str:
    """Return the SVG of a terminal with this text and title."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO())
    for line in text.splitlines():
        # The first line of each result is its answer.
        answer = line[:1].isalpha()
        console.print(Text(line, style="bold" if answer else ""))
    return _FONTS.sub("", console.export_svg(title=title))


if __name__ == "__main__":
    source, target, name = sys.argv[1:]
    Path(target).write_text(picture(Path(source).read_text(), name))
