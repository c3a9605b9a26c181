# SPDX-License-Identifier: Apache-2.0
"""The journal of a campaign: one line for every event, on the disk before anything follows from the event.

After a kill at any moment, the journal alone says what is done. A last line that was cut off is removed when the
campaign is resumed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self

from natgauge import foreign
from natgauge.errors import HostError, UsageError
from natgauge.records.reading import read_lines
from natgauge.records.store import JOURNAL, JOURNAL_SCHEMA, plain

_PATIENCE_SECONDS: Final = 0.3
#: Size of a unit in messages, octets.
_MIB: Final = 1 << 20

JournalLine = Mapping[str, Any]


class AppendLine(Protocol):
    """Appends a line to the journal and updates the state."""

    def __call__(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """Append a line; `sync`: return when it is on the disk."""


class Journal:
    """A campaign's journal, open for appending by one process alone. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file = -1
        self._length = 0

    def __enter__(self) -> Self:
        """Open it, and cut away a last line that was cut off."""
        # A link could lead to any file of the machine, which this would change.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.path, flags, 0o644)
            _lock(self._file)
            if not os.fstat(self._file).st_nlink:
                # Whoever had the lock has removed the file.
                raise BlockingIOError  # noqa: TRY301 - as if it still had it
            self._length = _whole_lines(self.path)
            os.ftruncate(self._file, self._length)
        except BlockingIOError:
            self._close()
            raise HostError(
                f"campaign: {self.path.parent} is being measured by another natgauge; wait until it has ended"
            ) from None
        except OSError as error:
            self._close()
            raise unwritable_journal(self.path, error) from error
        except UsageError:
            self._close()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def clear(self) -> None:
        """Remove all lines."""
        try:
            os.ftruncate(self._file, 0)
        except OSError as error:
            raise unwritable_journal(self.path, error) from error
        self._length = 0

    def append(self, lines: Sequence[str], *, sync: bool = True) -> None:
        """Append lines as they are; `sync`: return when they are on the disk."""
        octets = "".join(f"{line}\n" for line in lines).encode()
        longest = max((len(line) for line in lines), default=0)
        most = foreign.LINES.line_octets
        if longest > most:
            # Nobody could read the journal any more.
            raise UsageError(
                f"campaign: {self.path}: a repetition has {longest / _MIB:,.0f} MiB, and the most of a line is "
                f"{most / _MIB:,.0f} MiB; give it fewer trials or periods"
            )
        try:
            write(self._file, octets)
            if sync:
                os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise unwritable_journal(self.path, error) from error
        self._length += len(octets)


def write(file: int, octets: bytes) -> None:
    """Write all of them."""
    left = memoryview(octets)
    while left:
        left = left[os.write(file, left) :]


def entry_of(event: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """A line of the journal with the present time, as it will be read again."""
    return {"schema": JOURNAL_SCHEMA, "event": event, "at": round(time.time(), 3), **plain(fields)}


def text_of(entry: JournalLine) -> str:
    """The text of a line, without the line feed."""
    return json.dumps(entry, allow_nan=False, separators=(",", ":"))


def _lock(file: int) -> None:
    """Take the lock. `natgauge status` holds it for a moment, so only a process that keeps it is measuring."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def unwritable_journal(path: Path, error: OSError) -> HostError:
    """Return the error of a file without which a campaign cannot go on."""
    remedy = "make room, then go on with --resume" if error.errno == errno.ENOSPC else "see that it can be written"
    return HostError(f"campaign: cannot write {path}: {error.strerror}; {remedy}")


def _whole_lines(path: Path) -> int:
    """Octets up to the end of the last whole line."""
    with foreign.open_file(path, foreign.LINES) as file:
        file.seek(0, os.SEEK_END)
        end = file.tell()
        step = 1 << 16
        while end > 0:
            begin = max(0, end - step)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
    return 0


def entries(folder: Path) -> Iterator[JournalLine]:
    """Every whole line of a campaign's journal; whoever takes it checks its fields."""
    return read_lines(folder / JOURNAL, JOURNAL_SCHEMA)


def is_written(folder: Path) -> bool:
    """Whether a process has the journal open for writing at this moment."""
    try:
        with foreign.open_file(folder / JOURNAL, foreign.LINES) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, UsageError):
        return False
    return False
