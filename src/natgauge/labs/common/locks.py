# SPDX-License-Identifier: Apache-2.0
"""The names of labs and ports, each used by one process at a time: locks that the kernel lets go with the process."""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from natgauge.errors import HostError, UsageError

#: Where registers, locks and the devices' private directories live; a memory file system, empty after a reboot.
RUN = Path("/run/natgauge")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_LOCK_PATIENCE_SECONDS = 0.3
#: On a busy host a process takes some time until it executes its program.
_ORPHAN_PATIENCE_SECONDS = 3.0


def check_name(name: str) -> str:
    """Refuse a lab's name that could not be part of a file's and a namespace's.

    Raises:
        UsageError: not 1 to 32 of a-z, 0-9 and "-" with a letter or digit at both ends.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f'lab name "{name}": use 1 to 32 of a-z, 0-9 and "-", with a letter or digit at both ends')
    return name


def directory_of(name: str) -> Path:
    """Return the parent of the private directories of a lab's devices."""
    return RUN / name


class Lock:
    """The right to use a name; held by one process at a time, and let go whenever that process ends."""

    def __init__(self, name: str, what: str | None = None) -> None:
        """Name the lock.

        Args:
            name: name of its file.
            what: name in messages of the protected thing; default: the lab of this name.
        """
        self._what = what or f"lab {name}"
        self._another = "another" if what else "another name (--lab-name, or lab_name in a plan's [lab])"
        self._path = RUN / f"{name}.lock"
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            HostError: another process holds it (named), or the directory cannot be written.
        """
        if not self.take_soon():
            raise HostError(
                f"{self._what}: in use by process {self.holder() or 'unknown'}; "
                f"wait until it has ended, or use {self._another}"
            )

    def take_soon(self, patience: float = _LOCK_PATIENCE_SECONDS) -> bool:
        """Take the lock if no other process holds it for longer than a moment: listing and cleaning do.

        A process that a killed run was starting holds the run's lock until it executes a program of its own. It is
        waited for.

        Args:
            patience: longest wait for a live holder, s.

        Raises:
            HostError: the directory cannot be written.
        """
        begun = time.monotonic()
        while not self.try_take():
            holder = self.holder()
            is_live = holder is None or Path(f"/proc/{holder}").exists()
            if time.monotonic() - begun > (patience if is_live else _ORPHAN_PATIENCE_SECONDS):
                return False
            time.sleep(0.02)
        return True

    def try_take(self) -> bool:
        """Take the lock if no other process holds it."""
        try:
            RUN.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise HostError(f"{self._path}: cannot be written ({error.strerror}); run natgauge as root") from error
        if not self._lock(handle):
            os.close(handle)
            return False
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        self._handle = handle
        return True

    def _lock(self, handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # The last holder may have deleted the file between our opening and locking it.
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), self._path.stat())
        return False

    def holder(self) -> int | None:
        """Process id that the present holder wrote; None when it cannot be read."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Delete the lock's file and let go; nothing happens when the lock is not held."""
        if self._handle is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None
