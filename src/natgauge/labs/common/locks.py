# SPDX-License-Identifier: Apache-2.0
"""The names of labs and ports, each used by one process at a time: locks that the kernel lets go with the process.

All locks are in folders that only their owner can enter, so no other user of the machine can hold one.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Literal

from natgauge.errors import HostError, UsageError
from natgauge.host import private_files, process_files
from natgauge.host.private_files import FILE_MODE, FULL, private, unreadable, unwritable

#: Where registers, locks and the devices' private directories live; a memory file system, empty after a reboot.
RUN = private_files.RUN

#: Subfolders: labs with their registers, locks and files; other locks (ports, cores, building a guest); marks of
#: namespaces; last values of settings; used ports; what is known of guests. `host/` belongs to `natgauge host`.
Subfolder = Literal["labs", "locks", "namespaces", "settings", "uses", "guests"]

#: Subfolders with locks, with a text for messages on the protected things; None = labs.
_KINDS: Final[tuple[tuple[Subfolder, str | None], ...]] = (("labs", None), ("locks", "a port, a core or a guest"))
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_LOCK_PATIENCE_SECONDS = 0.3
#: A holder writes two numbers.
_MOST_WRITTEN: Final = 64
#: On a busy host a process takes some time until it executes its program.
_ORPHAN_PATIENCE_SECONDS = 3.0


def check_name(name: str) -> str:
    """Refuse a lab's name that could not be part of a file's and a namespace's."""
    if not is_name(name):
        raise UsageError(
            f'lab name "{name}": use 1 to 32 of a-z, 0-9 and "-", with a letter or digit at both ends', at="lab_name"
        )
    return name


def is_name(name: str) -> bool:
    """Whether a lab may have this name."""
    return _NAME.fullmatch(name) is not None


def folder(name: Subfolder) -> Path:
    """Return the path of a subfolder of /run/natgauge; nothing is made."""
    return RUN / name


def made_folder(name: Subfolder) -> Path:
    """Make a subfolder of /run/natgauge, or check an existing one."""
    private(RUN)
    return private(folder(name))


def directory_of(name: str) -> Path:
    """Return the parent of the private directories of a lab's devices."""
    return folder("labs") / name


#: Locks that rest, by their files, with their handles; None = a lock that is let go of is free.
_resting: ContextVar[dict[Path, int] | None] = ContextVar("resting", default=None)


class InUseError(HostError):
    """Another process holds a lock."""

    def __init__(self, message: str, *, another: str = "") -> None:
        """`another`: name of the input by which the user chooses another lab; empty = there is none."""
        super().__init__(message, at=another)
        self.another = another


@contextmanager
def kept() -> Iterator[None]:
    """Within the block, no other process can take the lab or port of a lab that this process has taken down.

    The next lab of that name, or with that port, takes its lock over.
    """
    if _resting.get() is not None:
        yield
        return
    resting: dict[Path, int] = {}
    before = _resting.set(resting)
    try:
        yield
    finally:
        _resting.reset(before)
        for path, handle in resting.items():
            _let_go(path, handle)


def _let_go(path: Path, handle: int) -> None:
    path.unlink(missing_ok=True)
    os.close(handle)


def _holds(handle: int, path: Path) -> bool:
    """Whether what is open is the file of a lock, or its folder where no file could be made."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), (path if path.exists() else path.parent).stat())
    return False


class Lock:
    """The right to use a name; held by one process at a time, and let go whenever that process ends."""

    def __init__(self, name: str, what: str | None = None) -> None:
        """`what`: name in messages of the protected thing; default: the lab of this name."""
        self._what = what or f"lab {name}"
        #: The input by which a user chooses another one.
        self._input = "" if what else "lab_name"
        self._folder: Subfolder = "locks" if what else "labs"
        #: Its file exists while the lock is held, and after a kill.
        self.path: Final = folder(self._folder) / f"{name}.lock"
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock."""
        if not self.take_soon():
            text = f"{self._what}: in use by {self.holder_in_words()}; wait until it has ended"
            raise InUseError(text if self._input else f"{text}, or use another", another=self._input)

    def take_soon(self) -> bool:
        """Take the lock if no other process holds it for longer than a moment: listing and cleaning do.

        A process that a killed run was starting holds the run's lock until it executes a program of its own. It is
        waited for.
        """
        return self._becomes(self.try_take, _LOCK_PATIENCE_SECONDS)

    def is_held(self) -> bool:
        """Whether another process holds the lock; nothing is made or changed."""
        return not self._becomes(lambda: not self._is_locked(), 0.0)

    def _becomes(self, true: Callable[[], bool], patience: float) -> bool:
        """Whether something is true before the patience is at its end."""
        begun = time.monotonic()
        while not true():
            # A holder whose number cannot be read may be writing it just now.
            if time.monotonic() - begun > (_ORPHAN_PATIENCE_SECONDS if self._names_a_dead_process() else patience):
                return False
            time.sleep(0.02)
        return True

    def _is_locked(self) -> bool:
        try:
            # A FIFO in its place would wait for a writer.
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unreadable(self.path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def try_take(self) -> bool:
        """Take the lock if no other process holds it."""
        if (rested := (_resting.get() or {}).pop(self.path, None)) is not None:
            if _holds(rested, self.path):
                self._handle = rested
                return True
            # Somebody deleted the file, and another process may hold a new one.
            os.close(rested)
        made_folder(self._folder)
        try:
            handle = self._opened()
        except OSError as error:
            raise unwritable(self.path, error) from error
        if not self._lock(handle):
            os.close(handle)
            return False
        # Without room the holder cannot be named, but the lock holds.
        pid = os.getpid()
        with suppress(OSError):
            os.ftruncate(handle, 0)
            os.write(handle, f"{pid} {process_files.began(Path(f'/proc/{pid}'))}".encode())
        self._handle = handle
        return True

    def _opened(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            if error.errno not in FULL:
                raise
            # No file can be made, so nobody can take this lock in the usual way, and undoing needs no room.
            return os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _lock(self, handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # The last holder may have deleted the file between our opening and locking it.
        return _holds(handle, self.path)

    def holder(self) -> int | None:
        """Process id of the present holder; None when it is not known, or when the process that wrote it has ended."""
        pid, began = self._written()
        now = "" if pid is None else process_files.began(Path(f"/proc/{pid}"))
        return pid if now and began in ("", now) else None

    def _written(self) -> tuple[int | None, str]:
        """Process id and start time that the last holder wrote."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                pid, _, began = os.read(handle, _MOST_WRITTEN).decode().partition(" ")
            finally:
                os.close(handle)
            return int(pid), began
        except (OSError, ValueError):
            return None, ""

    def _names_a_dead_process(self) -> bool:
        return self._written()[0] is not None and self.holder() is None

    def holder_in_words(self) -> str:
        """Return the process that holds the lock, for messages."""
        if pid := self.holder():
            return f"process {pid}"
        pid, _ = self._written()
        return "an unknown process" if pid is None else f"a process that process {pid} had started before it ended"

    def release(self) -> None:
        """Delete the lock's file and let go; nothing happens when the lock is not held."""
        if self._handle is not None:
            _let_go(self.path, self._handle)
            self._handle = None

    def rest(self) -> None:
        """Let go of the name of a lab or of its port; within `kept` it stays this process's."""
        if (resting := _resting.get()) is None or self._handle is None:
            self.release()
        else:
            resting[self.path], self._handle = self._handle, None


def holders() -> frozenset[int]:
    """Process ids of all processes that hold a lock; empty where the locks cannot be seen."""
    found = set()
    for lock in every():
        with suppress(HostError):
            if lock.is_held() and (pid := lock.holder()) is not None:
                found.add(pid)
    return frozenset(found)


def every() -> Iterator[Lock]:
    """Yield the locks of all labs, ports and cores that have a file: held ones, and those of killed processes."""
    for name, what in _KINDS:
        for path in sorted(folder(name).glob("*.lock")):
            yield Lock(path.name.removesuffix(".lock"), what)
