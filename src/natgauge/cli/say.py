# SPDX-License-Identifier: Apache-2.0
"""What goes to standard output: sentences, broken between words on a terminal; or one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click


def json_object(kind: str, document: Mapping[str, object]) -> None:
    """Print what `--json` promises: one object on one line, with the name and the version of its schema."""
    import json

    click.echo(json.dumps({"schema": f"natgauge-{kind}-1", **document}, allow_nan=False))


def wrapped(text: str) -> str:
    """Return a text without lines that are wider than the terminal; unchanged where standard output is none."""
    from natgauge import tables

    return tables.wrapped(text, tables.columns()) if sys.stdout.isatty() else text
