# SPDX-License-Identifier: Apache-2.0
"""Refusals of the system, and faults that nobody foresaw, as errors for the user, in one line each."""

from __future__ import annotations

import errno
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from natgauge.errors import FaultError, HostError, NatgaugeError, UsageError

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
#: Characters of an unexpected exception's own words that are repeated in the line.
_MOST_WORDS: Final = 200


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
    return " ".join(str(error).split())[:_MOST_WORDS]


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
