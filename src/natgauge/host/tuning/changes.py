# SPDX-License-Identifier: Apache-2.0
"""Values of settings before their change, in a file that survives a kill; written before each change."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from natgauge import files
from natgauge.errors import HostError
from natgauge.host.private_folder import FILE_MODE, FOLDER_MODE, RUN, misplaced, private, unwritable

#: In a memory file system: a reboot empties it, and restores most of these settings, too. It has its own folder,
#: because labs have any names in theirs.
STATE: Final = RUN / "host" / "found.json"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Changed:
    """One setting that was changed.

    Attributes:
        knob: name of the knob.
        key: key of the knob's setting.
        found: value before the change.
        set: value after the change.
    """

    knob: str
    key: str
    found: str
    set: str


class State:
    """The settings to restore, and their file; only one process at a time uses the file."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._path = path
        self.items = list(read(path))

    def of(self, knob: str, key: str) -> Changed | None:
        """Return the stored change of a setting."""
        return next((item for item in self.items if (item.knob, item.key) == (knob, key)), None)

    def take(self, changed: Changed) -> None:
        """Store a change, in place of an earlier change of the same setting."""
        self.items = [*(item for item in self.items if (item.knob, item.key) != (changed.knob, changed.key)), changed]
        self._write()

    def drop(self, changed: Changed) -> None:
        """Remove a change; after the last, remove the file."""
        self.items = [item for item in self.items if item != changed]
        # Without room the longer file stays: what is restored already is found as it was.
        with suppress(HostError):
            self._write()

    def _write(self) -> None:
        if not self.items:
            files.remove(self._path)
            return
        document = {"version": _VERSION, "items": [asdict(item) for item in self.items]}
        try:
            files.replace(self._path, json.dumps(document, indent=1), mode=FILE_MODE)
        except OSError as error:
            raise unwritable(self._path, error) from error


def read(path: Path) -> tuple[Changed, ...]:
    """Read the stored changes; empty where there is no file."""
    try:
        document: Mapping[str, object] = json.loads(path.read_text())
        version, items = document["version"], document["items"]
        if version == _VERSION and isinstance(items, list):
            return tuple(Changed(**{name: str(value) for name, value in item.items()}) for item in items)
    except FileNotFoundError:
        return ()
    except NotADirectoryError as error:
        raise misplaced(path) from error
    except PermissionError as error:
        raise HiddenStateError(f"{path}: is private; run as root to see what natgauge host tune has changed") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(f"{path}: is damaged ({error}); put the settings back by hand, then delete it") from error
    raise HostError(f"{path}: version {version}, but this natgauge reads {_VERSION}; use the one that wrote it")


class HiddenStateError(HostError):
    """The file belongs to another user, and only that user may see it."""


@contextmanager
def state(path: Path) -> Iterator[State]:
    """The file, to be changed.

    Raises:
        HostError: another process changes settings now, the folder cannot be written, or the file is damaged.
    """
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
