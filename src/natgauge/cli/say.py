# SPDX-License-Identifier: Apache-2.0
"""Sentences for standard output: on a terminal broken between words; elsewhere each sentence is one line."""

from __future__ import annotations

import sys


def wrapped(text: str) -> str:
    """Return a text without lines that are wider than the terminal; unchanged where standard output is none."""
    from natgauge import tables

    return tables.wrapped(text, tables.columns()) if sys.stdout.isatty() else text
