# SPDX-License-Identifier: Apache-2.0
"""Files that a user names for output: new ones, regular ones, and the process's own streams; all else is refused.

A device takes what is written and keeps nothing, a pipe without a reader waits for ever. So what is not a file is
refused, but for the streams that this process was started with: `-`, `/dev/stdout`, and a shell's `>(...)`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from natgauge import files, foreign
from natgauge.errors import UsageError
from natgauge.system_errors import unwritable

#: The name of standard output.
STANDARD_OUTPUT: Final = Path("-")
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
            files.replace(Path(os.path.realpath(path)), content)
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
    return "" if stat.S_ISREG(mode) else f"it is {foreign.kind_of(mode)}"


def _own_handle(path: Path) -> int | None:
    """Return the handle of standard output or standard error that a path leads to; None = it leads elsewhere."""
    if path == STANDARD_OUTPUT:
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
        file.write(files.octets_of(content))


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
        file.write(files.octets_of(content))
