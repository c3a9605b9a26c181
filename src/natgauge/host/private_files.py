# SPDX-License-Identifier: Apache-2.0
"""Files below /run that no other user can touch: their folders, and journals of changes that are undone later.

Only the owner can enter the folders, so no other user can hold a lock or read a key in them.

A journal survives a kill and is written before each change. Each lab has one (its register), and so has `natgauge host
tune`. It is replaced as a whole, so a kill or a crash leaves the old list or the new one. What it names is ended,
deleted and written, so nothing of a file with one wrong field is believed. Undoing needs no room on the disk: until all
is undone, the file may name more than is left.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from natgauge import file_access
from natgauge.errors import HostError, UsageError

#: Everything that natgauge stores about this machine until the next boot: a memory file system, empty after a reboot.
RUN: Final = Path("/run/natgauge")
#: Mode of a folder, and of a file in it.
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
#: Errors of a file system without room.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: Errors of a path where a link, a folder or a file is in the place of something else.
_MISPLACED: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO})


def private(folder: Path) -> Path:
    """Make a folder that only its owner can enter, or check and tighten an existing one; its parent must exist."""
    try:
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        pass
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        # Not a path but the opened folder is examined and changed: nobody can exchange it in between.
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _no_folder(folder) from error
        raise unwritable(folder, error) from error
    try:
        found = os.fstat(handle)
        if found.st_uid not in (0, os.geteuid()):
            raise _of_other(folder, found.st_uid)
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(handle, FOLDER_MODE)
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        os.close(handle)
    return folder


def unwritable(path: Path, error: OSError) -> HostError:
    """Return the error of a file or folder below /run that cannot be written, with the remedy."""
    if error.errno in FULL:
        return HostError(
            f"{path}: cannot be written ({error.strerror}): the file system of /run is full; "
            'make room there ("df -h /run" shows it), then try again'
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return HostError(f"{path}: cannot be opened ({error.strerror}); allow more open files (ulimit -n 1024)")
    if error.errno == errno.EROFS:
        return HostError(
            f"{path}: cannot be written ({error.strerror}); mount /run writable (in a container: --tmpfs /run)",
            mend="mount -o remount,rw /run",
        )
    if error.errno in _MISPLACED:
        return _misplaced(path)
    return HostError(f"{path}: cannot be written ({error.strerror}); run natgauge as root")


def unreadable(path: Path, error: OSError) -> HostError:
    """Return the error of a file below /run that cannot be read, with the remedy."""
    if error.errno in _MISPLACED:
        return _misplaced(path)
    return HostError(f"{path}: cannot be read ({error.strerror}); run natgauge as root")


def _no_folder(folder: Path) -> HostError:
    return HostError(f"{folder}: is no folder, natgauge keeps its locks there; delete it", mend=f"rm {folder}")


def _of_other(folder: Path, owner: int) -> HostError:
    return HostError(
        f"{folder}: belongs to user {owner}, who could hold natgauge's locks there; delete it", mend=f"rm -r {folder}"
    )


def _misplaced(path: Path) -> HostError:
    """Return the error of a file that cannot be opened, because something else is in its place, or in a folder's."""
    for folder in reversed(path.parents):
        if not folder.is_dir():
            return _no_folder(folder)
    return HostError(f"{path}: is no regular file, natgauge keeps a file there; delete it", mend=f"rm -r {path}")


def boot() -> str:
    """Return the kernel's number of this boot: a folder that outlives a boot has files of another one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class HiddenLabsError(HostError):
    """The labs of this machine belong to another user, and only that user may see them."""


def refusal(folder: Path) -> HostError | None:
    """Return why a folder cannot be used or seen; None where it can, or is absent.

    A link, or another user's folder, is refused: cleaning would delete what is in it.
    """
    try:
        found = folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return HiddenLabsError(f"{folder}: cannot be seen; run as root to list labs")
    if not stat.S_ISDIR(found.st_mode):
        return _no_folder(folder)
    if os.access(folder, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return None if found.st_uid in (0, os.geteuid()) else _of_other(folder, found.st_uid)
    owner = "root" if found.st_uid == 0 else f"user {found.st_uid}"
    return HiddenLabsError(f"labs of {owner} are private: run as {owner} to list them")


VERSION: Final = 1
_MOST_OCTETS: Final = 4 << 20

Item = dict[str, Any]


class Strict(BaseModel):
    """A part of a journal: no value is converted."""

    model_config = ConfigDict(strict=True)


class Content(Strict):
    """The content of every journal; a kind of journal has a class of its own with its `items`."""

    version: Literal[1]


class _Head(Strict):
    version: int


class UndoJournal:
    """A list of changes, in the order in which they are made, always equal to its file."""

    def __init__(
        self,
        path: Path,
        content: type[Content],
        remedy: str,
        *,
        mend: str = "",
        head: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Nothing is read yet. `mend`: a shell command that does what `remedy` says; empty = there is none."""
        self.path = path
        self.items: list[Item] = []
        self._content = content
        self._kind = file_access.FileKind("", remedy, _MOST_OCTETS)
        self._mend = mend
        self._head = head

    def read(self) -> Mapping[str, Any] | None:
        """Return the content of the file, whose items count from now on; None = there is no file."""
        try:
            octets = file_access.read_octets(self.path, self._kind)
        except UsageError as error:
            if isinstance(error.__cause__, FileNotFoundError) and not self.path.is_symlink():
                return None
            if isinstance(error.__cause__, PermissionError):
                raise error.__cause__ from None
            if isinstance(error.__cause__, NotADirectoryError):
                raise _misplaced(self.path) from error
            raise HostError(str(error), mend=self._mend) from error
        try:
            version = _Head.model_validate_json(octets).version
            if version != VERSION:
                raise HostError(
                    f"{self.path}: version {version}, but this natgauge reads {VERSION}; use the one that wrote it"
                )
            content = self._content.model_validate_json(octets).model_dump()
        except ValidationError as error:
            raise self.damaged(_first_fault(error)) from None
        self.items = list(content["items"])
        return content

    def damaged(self, why: str) -> HostError:
        """Return the error of a file with a wrong field."""
        return HostError(f"{self.path}: is damaged ({why}); {self._kind.remedy}", mend=self._mend)

    def record(self, item: Item, *, instead_of: Item | None = None) -> None:
        """Write down what is about to be changed, in place of another change if one is given."""
        before = self.items
        self.items = [*(each for each in before if each is not instead_of), item]
        try:
            self.write()
        except HostError:
            self.items = before
            raise

    def shorten(self, items: Sequence[Item]) -> None:
        """Let only these changes remain, once the others are undone; without room the longer file stays.

        What is undone a second time is found undone.
        """
        self.items = list(items)
        with suppress(HostError):
            self.write()

    def write(self) -> None:
        """Write the file as a whole; where that fails, the old one stays."""
        content = {"version": VERSION, **self._head(), "items": self.items}
        try:
            file_access.replace(self.path, json.dumps(content, indent=1), mode=FILE_MODE)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def remove(self) -> None:
        """Remove the file once all is undone."""
        file_access.remove(self.path)


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]
