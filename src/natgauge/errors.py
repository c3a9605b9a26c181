# SPDX-License-Identifier: Apache-2.0
"""Errors that are shown to the user, each with the exit status of the command line; names close to a wrong one.

A message is one line: what, where, which value, which rule, what to do. All changes are undone when one is raised.
Refusals of the system, and faults that nobody foresaw, are made errors of this kind.
"""

from __future__ import annotations

import difflib
import errno
import re
import threading
import traceback
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
    """Return the message with overlong values cut, each with its length behind it; of a long rest, both ends."""
    text = _VALUE.sub(lambda match: f"{match[0][:_SHOWN]}... ({len(match[0])} characters)", message)
    ends = text[: 8 * LONGEST_VALUE], text[-LONGEST_VALUE:]
    return text if len(text) <= 10 * LONGEST_VALUE else f" ... ({len(text):,} characters) ... ".join(ends)


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
        super().__init__(shortened(one_line(message)))
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


#: Errors of a disk without room, or without room for this user.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What to do where the system refuses something to this process for want of a resource or a privilege.
_REMEDIES: Final = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENFILE: "raise the machine's limit of open files: sysctl fs.file-max",
    errno.EAGAIN: "raise the limit of processes: ulimit -u, or pids.max of the control group (docker: --pids-limit)",
    errno.ENOMEM: "end other programs, or raise the memory limit of the control group (docker: --memory)",
    errno.EROFS: "mount it writable; in a container, run natgauge with --privileged",
    errno.EPERM: '"natgauge doctor" shows what this process lacks',
    errno.EACCES: '"natgauge doctor" shows what this process lacks',
    errno.ENOSPC: "make room, then try again",
    errno.EDQUOT: "make room, then try again",
}


def unwritable(path: Path, error: OSError, *, what: str, remedy: str) -> NatgaugeError:
    """Return the error of a path that cannot be written: of the host if its disk is full, else of the request."""
    if error.errno in FULL:
        return HostError(f"{what}: cannot write {path}: {error.strerror}; make room, then try again")
    return UsageError(f"{what}: cannot write {path}: {error.strerror}; {remedy}")


def remedy_of(error: OSError) -> str:
    """Return what to do about a refusal of the system, after a semicolon; empty where nothing general helps."""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"; {remedy}" if remedy else ""


def of_host(error: BaseException, doing: str = "") -> HostError | None:
    """Return the error for an exception by which the system refused this process a resource or a privilege.

    Returns:
        The error in one line; None = the system refused nothing.
    """
    begin = f"{doing}: " if doing else ""
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        where = f"{error.filename}: " if error.filename else ""
        return HostError(f"{begin}{where}{error.strerror}{remedy_of(error)}")
    if isinstance(error, MemoryError):
        return HostError(f"{begin}no memory; {_REMEDIES[errno.ENOMEM]}")
    # Python raises this for every thread that the system refuses, and for faults of programs as well.
    if isinstance(error, RuntimeError) and not can_start_threads(1):
        return HostError(f"{begin}no process or thread can be made; {_REMEDIES[errno.EAGAIN]}")
    return None


def can_start_threads(count: int) -> bool:
    """Whether this process may have `count` more threads at once."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, daemon=True) for _ in range(count)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True


def in_a_line(error: Exception | str) -> str:
    """The first words of what was said, without its line breaks."""
    return " ".join(str(error).split())[:LONGEST_VALUE]


#: Errors of paths that can be none, and of file systems that fail.
_OF_PATHS: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
_OF_DISKS: Final = frozenset({errno.EIO, errno.ESTALE})


def fault(error: Exception, places: Iterable[Path]) -> NatgaugeError:
    """Return a one-line error for an unexpected exception; write its traceback to the first writable place.

    A full disk is no fault of natgauge, wherever it shows, nor is a path that cannot be used, nor another refusal of
    the system: such errors have no traceback.
    """
    if isinstance(error, OSError) and error.errno in FULL:
        where = error.filename or "standard output or a temporary file"
        return HostError(f"{where}: cannot be written: {error.strerror}; make room, then try again")
    if (refused := of_host(error)) is not None:
        return refused
    if isinstance(error, OSError) and error.filename is not None and error.errno in (_OF_PATHS | _OF_DISKS):
        kind = UsageError if error.errno in _OF_PATHS else HostError
        where = error.filename if isinstance(error.filename, str) else repr(error.filename)
        return kind(f"{where}: cannot be used: {error.strerror}; name another path, or see that it may be used")
    line = f"a fault of natgauge, not of your question: {type(error).__name__}: {in_a_line(error)}; "
    text = "".join(traceback.format_exception(error))
    for place in places:
        try:
            # The name can be guessed, and the folder may be everybody's: a link that waits there is not followed.
            place.unlink(missing_ok=True)
            with place.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return FaultError(f"{line}please report it with its traceback: {place}")
    return FaultError(f"{line}please report it; its traceback could be written nowhere")
