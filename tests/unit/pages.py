# SPDX-License-Identifier: Apache-2.0
"""What a reader of a page sees."""

from __future__ import annotations

import html
import re


def unmarked(page: str) -> str:
    """A page without the marks of names that lines do not break."""
    return re.sub(r'<span class="name">([^<]*)</span>', r"\1", page)


def lines_of(page: str) -> list[str]:
    """Text of a page without its drawings, a line for each paragraph, row or heading."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", unmarked(page), flags=re.DOTALL)
    rows = re.split(r"</?(?:p|tr|h\d|li|summary|figcaption|caption|pre|div)\b[^>]*>", body)
    plain = (" ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in rows)
    return [row for row in plain if row]


def words_of(part: str) -> str:
    """Text of a part of a page, in one line."""
    return " ".join(lines_of(part))


def tables_of(page: str, name: str) -> list[list[list[str]]]:
    """The tables of this name: their rows of cells, which may have marks and links."""
    every = re.findall(r'<div class="scroll[^>]* aria-label="([^"]*)">\s*<table[^>]*>(.*?)</table>', page, re.DOTALL)
    return [
        [
            re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall("<tr>.*?</tr>", table, re.DOTALL)
        ]
        for label, table in every
        if html.unescape(label) == name
    ]
