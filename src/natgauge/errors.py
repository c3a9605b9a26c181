# SPDX-License-Identifier: Apache-2.0
"""Errors that are shown to the user, each with the exit status of the command line.

A message is one line: what, where, which value, which rule, what to do. All changes are undone when one is raised.
"""

from __future__ import annotations

import difflib
import errno
import re
import threading
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Errors of a disk without room, or without room for this user.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
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
#: Errors of paths that can be none, and of file systems that fail.
_OF_PATHS: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
_OF_DISKS: Final = frozenset({errno.EIO, errno.ESTALE})
#: Characters of an unexpected exception's own words that are repeated in the line.
_MOST_WORDS: Final = 200
#: No message repeats more of a value than this many characters; paths and lists of names are shorter.
LONGEST_VALUE: Final = 200
#: A value in a message: quoted, or without a blank.
_VALUE: Final = re.compile(
    rf"""(?<![^\s(\[=:,])(['"])(?:(?!\1).){{{LONGEST_VALUE},}}\1|\S{{{LONGEST_VALUE},}}""", re.DOTALL
)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """An exit status of the command line.

    Attributes:
        number: the status.
        meaning: in a few words.
        commands: the commands that can end with it; empty = all.
    """

    number: int
    meaning: str
    commands: tuple[str, ...] = ()


#: Every exit status; the help, the man page and docs/compatibility.md are made of this table or tested against it.
EXIT_STATUSES: Final = (
    ExitStatus(0, "done, whatever the result"),
    ExitStatus(1, "a result is worse", ("diff",)),
    ExitStatus(1, "a setting could be better", ("host check",)),
    ExitStatus(2, "wrong arguments or a wrong plan"),
    ExitStatus(3, "this host cannot do it"),
    ExitStatus(4, "engine, lab or device failed"),
    ExitStatus(5, "a result cannot be compared or decided", ("diff",)),
    ExitStatus(10, "a gateway costs more than --fail-above", ("compare",)),
    ExitStatus(11, "undecided after --most-seconds", ("compare",)),
    ExitStatus(12, "a gateway fails a requirement of --fail-on", ("audit",)),
    ExitStatus(129, "ended by SIGHUP; everything is undone"),
    ExitStatus(130, "ended by Ctrl-C; everything is undone"),
    ExitStatus(143, "ended by SIGTERM; everything is undone"),
)


def shortened(message: str) -> str:
    """Return the message with overlong values cut; each cut value has its length behind it."""
    return _VALUE.sub(lambda match: f"{match[0][:_SHOWN]}... ({len(match[0])} characters)", message)


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
    """

    exit_status = 4
    evidence: Path | None = None

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


class UsageError(NatgaugeError):
    """The question is wrong: an unknown name, a value out of range, a contradiction."""

    exit_status = 2


class HostError(NatgaugeError):
    """This host cannot do it: a missing capability, package, kernel feature or resource.

    Attributes:
        mend: shell command that removes the cause; empty = none is known.
    """

    exit_status = 3

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.mend = mend


class UnreachableError(HostError):
    """No frame can be sent: a port of the tester has no carrier, or the gateway behind it does not answer."""


class BrokenError(NatgaugeError):
    """The engine, the lab or the device failed during use."""

    exit_status = 4


class NotEmptyError(BrokenError):
    """The device answers, but still has connections that it was requested to remove."""


class FaultError(NatgaugeError):
    """An unexpected error: a fault of natgauge itself, not of the question, the host or the device. Made by `fault`."""

    exit_status = 4


def unwritable(path: Path, error: OSError, *, what: str, remedy: str) -> NatgaugeError:
    """Return the error of a path that cannot be written: of the host if its disk is full, else of the request.

    Args:
        path: the file or folder.
        error: the system's error.
        what: what was to be written there, in a word.
        remedy: what to do unless the disk is full.
    """
    if error.errno in _FULL:
        return HostError(f"{what}: cannot write {path}: {error.strerror}; make room, then try again")
    return UsageError(f"{what}: cannot write {path}: {error.strerror}; {remedy}")


def remedy_of(error: OSError) -> str:
    """Return what to do about a refusal of the system, after a semicolon; empty where nothing general helps."""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"; {remedy}" if remedy else ""


def of_host(error: BaseException, doing: str = "") -> HostError | None:
    """Return the error for an exception by which the system refused this process a resource or a privilege.

    Args:
        error: the exception.
        doing: what was being done, for the message.

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
    return " ".join(str(error).split())[:_MOST_WORDS]


def fault(error: Exception, places: Iterable[Path]) -> NatgaugeError:
    """Return a one-line error for an unexpected exception; write its traceback to the first writable place.

    A full disk is no fault of natgauge, wherever it shows, nor is a path that cannot be used, nor another refusal of
    the system: such errors have no traceback.

    Args:
        error: the unexpected exception.
        places: files that may hold the traceback, the best one first.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
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
