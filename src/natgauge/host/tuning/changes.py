# SPDX-License-Identifier: Apache-2.0
"""Values of settings before their change, in a file that survives a kill; written before each change."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from natgauge import files
from natgauge.errors import HostError

#: In a memory file system: a reboot empties it, and restores most of these settings, too. It has its own folder,
#: because the parent folder contains the registers of labs.
STATE: Final = Path("/run/natgauge/host/found.json")
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
        """Read the file.

        Raises:
            HostError: it is damaged or of another version.
        """
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
        self._write()

    def _write(self) -> None:
        if not self.items:
            files.remove(self._path)
            return
        document = {"version": _VERSION, "items": [asdict(item) for item in self.items]}
        files.replace(self._path, json.dumps(document, indent=1))


def read(path: Path) -> tuple[Changed, ...]:
    """Read the stored changes; empty where there is no file.

    Raises:
        HostError: it is damaged or of another version.
    """
    try:
        document: Mapping[str, object] = json.loads(path.read_text())
        version, items = document["version"], document["items"]
        if version == _VERSION and isinstance(items, list):
            return tuple(Changed(**{name: str(value) for name, value in item.items()}) for item in items)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(f"{path}: is damaged ({error}); put the settings back by hand, then delete it") from error
    raise HostError(f"{path}: version {version}, but this natgauge reads {_VERSION}; use the one that wrote it")


@contextmanager
def state(path: Path) -> Iterator[State]:
    """The file, to be changed.

    Raises:
        HostError: another process changes settings now, the folder cannot be written, or the file is damaged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"{path.parent}: cannot be used ({error.strerror}); run natgauge as root") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError("another natgauge changes settings of this machine now; wait until it has ended") from None
        yield State(path)
    finally:
        os.close(handle)
