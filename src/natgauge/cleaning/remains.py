# SPDX-License-Identifier: Apache-2.0
"""Files of natgauge that belong to no lab: marks, locks, folders and unfinished registers that killed runs left."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from natgauge.errors import BrokenError
from natgauge.labs.common import locks, marks, namespaces
from natgauge.labs.common.decisions import Decision, Deed, Gone, Left, Tell, deed
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.undoing import delete_folder

#: Ends of names in the folder of labs: registers, locks, and partial files of registers (natgauge.files.replace).
_REGISTER, _LOCK, _PARTIAL = ".json", ".lock", ".new"


def of_marks(gone: Gone) -> Iterable[Decision]:
    """Decide that marks go whose namespaces are gone; a lab in use may be about to give its namespace the name."""
    if any(lock.is_held() for lock in locks.every()):
        return
    for name in marks.names():
        if (
            name not in gone.marks
            and marks.is_one(name)
            and not (namespaces.exists(name) and namespaces.is_marked(name))
        ):
            yield Decision((_deletion(marks.path_of(name)),), partial(_delete_mark, name))


def _delete_mark(name: str, tell: Tell) -> None:
    path = marks.path_of(name)
    if os.path.lexists(path):
        marks.remove(name)
        tell(_deletion(path).done)


def of_labs(gone: Gone, *, folders: bool = True) -> Iterable[Decision]:
    """Decide that the folders, locks and unfinished registers go that have no register.

    A user may have deleted a damaged register; a run may have been killed before it wrote one.

    Args:
        gone: what earlier decisions take away; the lock and the unfinished registers of a lab go with it.
    """
    found: dict[str, list[Path]] = {}
    with suppress(FileNotFoundError):
        for path in sorted(locks.folder("labs").iterdir()):
            is_folder = _is_folder(path)
            if (name := _lab_of(path)) is None or gone.has_path(path):
                continue
            if folders if is_folder else name not in gone.labs:
                found.setdefault(name, []).append(path)
    for name, paths in found.items():
        lock = Lock(name)
        if (name in gone.labs or not os.path.lexists(_register_of(lock))) and not lock.is_held():
            yield Decision(tuple(map(_deletion, paths)), partial(_delete, lock, paths))


def of_locks() -> Iterable[Decision]:
    """Decide that the locks of killed runs on ports, cores and guests go."""
    for lock in locks.every():
        if lock.path.parent == locks.folder("locks") and not lock.is_held():
            yield Decision((_deletion(lock.path),), partial(_delete, lock, [lock.path]))


def _lab_of(path: Path) -> str | None:
    """Return the name of the lab that a file in the folder of labs is of; None = a register, or no file of natgauge."""
    if _is_folder(path):
        return path.name if locks.is_name(path.name) else None
    if path.name.endswith(_LOCK):
        return path.name.removesuffix(_LOCK)
    name, dot, _ = path.name.partition(f"{_REGISTER}.")
    return name if dot and path.name.endswith(_PARTIAL) else None


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder, or a link in the place of one."""
    return path.is_symlink() or path.is_dir()


def _register_of(lock: Lock) -> Path:
    return lock.path.with_name(lock.path.name.removesuffix(_LOCK) + _REGISTER)


def _deletion(path: Path) -> Deed:
    return deed("delete", f"directory {path}" if _is_folder(path) else str(path))


def _delete(lock: Lock, paths: list[Path], tell: Tell) -> None:
    """Delete what was found, unless another process has begun to use the lab meanwhile."""
    present = [path for path in paths if os.path.lexists(path)]
    if not present:
        return
    if not lock.try_take():
        tell(Left(str(present[0]), f"in use by {lock.holder_in_words()}").done)
        return
    try:
        if lock.path.parent == locks.folder("labs") and os.path.lexists(_register_of(lock)):
            return
        for path in present:
            if path == lock.path:
                continue
            if _is_folder(path):
                delete_folder(path, tell)
            else:
                _unlink(path, tell)
    finally:
        lock.release()
    if lock.path in present:
        tell(_deletion(lock.path).done)


def _unlink(path: Path, tell: Tell) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise BrokenError(f"{path}: cannot be deleted ({error.strerror})") from error
    tell(_deletion(path).done)
