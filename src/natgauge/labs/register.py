# SPDX-License-Identifier: Apache-2.0
"""What labs made, written down before it is made, so that a killed run's remains can be found and undone.

A register is one file, /run/natgauge/<lab>.json, and a lock beside it that the process using the lab holds. The kernel
releases the lock however that process ends, so a register without a holder is either kept on purpose or left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.labs import namespaces

#: Where registers, locks and the devices' private directories live; a memory file system, empty after a reboot.
RUN = Path("/run/natgauge")
#: Where global settings are; a register never makes `clean` write anywhere else.
GLOBAL_ROOTS = ("/proc/sys/", "/sys/")
#: The programs whose orphans `clean` ends.
PROGRAMS: Final = ("natgauge-engine",)

_VERSION = 1
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_LOCK_PATIENCE_SECONDS = 0.3
_INIT_NAMES = ("init", "systemd")

Item = dict[str, Any]


def check_name(name: str) -> str:
    """Refuse a lab's name that could not be part of a file's and a namespace's.

    Raises:
        UsageError: not 1 to 32 of a-z, 0-9 and "-" with a letter or digit at both ends.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f'lab name "{name}": use 1 to 32 of a-z, 0-9 and "-", with a letter or digit at both ends')
    return name


def directory_of(name: str) -> Path:
    """Where the devices of a lab have their private directories."""
    return RUN / name


class Lock:
    """The right to use a name; held by one process at a time, and let go whenever that process ends."""

    def __init__(self, name: str, what: str | None = None) -> None:
        """Name the lock.

        Args:
            name: of its file.
            what: how messages call what it protects; default: the lab of this name.
        """
        self._what = what or f"lab {name}"
        self._path = RUN / f"{name}.lock"
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            HostError: another process holds it (named), or the directory cannot be written.
        """
        deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
        while not self.try_take():
            # Listing and cleaning hold locks for a moment; only a lasting holder is a second user.
            if time.monotonic() > deadline:
                raise HostError(
                    f"{self._what}: in use by process {self.holder() or 'unknown'}; "
                    "wait until it has ended, or use another"
                )
            time.sleep(0.02)

    def try_take(self) -> bool:
        """Take the lock if nobody holds it."""
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


class Register:
    """One lab's list of what it made, kept in step with its file.

    Attributes:
        name: the lab's.
        kind: "netns" or "cable".
        settings: what the lab was made from, so that a later process can use a kept lab.
        kept: whether the lab stays up when the process that made it ends.
    """

    def __init__(self, name: str, kind: str, settings: Mapping[str, Any], *, lock: Lock) -> None:
        self.name = name
        self.kind = kind
        self.settings = dict(settings)
        self.kept = False
        self._items: list[Item] = []
        self._lock = lock

    @classmethod
    def begin(cls, name: str, kind: str, settings: Mapping[str, Any]) -> Self:
        """Take a lab's name. What a killed run left under it is undone first.

        Raises:
            HostError: another process uses the lab.
            UsageError: the name is not one, or a kept lab has it.
        """
        lock = Lock(check_name(name))
        lock.take()
        try:
            if old := cls._load(name, lock):
                old.refuse_kept()
                old.undo()
            return cls(name, kind, settings, lock=lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def reopen(cls, name: str) -> Self:
        """Take an existing lab: to use it when it is kept, or to undo it.

        Raises:
            HostError: another process uses it.
            UsageError: there is none.
        """
        lock = Lock(check_name(name))
        lock.take()
        try:
            register = cls._load(name, lock)
        except BaseException:
            lock.release()
            raise
        if register is None:
            lock.release()
            raise UsageError(f'lab {name}: there is none; "natgauge lab status" lists those there are')
        return register

    @classmethod
    def _load(cls, name: str, lock: Lock) -> Self | None:
        content = _read(name)
        if content is None:
            return None
        register = cls(name, content["kind"], content["settings"], lock=lock)
        register.kept = content["kept"]
        register._items = content["items"]
        return register

    @property
    def directory(self) -> Path:
        """Where the lab's devices have their private directories."""
        return directory_of(self.name)

    def record(self, what: str, **values: str) -> None:
        """Write down what is about to be made: "namespace" (name=), "directory" (path=)."""
        self._items.append({"what": what, **values})
        self._write()

    def refuse_kept(self) -> None:
        """Refuse to make a lab anew that somebody keeps.

        Raises:
            UsageError: it is kept.
        """
        if self.kept:
            raise UsageError(
                f'lab {self.name}: is up and kept; use it, take it down with "natgauge lab down {self.name}", '
                "or choose another name"
            )

    def require_kept(self, kind: str) -> None:
        """Refuse to use a lab that nobody keeps, or of another kind.

        Raises:
            UsageError: it is not kept, or not of this kind.
        """
        if not self.kept or self.kind != kind:
            raise UsageError(
                f'lab {self.name}: is no kept {kind} lab; "natgauge lab down {self.name}" removes what is left of it'
            )

    @property
    def length(self) -> int:
        """How many things are written down."""
        return len(self._items)

    def keep(self) -> None:
        """Let the lab stay up when this process ends."""
        self.kept = True
        self._write()

    def remember_global(self, path: str | Path, value: str) -> None:
        """Write down the present `value` of a global setting that is about to be changed; it is restored at the end.

        Only the first value of a path counts. When another lab has changed the path already, that lab's first value
        is taken, and the last of the labs restores it.

        Raises:
            UsageError: the path is not below /proc/sys or /sys.
        """
        path = str(path)
        if not path.startswith(GLOBAL_ROOTS) or ".." in path:
            raise UsageError(f"global setting {path}: only files below {' or '.join(GLOBAL_ROOTS)} can be remembered")
        if any(item.get("path") == path for item in self._items):
            return
        with _globals_locked():
            others = dict(_other_globals(self.name))
            self.record("global", path=path, value=others.get(path, value.strip()))

    def set_global(self, path: str | Path, value: str | int) -> None:
        """Remember a global setting's present value, then change it.

        Raises:
            HostError: the file is not there, or the kernel refuses the value.
            UsageError: the path is not below /proc/sys or /sys.
        """
        try:
            self.remember_global(path, Path(path).read_text())
            Path(path).write_text(str(value))
        except OSError as error:
            raise HostError(f"global setting {path}: cannot be set to {value} ({error.strerror})") from error

    def undo(self) -> list[str]:
        """Undo all that is written down, last first, and delete the register. The lock stays taken.

        Returns:
            What was done, one sentence each.

        Raises:
            BrokenError: something could not be undone; it stays written down, all else is undone.
        """
        done = self.undo_since(0)
        self._path.unlink(missing_ok=True)
        self._beside.unlink(missing_ok=True)
        return done

    def undo_since(self, length: int) -> list[str]:
        """Undo what was written down after the first `length` things, last first; those stay.

        Returns:
            What was done, one sentence each.

        Raises:
            BrokenError: something could not be undone; it stays written down, all else is undone.
        """
        done: list[str] = []
        failed: list[Item] = []
        reasons: list[str] = []
        while len(self._items) > length:
            step = self._last_step(length)
            try:
                done += _UNDO[step[0]["what"]](self, step)
            except (NatgaugeError, OSError) as error:
                failed = step + failed
                reasons.append(str(error))
            del self._items[-len(step) :]
            self._write(failed)
        if failed:
            self._items += failed
            raise BrokenError(f"lab {self.name}: {reasons[0]}; then run: natgauge lab clean")
        return done

    def _last_step(self, length: int) -> list[Item]:
        """The last item, with those of the same kind before it: namespaces go together, which is much faster."""
        last = len(self._items) - 1
        while last > length and self._items[last - 1]["what"] == self._items[-1]["what"]:
            last -= 1
        return self._items[last:]

    def release(self) -> None:
        """Let go of the lab's name."""
        self._lock.release()

    @property
    def _path(self) -> Path:
        return RUN / f"{self.name}.json"

    @property
    def _beside(self) -> Path:
        return RUN / f"{self.name}.new"

    def _write(self, failed: Collection[Item] = ()) -> None:
        content = {
            "version": _VERSION,
            "name": self.name,
            "kind": self.kind,
            "kept": self.kept,
            "pid": os.getpid(),
            "settings": self.settings,
            "items": [*self._items, *failed],
        }
        # Written beside and renamed, so that a kill at any moment leaves a whole register.
        self._beside.write_text(json.dumps(content, indent=1))
        self._beside.replace(self._path)


def _undo_namespaces(_register: Register, items: list[Item]) -> list[str]:
    there = [item["name"] for item in reversed(items) if namespaces.exists(item["name"])]
    namespaces.delete(there)
    return [f"deleted namespace {name}" for name in there]


def _undo_directories(_register: Register, items: list[Item]) -> list[str]:
    there = [item["path"] for item in reversed(items) if Path(item["path"]).exists()]
    for path in there:
        shutil.rmtree(path)
    return [f"deleted directory {path}" for path in there]


def _undo_globals(register: Register, items: list[Item]) -> list[str]:
    done = []
    with _globals_locked():
        others = dict(_other_globals(register.name))
        for item in reversed(items):
            path = Path(item["path"])
            if item["path"] not in others and path.exists() and path.read_text().strip() != item["value"]:
                path.write_text(item["value"])
                done.append(f"restored {path} to {item['value']}")
    return done


_UNDO: Final[Mapping[str, Callable[[Register, list[Item]], list[str]]]] = {
    "namespace": _undo_namespaces,
    "directory": _undo_directories,
    "global": _undo_globals,
}


@contextmanager
def _globals_locked() -> Iterator[None]:
    """One process at a time may remember or restore global settings."""
    RUN.mkdir(parents=True, exist_ok=True)
    handle = os.open(RUN, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _other_globals(name: str) -> Iterator[tuple[str, str]]:
    """Global settings that other labs remember, with their first values."""
    for other in _registered():
        content = _read(other) if other != name else None
        if content:
            yield from ((item["path"], item["value"]) for item in content["items"] if item["what"] == "global")


def _registered() -> list[str]:
    return sorted(path.stem for path in RUN.glob("*.json"))


def _read(name: str) -> Mapping[str, Any] | None:
    """A register's content; None when there is none.

    Raises:
        HostError: it is damaged or of another version.
    """
    path = RUN / f"{name}.json"
    try:
        content = json.loads(path.read_text())
        version = content["version"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HostError(f"{path}: is damaged; delete it, then run: natgauge lab clean") from error
    if version != _VERSION:
        raise HostError(f"{path}: version {version}, but this natgauge knows {_VERSION}; use the one that wrote it")
    assert isinstance(content, dict)  # noqa: S101 - it has a version
    return content


State = Literal["in use", "kept", "left behind"]


@dataclass(frozen=True, slots=True)
class LabStatus:
    """One lab of this machine.

    Attributes:
        name: its name.
        kind: "netns" or "cable".
        state: used by a live process, kept on purpose, or left behind by a killed one.
        pid: the process using it, else None.
        namespaces: network namespaces it made.
        changed: global settings it changed, with the values they had before.
    """

    name: str
    kind: str
    state: State
    pid: int | None
    namespaces: tuple[str, ...]
    changed: Mapping[str, str]


def status() -> list[LabStatus]:
    """All labs of this machine, by name."""
    found = []
    for name in _registered():
        if content := _read(name):
            items = content["items"]
            pid = _user_of(name)
            found.append(
                LabStatus(
                    name=name,
                    kind=content["kind"],
                    state="in use" if pid is not None else "kept" if content["kept"] else "left behind",
                    pid=pid,
                    namespaces=tuple(item["name"] for item in items if item["what"] == "namespace"),
                    changed={item["path"]: item["value"] for item in items if item["what"] == "global"},
                )
            )
    return found


def _user_of(name: str) -> int | None:
    """The live process that uses a lab; 0 when it cannot be named."""
    lock = Lock(name)
    if lock.try_take():
        lock.release()
        return None
    return lock.holder() or 0


def clean(only: Collection[str] | None = None) -> list[str]:
    """Undo what killed runs left, and labs kept on purpose; labs in use by a live process are left alone.

    Args:
        only: names of labs; None = all of them, and also namespaces that begin with "ng-" and belong to no lab, and
            engines whose parent is gone.

    Returns:
        What was done, one sentence each; empty when there was nothing.

    Raises:
        BrokenError: something could not be undone.
        HostError: a register is damaged or of another version.
    """
    done: list[str] = []
    if only is None:
        done += _end_orphans()
    for name in _registered():
        if (only is None or name in only) and _user_of(name) is None:
            done += take_down(name)
    if only is None:
        done += _delete_strays()
        done += _delete_lock_files()
    return done


def kept_settings(name: str, kind: str) -> Mapping[str, Any] | None:
    """What a lab of this kind was made from that somebody keeps up under this name; None = there is none.

    Raises:
        HostError: the register is damaged or of another version.
    """
    content = _read(name)
    if content is None or not content["kept"] or content["kind"] != kind:
        return None
    settings: Mapping[str, Any] = content["settings"]
    return settings


def take_down(name: str) -> list[str]:
    """Undo one lab that no live process uses, kept or left behind.

    Returns:
        What was done, one sentence each.

    Raises:
        BrokenError: something could not be undone.
        HostError: a live process uses it.
        UsageError: there is no such lab.
    """
    register = Register.reopen(name)
    try:
        return register.undo()
    finally:
        register.release()


def _end_orphans() -> list[str]:
    """End our programs whose parent is gone: they were handed to the init process."""
    orphans = [pid for pid in namespaces.all_processes() if _is_orphan(pid)]
    namespaces.end_processes(orphans)
    return [f"ended process {pid}" for pid in orphans]


def _is_orphan(pid: int) -> bool:
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
        if program not in PROGRAMS:
            return False
        # The name in parentheses may hold anything, so what follows is counted from the last one.
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return parent <= 1 or Path(f"/proc/{parent}/comm").read_text().strip() in _INIT_NAMES
    except OSError:
        return False


def _delete_strays() -> list[str]:
    """Delete our namespaces that no register names."""
    owned = {name for lab in status() for name in lab.namespaces}
    strays = [name for name in namespaces.names() if name.startswith(namespaces.PREFIX) and name not in owned]
    namespaces.delete(strays)
    return [f"deleted namespace {name}" for name in strays]


def _delete_lock_files() -> list[str]:
    """Delete the locks, and unfinished registers, of runs that were killed before they made anything."""
    done = []
    for path in RUN.glob("*.lock"):
        lock = Lock(path.stem)
        if not path.with_suffix(".json").exists() and lock.try_take():
            path.with_suffix(".new").unlink(missing_ok=True)
            lock.release()
            done.append(f"deleted {path}")
    return done
