# SPDX-License-Identifier: Apache-2.0
"""The end of a command's help: examples, and the exit statuses that it can end with."""

from __future__ import annotations

from natgauge.cli.exit_statuses import EXIT_STATUSES, ExitStatus


def statuses_of(command: str) -> list[ExitStatus]:
    """The exit statuses of a command; the general ones where it has none of its own."""
    return [status for status in EXIT_STATUSES if not status.commands or command in status.commands]


def epilog(command: str, *examples: str) -> str:
    """The examples, and a line for each exit status."""
    # After a line with "\b" alone, click leaves the lines as they are.
    shown = [f"  {each}" for each in examples]
    heading = "Example:" if len(examples) == 1 else "Examples:"
    numbers = [f"  {status.number:<4} {status.meaning}" for status in statuses_of(command)]
    return "\n".join([*(["\b", heading, *shown, ""] if shown else []), "\b", "Exit status:", *numbers])
