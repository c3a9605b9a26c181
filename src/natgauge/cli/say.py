# SPDX-License-Identifier: Apache-2.0
"""What a command gives back: text, or one JSON object, and an exit status; and the end of its help, which lists both.

Text is printed without anything that a terminal obeys, broken between words. Every command prints by these functions,
so that no name or version of somebody else controls the user's terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from natgauge import tables
from natgauge.plain_text import visible

if TYPE_CHECKING:
    from natgauge.finding import Finding
    from natgauge.records.measurement import Result, ThresholdVerdict
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
    rows = [
        (
            finding.state,
            *(() if finding.at is None else (finding.at,)),
            finding.name,
            finding.what + (f"; mend: {finding.mend}" if finding.mend else ""),
        )
        for finding in of
    ]
    for line in tables.aligned(rows):
        say(line)


def wrapped(text: str) -> str:
    """Return a text without lines that are wider than the terminal; unchanged where standard output is none."""
    return tables.wrapped(text, tables.columns()) if sys.stdout is not None and sys.stdout.isatty() else text


def say_copies(collected: StoredResults) -> None:
    """Print which results were left out because they are copies of others."""
    if collected.without_copies:
        say(f"natgauge: {collected.without_copies}", err=True)


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """An exit status of the command line."""

    number: int
    meaning: str
    commands: tuple[str, ...] = ()


#: Every exit status; the help, the man page and docs/compatibility.md are made of this table or tested against it.
EXIT_STATUSES: Final = (
    ExitStatus(0, "done, whatever the result"),
    ExitStatus(1, "a result is worse", ("diff",)),
    ExitStatus(1, "a gateway does not carry the subscribers", ("size",)),
    ExitStatus(1, "a setting could be better", ("host check",)),
    ExitStatus(2, "wrong arguments or a wrong plan"),
    ExitStatus(3, "this host cannot do it"),
    ExitStatus(4, "engine, lab or device failed"),
    ExitStatus(5, "a result cannot be compared or decided", ("audit", "diff", "size", "measure", "run")),
    ExitStatus(10, "a gateway costs more than --fail-above", ("compare",)),
    ExitStatus(11, "undecided after --most-seconds, or in doubt", ("compare",)),
    ExitStatus(12, "a gateway fails a requirement of --fail-on", ("audit",)),
    ExitStatus(13, "a result does not meet --at-least or --at-most", ("measure", "run")),
    ExitStatus(129, "ended by SIGHUP; labs are undone"),
    ExitStatus(130, "ended by Ctrl-C; labs are undone"),
    ExitStatus(141, "nobody reads the output; labs are undone"),
    ExitStatus(143, "ended by SIGTERM; labs are undone"),
)

#: Exit status of each verdict on a threshold, the worst first.
_OF_THRESHOLDS: Final[dict[ThresholdVerdict, int]] = {"not met": 13, "cannot tell": 5, "met": 0}


def status_of(results: Iterable[Result]) -> int:
    """Return the exit status by the thresholds of results: that of the worst verdict."""
    verdicts = {result.threshold.verdict for result in results if result.threshold is not None}
    return next((status for verdict, status in _OF_THRESHOLDS.items() if verdict in verdicts), 0)


def epilog(command: str, *examples: str) -> str:
    """The examples, and a line for each exit status: the general ones, and those of the command."""
    # After a line with "\b" alone, click leaves the lines as they are.
    shown = [f"  {each}" for each in examples]
    heading = "Example:" if len(examples) == 1 else "Examples:"
    own = (status for status in EXIT_STATUSES if not status.commands or command in status.commands)
    numbers = [f"  {status.number:<4} {status.meaning}" for status in own]
    return "\n".join([*(["\b", heading, *shown, ""] if shown else []), "\b", "Exit status:", *numbers])
