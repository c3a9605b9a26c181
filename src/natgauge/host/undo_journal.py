# SPDX-License-Identifier: Apache-2.0
"""The journal of changes that are undone later: a file that survives a kill, written before each change.

Each lab has one (its register), and so has `natgauge host tune`. It is replaced as a whole, so a kill or a crash leaves
the old list or the new one. What it names is ended, deleted and written, so nothing of a file with one wrong field is
believed. Undoing needs no room on the disk: until all is undone, the file may name more than is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from natgauge import files, foreign
from natgauge.errors import HostError, UsageError
from natgauge.host.private_folder import FILE_MODE, misplaced, unwritable

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
        """Nothing is read yet.

        Args:
            mend: a shell command that does so; empty = there is none.
        """
        self.path = path
        self.items: list[Item] = []
        self._content = content
        self._kind = foreign.FileKind("", remedy, _MOST_OCTETS)
        self._mend = mend
        self._head = head

    def read(self) -> Mapping[str, Any] | None:
        """Return the content of the file, whose items count from now on; None = there is no file."""
        try:
            octets = foreign.read_octets(self.path, self._kind)
        except UsageError as error:
            if isinstance(error.__cause__, FileNotFoundError) and not self.path.is_symlink():
                return None
            if isinstance(error.__cause__, PermissionError):
                raise error.__cause__ from None
            if isinstance(error.__cause__, NotADirectoryError):
                raise misplaced(self.path) from error
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
            files.replace(self.path, json.dumps(content, indent=1), mode=FILE_MODE)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def remove(self) -> None:
        """Remove the file once all is undone."""
        files.remove(self.path)


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]
