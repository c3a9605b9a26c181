# SPDX-License-Identifier: Apache-2.0
"""The exit statuses of the command line, and the end of a command's help: examples and exit statuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from natgauge.records.measurement import Result, ThresholdVerdict


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
