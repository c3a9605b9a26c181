# SPDX-License-Identifier: Apache-2.0
"""What is printed: text without anything that a terminal obeys, broken between words; or one JSON object.

Every command prints by these functions, so that no name or version of somebody else controls the user's terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from natgauge.plain_text import visible

if TYPE_CHECKING:
    from natgauge.finding import Finding
    from natgauge.reports.collected import StoredResults

#: Colours of the verdicts of audits, with their marks.
COLOURS: Final = {"✗ fails": "red", "? not seen": "yellow", "✓ meets": "green"}


def say(text: object = "", *, err: bool = False, nl: bool = True, colours: Mapping[str, str] | None = None) -> None:
    """Print a text; on a terminal whose user did not set NO_COLOR, each word of `colours` in its colour."""
    shown = visible(str(text))
    if colours and not os.environ.get("NO_COLOR"):
        for word, colour in colours.items():
            shown = shown.replace(word, click.style(word, fg=colour))
    click.echo(shown, err=err, nl=nl)


def document(of: Mapping[str, object]) -> None:
    """Print one JSON object on one line."""
    import json

    # JSON escapes all harmful characters.
    click.echo(json.dumps(of, allow_nan=False))


def json_object(kind: str, of: object) -> None:
    """Print what `--json` promises: one object on one line, with the name and the version of its schema."""
    from natgauge.records.store import plain

    document({"schema": f"natgauge-{kind}-1", **plain(of)})


def say_findings(of: Iterable[Finding]) -> None:
    """Print a line for each finding: state, place if any, name, and what was found with the remedy."""
    from natgauge.tables import aligned

    rows = [
        (
            finding.state,
            *(() if finding.at is None else (finding.at,)),
            finding.name,
            finding.what + (f"; mend: {finding.mend}" if finding.mend else ""),
        )
        for finding in of
    ]
    for line in aligned(rows):
        say(line)


def wrapped(text: str) -> str:
    """Return a text without lines that are wider than the terminal; unchanged where standard output is none."""
    from natgauge import tables

    return tables.wrapped(text, tables.columns()) if sys.stdout is not None and sys.stdout.isatty() else text


def say_copies(collected: StoredResults) -> None:
    """Print which results were left out because they are copies of others."""
    if collected.without_copies:
        say(f"natgauge: {collected.without_copies}", err=True)
