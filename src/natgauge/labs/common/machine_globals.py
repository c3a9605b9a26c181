# SPDX-License-Identifier: Apache-2.0
"""Global settings that labs changed: the first value, the value that was set, and who restores the first one.

The last of the labs that changed a setting restores its first value. Labs with the same folder in /run find each other
by their registers. Labs of other containers, which have folders of their own, find each other by announcements
(`natgauge.host.announcements`). A value that another program has set meanwhile stays, and is reported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge import files
from natgauge.errors import BrokenError
from natgauge.host.announcements import Announced, Announcement, group_of, others
from natgauge.host.private_folder import FILE_MODE, unwritable
from natgauge.labs.common import locks
from natgauge.labs.common.undoing import Decision, Deed, Left, Tell, deed

_DIGITS: Final = 16


class GlobalSettings:
    """The global settings that one lab restores, and their announcements."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots
        self._announcements: dict[str, Announcement] = {}

    def refusal(self, path: str) -> str:
        """Return why a path is no global setting, also by way of a symbolic link; empty = it is one."""
        if path.startswith(self.roots) and ".." not in path and os.path.realpath(path).startswith(self.roots):
            return ""
        return f"only files below {' or '.join(self.roots)} can be remembered or restored"

    def first_of(self, path: str, registers: Iterable[tuple[str, str]]) -> str | None:
        """Return the first value of a setting that another lab changed; None = no other lab has."""
        known = dict(registers).get(path)
        return known or next((each.first for each in self._rivals(path) if each.first), None)

    def announce(self, path: str, first: str, value: str = "") -> None:
        """Announce that this lab restores a setting.

        Args:
            value: value that was set; empty = it is being set.
        """
        new = Announcement(Path(path), "restores", group=group_of(locks.RUN), first=first, value=value)
        self.withdraw(path)
        self._announcements[path] = new

    def withdraw(self, path: str | None = None) -> None:
        """Take the announcement of a setting back; None = of all settings."""
        for each in [path] if path is not None else list(self._announcements):
            if announcement := self._announcements.pop(each, None):
                announcement.close()

    def decide(self, path: str, first: str, registers: Iterable[tuple[str, str]]) -> Decision:
        """Decide what becomes of a setting at the end of the lab.

        Its first value is restored, unless another lab will, or another program has changed it.
        """
        if why := self.refusal(path):
            return Decision((Left(f"global setting {path}", why, fails=True),))
        setting = Path(path)
        if not setting.exists() or path in dict(registers):
            return Decision((), lambda _tell: self.withdraw(path))
        try:
            now = setting.read_text().strip()
        except OSError as error:
            why = f"cannot be read ({error.strerror}); it was {first}"
            return Decision((Left(f"global setting {path}", why, fails=True),))
        return self._decide_on(path, first, now)

    def _decide_on(self, path: str, first: str, now: str) -> Decision:
        """Decide on a setting that no other lab of this container restores; `now` is its present value."""
        rivals, mine = self._rivals(path), value_set(path)
        if rivals and any(each.first != first for each in rivals):
            why = f"is {now}, was {first}, and {rivals[0].who} relies on it; wait until it has ended"
            return Decision((Left(f"global setting {path}", why, fails=True),))
        if now != first and mine not in (None, "", now) and not rivals:
            why = f"natgauge had set {mine}, and another program changed it; it was {first} before"
            return Decision((Left(f"{path} at {now}", why),), lambda _tell: self._forget(path))
        if (wanted := _wanted(rivals, first)) != now and (not rivals or mine == now):
            restored = deed("restore", f"{path} to {wanted}")
            return Decision((restored,), lambda tell: self._write(path, wanted, restored, tell))
        return Decision((), lambda _tell: self._forget(path))

    def _write(self, path: str, wanted: str, restored: Deed, tell: Tell) -> None:
        try:
            Path(path).write_text(wanted)
        except OSError as error:
            raise BrokenError(f"global setting {path}: cannot be set to {wanted} ({error.strerror})") from error
        tell(restored.done)
        self._forget(path)

    def _forget(self, path: str) -> None:
        self.withdraw(path)
        forget(path)

    def _rivals(self, path: str) -> list[Announced]:
        """Labs of other containers that restore this setting, too; those of this container are in the registers."""
        group = group_of(locks.RUN)
        found = others(Path(path), ["restores"], own=tuple(self._announcements.values()))
        return [each for each in found if each.group != group]


def _wanted(rivals: Iterable[Announced], first: str) -> str:
    """Return the value to restore: the one that the other containers' labs have set, the largest; else the first."""
    values = [each.value for each in rivals if each.value]
    with suppress(ValueError):
        return max(values, key=int, default=first)
    return values[0]


def file_of(path: str) -> Path:
    """Return the file with the value of a setting that natgauge set last."""
    return locks.folder("settings") / hashlib.sha256(path.encode()).hexdigest()[:_DIGITS]


def value_set(path: str) -> str | None:
    """Return the value that natgauge set last; empty = it is being set, None = natgauge has not set it."""
    with suppress(OSError):
        return file_of(path).read_text()
    return None


def store_value(path: str, value: str) -> None:
    """Store the value that natgauge sets, for all labs of this container; empty = it is being set."""
    locks.made_folder("settings")
    try:
        files.replace(file_of(path), value, mode=FILE_MODE)
    except OSError as error:
        raise unwritable(file_of(path), error) from error


def forget(path: str) -> None:
    """Remove the value that natgauge set, once it is restored."""
    with suppress(OSError):
        files.remove(file_of(path))
