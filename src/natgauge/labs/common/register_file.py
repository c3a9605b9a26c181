# SPDX-License-Identifier: Apache-2.0
"""The file of a register: the undo journal of one lab, and what its items may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from natgauge.host.undo_journal import Content, Strict, UndoJournal

#: What a namespace may be called: a file of /run/netns, and of no other folder.
_FILE_NAME: Final = r"^[^/\x00]*[^/\x00.][^/\x00]*$"
_Path = Annotated[str, Field(pattern=r"^/[^\x00]*$")]


class _Namespace(Strict):
    what: Literal["namespace"]
    name: Annotated[str, Field(pattern=_FILE_NAME)]


class _Directory(Strict):
    what: Literal["directory"]
    path: _Path


class _Global(Strict):
    what: Literal["global"]
    path: _Path
    value: str


class _Remote(Strict):
    what: Literal["remote"]
    undo: str
    says: str
    at: str


class _Content(Content):
    name: str
    kind: str
    kept: bool
    user: str = ""
    settings: dict[str, Any]
    items: list[Annotated[_Namespace | _Directory | _Global | _Remote, Field(discriminator="what")]]


def journal_of(path: Path, head: Callable[[], Mapping[str, Any]] = dict) -> UndoJournal:
    """Return the journal in the file of a register; `head` returns its fields besides the items."""
    mend = f"rm -r {path} && natgauge lab clean"
    return UndoJournal(path, _Content, "delete it, then run: natgauge lab clean", mend=mend, head=head)
