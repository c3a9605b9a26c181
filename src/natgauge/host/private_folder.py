# SPDX-License-Identifier: Apache-2.0
"""Folders below /run that only their owner can enter, so that no other user can hold a lock or read a key in them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from natgauge.errors import HostError

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
            raise no_folder(folder) from error
        raise unwritable(folder, error) from error
    try:
        found = os.fstat(handle)
        if found.st_uid not in (0, os.geteuid()):
            raise of_other(folder, found.st_uid)
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
        return misplaced(path)
    return HostError(f"{path}: cannot be written ({error.strerror}); run natgauge as root")


def unreadable(path: Path, error: OSError) -> HostError:
    """Return the error of a file below /run that cannot be read, with the remedy."""
    if error.errno in _MISPLACED:
        return misplaced(path)
    return HostError(f"{path}: cannot be read ({error.strerror}); run natgauge as root")


def no_folder(folder: Path) -> HostError:
    """Return the error of what is in the place of a folder."""
    return HostError(f"{folder}: is no folder, natgauge keeps its locks there; delete it", mend=f"rm {folder}")


def of_other(folder: Path, owner: int) -> HostError:
    """Return the error of a folder whose owner is neither root nor this user."""
    return HostError(
        f"{folder}: belongs to user {owner}, who could hold natgauge's locks there; delete it", mend=f"rm -r {folder}"
    )


def misplaced(path: Path) -> HostError:
    """Return the error of a file that cannot be opened, because something else is in its place, or in a folder's."""
    for folder in reversed(path.parents):
        if not folder.is_dir():
            return no_folder(folder)
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
        return no_folder(folder)
    if os.access(folder, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return None if found.st_uid in (0, os.geteuid()) else of_other(folder, found.st_uid)
    owner = "root" if found.st_uid == 0 else f"user {found.st_uid}"
    return HiddenLabsError(f"labs of {owner} are private: run as {owner} to list them")
