# SPDX-License-Identifier: Apache-2.0
"""Files that somebody else may have made: read with limits, and without waiting; refused in one line otherwise.

A path of a user, of a pull request or of a results folder may lead to a pipe, a device, a file of the kernel, or more
octets than memory has. Everything that reads such a path calls this module.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from natgauge.errors import UsageError

#: Size of a unit in messages, octets.
_MIB: Final = 1 << 20
#: Folders whose files the kernel makes when they are read: some have no end, and some wait for ever.
_OF_KERNEL: Final = ("/proc/", "/sys/")
#: Errors that say that a path leads to nothing.
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
#: Octets that are read at once.
_STEP: Final = 1 << 20
#: What a path may lead to that is no regular file.
_KINDS: Final = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)
#: U+FEFF, with which some editors begin a file of UTF-8.
_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file with its limits.

    Attributes:
        what: first word of an error; empty = the path is the first.
        line_octets: the most octets of one of its lines, where it is read line by line.
    """

    what: str
    remedy: str
    octets: int
    line_octets: int = 64 * _MIB


#: A file that people write.
PLAN: Final = FileKind("plan", "name a plan's file", _MIB)
RECIPE: Final = FileKind("", "name a recipe's file", _MIB)
#: One document of a results folder, and a file with a line for each trial or event.
DOCUMENT: Final = FileKind("results", "name another folder, or measure again", 64 * _MIB)
LINES: Final = FileKind("results", "name another folder, or measure again", 4096 * _MIB)
#: Tables that come with natgauge.
TABLE: Final = FileKind("published", "install natgauge again", 4 * _MIB)
#: What natgauge remembers between two runs.
MEMORY: Final = FileKind("cache", "remove it", 64 * _MIB)


def kind_of(mode: int) -> str:
    """Return in words what is no regular file, by the mode that `stat` has of it."""
    return next((word for is_of, word in _KINDS if is_of(mode)), "no regular file")


def is_there(path: Path) -> bool:
    """Whether something has this path, also what reading then refuses: a pipe, a device, a link that leads nowhere."""
    try:
        path.lstat()
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    except ValueError:
        # No path has the character NUL, or half of a surrogate pair.
        return False
    return True


def read_octets(path: Path, kind: FileKind) -> bytes:
    """Read a whole file.

    No more octets than its size says: some files of the kernel say 0, and wait for ever when they are read.
    """
    parts: list[bytes] = []
    with open_file(path, kind) as file:
        left = os.fstat(file.fileno()).st_size
        try:
            while left > 0 and (part := file.read(min(left, _STEP))):
                parts.append(part)
                left -= len(part)
        except OSError as error:
            raise _unreadable(path, kind, error.strerror or str(error)) from error
    return b"".join(parts)


def read_text(path: Path, kind: FileKind) -> str:
    """Read a whole file as UTF-8; a byte order mark at its beginning is left out."""
    return _decoded(read_octets(path, kind).removeprefix(_MARK), str(path), kind)


def read_lines(path: Path, kind: FileKind, *, whole: bool = False) -> Iterator[str]:
    """Yield the whole lines of a file, without their line feeds; what follows the last line feed is left out.

    Lines that are added while it is read are left out, too. No more than one line is in memory.

    Args:
        whole: whether octets after the last line feed are refused, for a file that nobody writes any more.
    """
    with open_file(path, kind) as file:
        left = os.fstat(file.fileno()).st_size
        number = 0
        while left > 0:
            try:
                line = file.readline(min(left, kind.line_octets + 1))
            except OSError as error:
                raise _unreadable(path, kind, error.strerror or str(error)) from error
            left -= len(line)
            number += 1
            if not line.endswith(b"\n"):
                if len(line) > kind.line_octets:
                    raise _unreadable(
                        path, kind, f"line {number} has more than {kind.line_octets // _MIB} MiB, the most of a line"
                    )
                if whole:
                    raise _unreadable(path, kind, f"line {number} is cut off: it has no line feed")
                return
            yield _decoded(line[:-1].removeprefix(_MARK if number == 1 else b""), f"{path}:{number}", kind)


def open_file(path: Path, kind: FileKind) -> BinaryIO:
    """Open a regular file for reading, without waiting for anything."""
    try:
        # Opening some devices has effects, so the path is looked at first; it may have changed until it is open.
        _refuse(path, path.stat(), kind)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _unreadable(path, kind, getattr(error, "strerror", None) or str(error)) from error
    try:
        _refuse(path, os.fstat(handle), kind)
        _refuse_of_kernel(path, handle, kind)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _refuse(path: Path, found: os.stat_result, kind: FileKind) -> None:
    """Refuse what is no regular file, and a file that is too large."""
    if not stat.S_ISREG(found.st_mode):
        raise _unreadable(path, kind, f"it is {kind_of(found.st_mode)}{_link(path)}; only regular files are read")
    if found.st_size > kind.octets:
        size = f"it has {found.st_size / _MIB:,.0f} MiB{_link(path)}; the most is {kind.octets // _MIB:,} MiB"
        raise _unreadable(path, kind, size)


def _refuse_of_kernel(path: Path, handle: int, kind: FileKind) -> None:
    """Refuse files of procfs and sysfs, whatever name led to them."""
    try:
        place = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - a path takes longer than all other looks
    except OSError:
        # Without /proc there are no such files either; elsewhere their size, which is 0, limits what is read of them.
        return
    if place.startswith(_OF_KERNEL):
        raise _unreadable(path, kind, f"it is a file of the kernel{_link(path)}; only files of a disk are read")


def _link(path: Path) -> str:
    try:
        return f", by a symbolic link to {path.readlink()}"
    except OSError:
        return ""


def _unreadable(path: Path, kind: FileKind, why: str) -> UsageError:
    return UsageError(f"{_head(kind)}{path}: cannot be read ({why}); {kind.remedy}")


def _head(kind: FileKind) -> str:
    return f"{kind.what}: " if kind.what else ""


def _decoded(octets: bytes, where: str, kind: FileKind) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{_head(kind)}{where}: is not UTF-8 text (octet {error.start + 1} is 0x{octets[error.start]:02x}); "
            f"{kind.remedy}"
        ) from None
