# SPDX-License-Identifier: Apache-2.0
"""Values of settings before their change, in an undo journal, which one process at a time uses."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from natgauge.errors import HostError
from natgauge.host.private_folder import FILE_MODE, FOLDER_MODE, RUN, private, unwritable
from natgauge.host.undo_journal import Content, UndoJournal

#: In a memory file system: a reboot empties it, and restores most of these settings, too. It has its own folder,
#: because labs have any names in theirs.
STATE: Final = RUN / "host" / "found.json"


@dataclass(frozen=True, slots=True)
class Changed:
    """One setting that was changed."""

    knob: str
    key: str
    found: str
    set: str


class _Content(Content):
    items: list[Changed]


class HiddenStateError(HostError):
    """The file belongs to another user, and only that user may see it."""


class State:
    """The settings to restore, as their file has them; only one process at a time changes it."""

    def __init__(self, path: Path) -> None:
        self._journal = UndoJournal(path, _Content, "put the settings back by hand, then delete it")
        try:
            self._journal.read()
        except PermissionError as error:
            raise HiddenStateError(
                f"{path}: is private; run as root to see what natgauge host tune has changed"
            ) from error

    @property
    def items(self) -> tuple[Changed, ...]:
        """Every change, in the order in which they were made."""
        return tuple(Changed(**item) for item in self._journal.items)

    def of(self, knob: str, key: str) -> Changed | None:
        """Return the stored change of a setting."""
        return next((item for item in self.items if (item.knob, item.key) == (knob, key)), None)

    def take(self, changed: Changed) -> None:
        """Store a change, in place of an earlier change of the same setting."""
        same = (item for item in self._journal.items if (item["knob"], item["key"]) == (changed.knob, changed.key))
        self._journal.record(asdict(changed), instead_of=next(same, None))

    def drop(self, changed: Changed) -> None:
        """Remove the change of a setting; after the last, remove the file."""
        same = (changed.knob, changed.key)
        if left := [item for item in self._journal.items if (item["knob"], item["key"]) != same]:
            self._journal.shorten(left)
        else:
            self._journal.items = []
            self._journal.remove()


def read(path: Path = STATE) -> tuple[Changed, ...]:
    """Return the settings that restoring would put back; empty where there is no file."""
    return State(path).items


@contextmanager
def state(path: Path) -> Iterator[State]:
    """The file, to be changed."""
    try:
        path.parent.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        if path.parent.parent == RUN:
            private(RUN)
        private(path.parent)
        # A file of its own: every user may lock a folder that the user can enter.
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError("another natgauge changes settings of this machine now; wait until it has ended") from None
        yield State(path)
    finally:
        os.close(handle)
