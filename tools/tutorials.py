# SPDX-License-Identifier: Apache-2.0
"""What the tutorials tell a reader to do: files to save and commands to type, one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PAGES: Final = sorted((Path(__file__).parents[1] / "docs").glob("tutorial-*.md"))
#: Programs in the blocks of a tutorial; blocks of other languages are read only, or saved.
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED: Final = re.compile(r"[Ss]ave (?:it|this|this plan)(?:, .*?,)? as `([\w.-]+)`")


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file that a reader saves, and each command with an empty name."""
    text, before = page.read_text(), 0
    for block in _FENCE.finditer(text):
        if block[1] == "sh":
            yield from (("", line) for line in block[2].splitlines())
        else:
            (name,) = _SAVED.findall(text[before : block.start()])
            yield name, block[2]
        before = block.end()


def typed(command: str, folder: Path) -> tuple[list[str], str | None]:
    """Return the words of a command as a shell passes them in this folder, and the file for what it prints, if any.

    Names of files are in place of their pattern.
    """
    words: list[str] = []
    for word in shlex.split(command):
        found = sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else []
        words += found or [word]
    return (words[:-2], words[-1]) if ">" in words else (words, None)
