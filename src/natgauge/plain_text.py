# SPDX-License-Identifier: Apache-2.0
"""Text of strangers made harmless: what a terminal, a page or a table would obey is shown instead of done.

Names, versions and reasons come from files and devices of others. A terminal obeys control characters in them, and
bidirectional overrides show another text than there is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: Everything but printable ASCII, line feeds and tabs; most text has none of it, so it is found at once.
_SUSPICIOUS: Final = re.compile(r"[^\n\t -~]")
#: Control characters, invisible formats such as U+202E, lone surrogates, and separators of lines and paragraphs.
_HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Formats that belong to words: of scripts that join letters, and the soft hyphen.
_OF_WORDS: Final = frozenset("\u200c\u200d\u00ad")
_BREAKS: Final = re.compile(r"[\r\n\t]+")


def visible(text: str) -> str:
    r"""Return the text with each harmful character written out, such as `\x1b`; line feeds and tabs stay."""
    return _SUSPICIOUS.sub(_written_out, text)


def one_line(text: str) -> str:
    """Return the text as `visible` does, and as one line: each line break or tab is a blank."""
    return visible(_BREAKS.sub(" ", text))


def capital(text: str) -> str:
    """Return the text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def _written_out(match: re.Match[str]) -> str:
    character = match[0]
    if character in _OF_WORDS or unicodedata.category(character) not in _HARMFUL:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
