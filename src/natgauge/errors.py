# SPDX-License-Identifier: Apache-2.0
"""Errors that are shown to the user, each with the exit status of the command line; names close to a wrong one.

A message is one line: what, where, which value, which rule, what to do. All changes are undone when one is raised.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from natgauge.plain_text import one_line

#: No message repeats more of a value than this many characters; paths and lists of names are shorter.
LONGEST_VALUE: Final = 200
#: A value in a message: quoted, or without a blank. A quoted command of natgauge is to be copied, so it stays whole.
_VALUE: Final = re.compile(
    rf"""(?<![^\s(\[=:,])(['"])(?!natgauge )(?:(?!\1).){{{LONGEST_VALUE},}}\1|\S{{{LONGEST_VALUE},}}""", re.DOTALL
)
_SHOWN: Final = 60


def shortened(message: str) -> str:
    """Return the message with overlong values cut; each cut value has its length behind it."""
    return _VALUE.sub(lambda match: f"{match[0][:_SHOWN]}... ({len(match[0])} characters)", message)


def shown(value: object) -> str:
    """A value of a file for a message, a boolean as TOML has it; a long list or table is cut, and its length named."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:_SHOWN]}... ({len(text)} characters)"


class EndedBySignal(BaseException):
    """A signal that asks us to end, raised so that everything made is undone on the way out.

    No KeyboardInterrupt: click would turn that into an exception of its own and lose the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class NatgaugeError(Exception):
    """Base of all errors that are shown to the user as one line.

    Attributes:
        exit_status: what `natgauge` exits with (2 usage, 3 host, 4 broke on the way).
        evidence: results folder with the trials before the error; None = there are none.
        begun: whether a campaign had begun, whose error is none of other campaigns.
        at: what is wrong or has failed, for programs: the name of an input such as "frame_size", the tester's port
            "initiator" or "responder", or a device's name; empty = no single one. Nobody has to read the message.
        another: name of an input whose other values the error does not hinder; empty = there is none.
    """

    exit_status = 4
    evidence: Path | None = None
    begun: bool = False
    another: str = ""

    def __init__(self, message: str, *, at: str = "") -> None:
        # Messages repeat words of users, files and programs, which may have line breaks or what a terminal obeys.
        super().__init__(one_line(shortened(message)))
        self.at = at


class UsageError(NatgaugeError):
    """The question is wrong: an unknown name, a value out of range, a contradiction."""

    exit_status = 2


class HostError(NatgaugeError):
    """This host cannot do it: a missing capability, package, kernel feature or resource.

    Attributes:
        mend: shell command that removes the cause; empty = none is known.
    """

    exit_status = 3

    def __init__(self, message: str, *, at: str = "", mend: str = "") -> None:
        super().__init__(message, at=at)
        self.mend = mend


class UnreachableError(HostError):
    """No frame can be sent: a port of the tester has no carrier, or the gateway behind it does not answer."""


class BrokenError(NatgaugeError):
    """The engine, the lab or the device failed during use."""


class NotEmptyError(BrokenError):
    """The device answers, but still has connections that it was requested to remove."""


class OverrunError(BrokenError):
    """This machine took the messages of a log more slowly than they came, and some were dropped."""


class FaultError(NatgaugeError):
    """An unexpected error: a fault of natgauge itself, not of the question, the host or the device. Made by `fault`."""


@contextmanager
def about(at: str) -> Iterator[None]:
    """Give each error from here its object, unless it has one already."""
    try:
        yield
    except NatgaugeError as error:
        error.at = error.at or at
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that are close to an unknown one, or else all of them, for the end of a message."""
    names = sorted(known)
    return _close(name, names) or f"there are {', '.join(names)}"


def listed_by(command: str, name: str, known: Iterable[str]) -> str:
    """The known names that are close to an unknown one, and the command that lists all, for the end of a message."""
    return f'{_close(name, sorted(known))} "{command}" lists them'.lstrip()


def _close(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else ""
