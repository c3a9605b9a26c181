# SPDX-License-Identifier: Apache-2.0
"""Files as natgauge writes and reads them: replaced whole or not at all, and with care where somebody else named them.

Files that somebody else may have made are read with limits, and without waiting; they are refused in one line
otherwise. A path of a user, of a pull request or of a results folder may lead to a pipe, a device, a file of the
kernel, or more octets than memory has. Everything that reads such a path calls this module.

Files that a user names for output are new ones, regular ones, and the process's own streams. A device takes what is
written and keeps nothing, a pipe without a reader waits for ever. So what is not a file is refused, but for the streams
that this process was started with: `-`, `/dev/stdout`, and a shell's `>(...)`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from natgauge.errors import UsageError, unwritable


def in_memory() -> BinaryIO:
    """Return an open file without a name, in memory, for the input of a command."""
    return os.fdopen(os.memfd_create("natgauge"), "w+b")


def _octets_of(content: str | bytes) -> bytes:
    """Return what is stored of a content: of a text its UTF-8, with lone surrogates as escapes."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def replace(path: Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Give a file new content; a kill or a crash at any moment leaves the old content or the new one.

    Lone surrogates, which UTF-8 does not have, are written out as escapes.
    """
    # Two processes may write the same file at once, so each has a partial file of its own.
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with _new(partial, mode) as file:
            file.write(_octets_of(content))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody but its owner can read at any moment, in place of any that is there."""
    with _new(path, 0o600) as file:
        file.write(content)


def _new(path: Path, mode: int) -> BinaryIO:
    """Open a new file in place of any that is there; a link of another user with that name leads nowhere."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")


def whole_name(name: str) -> str:
    """Return the name of the file that a partial file, which a killed process left, was to be; empty = it is none."""
    found = re.fullmatch(r"(.+)\.[0-9]+\.new", name)
    return found[1] if found else ""


def remove(path: Path) -> None:
    """Remove a file and its partial files left by killed processes; do nothing where there are none."""
    path.unlink(missing_ok=True)
    remove_partial(path)


def remove_partial(path: Path) -> None:
    """Remove the partial files of a file left by killed processes."""
    for partial in path.parent.glob(f"{path.name}.*.new"):
        partial.unlink(missing_ok=True)


#: Octets of a MiB, the unit of limits in messages; and so many are read at once.
_MIB: Final = 1 << 20
#: Folders whose files the kernel makes when they are read: some have no end, and some wait for ever.
_OF_KERNEL: Final = ("/proc/", "/sys/")
#: Errors that say that a path leads to nothing.
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
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


def _kind_of(mode: int) -> str:
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
            while left > 0 and (part := file.read(min(left, _MIB))):
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
        raise _unreadable(path, kind, f"it is {_kind_of(found.st_mode)}{_link(path)}; only regular files are read")
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


#: Folders whose entries are the open files of this process.
_OPEN_FILES: Final = (Path("/dev/fd"), Path("/proc/self/fd"))


def refuse_unwritable(path: Path, *, what: str, remedy: str) -> None:
    """Refuse a path that `write` would refuse, before the work that makes its content."""
    try:
        why = _reason(path)
    except OSError as error:
        raise unwritable(path, error, what=what, remedy=remedy) from error
    if why:
        raise UsageError(f"{what}: cannot write {path}: {why}; {remedy}")


def write(path: Path, content: str | bytes, *, what: str, remedy: str) -> None:
    """Write a file whole or not at all, or to one of the process's own streams.

    A file that is there stays until the new one is whole. The file behind a link is replaced, not the link.
    """
    refuse_unwritable(path, what=what, remedy=remedy)
    try:
        handle = _own_handle(path)
        if handle is not None:
            _to_stream(content, handle)
        elif _is_open_pipe(path):
            write_through(path, content)
        else:
            replace(Path(os.path.realpath(path)), content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(path, error, what=what, remedy=remedy) from error


def write_into(folder: Path, contents: Iterable[tuple[str, str | bytes]], *, what: str, remedy: str) -> list[Path]:
    """Write files by their names into a folder, which is made if missing; return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error, what=what, remedy=remedy) from error
    written = []
    for name, content in contents:
        write(folder / name, content, what=what, remedy=remedy)
        written.append(folder / name)
    return written


def is_stream(path: Path) -> bool:
    """Whether a path is a stream of this process, so that nothing else is to be printed there."""
    return _own_handle(path) is not None or _is_open_pipe(path)


def is_standard_output(path: Path) -> bool:
    """Whether what is written to a path is a part of what this process prints."""
    return _own_handle(path) == 1


def _reason(path: Path) -> str:
    """Return why a path cannot be written; empty where it can."""
    if is_stream(path):
        return ""
    if not path.exists():
        target = Path(os.path.realpath(path))
        return "" if target.parent.is_dir() else f"there is no folder {target.parent}"
    mode = path.stat().st_mode
    return "" if stat.S_ISREG(mode) else f"it is {_kind_of(mode)}"


def _own_handle(path: Path) -> int | None:
    """Return the handle of standard output, also as "-", or standard error; None = the path leads elsewhere."""
    if path == Path("-"):
        return 1
    try:
        found = path.stat()
    except OSError:
        return None
    return None if stat.S_ISDIR(found.st_mode) else next((each for each in (1, 2) if _same(found, each)), None)


def _is_open_pipe(path: Path) -> bool:
    """Whether a path is another open file of this process that is a pipe, as in a shell's `>(...)`."""
    try:
        return path.parent in _OPEN_FILES and stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def write_through(path: Path, content: str | bytes) -> None:
    """Write a text or octets to a device or a pipe, such as /dev/stdout or that of a shell's `>(...)`."""
    # Without O_NONBLOCK, opening a pipe waits for a reader, for ever if none comes.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(_octets_of(content))


def _same(found: os.stat_result, handle: int) -> bool:
    try:
        own = os.fstat(handle)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


def _to_stream(content: str | bytes, handle: int) -> None:
    """Write to a stream behind what was printed before."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(_octets_of(content))
