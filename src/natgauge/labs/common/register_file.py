# SPDX-License-Identifier: Apache-2.0
"""The file of a register as it is read: checked in every field, because a crash or somebody's hand may have changed it.

What it names is ended and deleted, so nothing of a file with one wrong field is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from natgauge import foreign
from natgauge.errors import HostError, UsageError
from natgauge.host.private_folder import misplaced

VERSION: Final = 1
#: What a namespace may be called: a file of /run/netns, and of no other folder.
_FILE_NAME: Final = r"^[^/\x00]*[^/\x00.][^/\x00]*$"
_KIND: Final = foreign.FileKind("", "delete it, then run: natgauge lab clean", 4 << 20)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Namespace(_Strict):
    what: Literal["namespace"]
    name: Annotated[str, Field(pattern=_FILE_NAME)]


class _Directory(_Strict):
    what: Literal["directory"]
    path: Annotated[str, Field(pattern=r"^/[^\x00]*$")]


class _Global(_Strict):
    what: Literal["global"]
    path: Annotated[str, Field(pattern=r"^/[^\x00]*$")]
    value: str


class _Remote(_Strict):
    what: Literal["remote"]
    undo: str
    says: str
    at: str


class _Content(_Strict):
    version: Literal[1]
    name: str
    kind: str
    kept: bool
    user: str = ""
    settings: dict[str, Any]
    items: list[Annotated[_Namespace | _Directory | _Global | _Remote, Field(discriminator="what")]]


def content_of(path: Path, name: str) -> Mapping[str, Any] | None:
    """Return the content of the register of lab `name`; None = there is no such file.

    Raises:
        HostError: it is no regular file, too large, damaged, of another lab, or of another version.
        PermissionError: this user may not read it.
    """
    try:
        octets = foreign.read_octets(path, _KIND)
    except UsageError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not path.is_symlink():
            return None
        if isinstance(error.__cause__, PermissionError):
            raise error.__cause__ from None
        if isinstance(error.__cause__, NotADirectoryError):
            raise misplaced(path) from error
        raise HostError(str(error), mend=_mend(path)) from error
    try:
        head = _Head.model_validate_json(octets)
        if head.version != VERSION:
            raise HostError(
                f"{path}: version {head.version}, but this natgauge reads {VERSION}; use the one that wrote it"
            )
        content = _Content.model_validate_json(octets)
    except ValidationError as error:
        raise _damaged(path, _first_fault(error)) from None
    if content.name != name:
        raise _damaged(path, f"it is of lab {content.name!r}")
    return content.model_dump()


class _Head(_Strict):
    version: int


def _damaged(path: Path, why: str) -> HostError:
    return HostError(f"{path}: is damaged ({why}); {_KIND.remedy}", mend=_mend(path))


def _mend(path: Path) -> str:
    """Return the command that removes what is in the place of a register, and what the lab has left."""
    return f"rm -r {path} && natgauge lab clean"


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]
