# SPDX-License-Identifier: Apache-2.0
"""A record of what each lab makes, written first, so that the remains of a killed run can be found and undone.

A register is one file, /run/natgauge/<lab>.json, and a lock next to it that the process using the lab holds. The kernel
releases the lock however that process ends, so a register without a holder is either kept on purpose or left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from natgauge import files
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.labs import kinds
from natgauge.labs.common import locks, namespaces
from natgauge.labs.common.locks import Lock, check_name, directory_of

#: Where global settings are; a register never makes `clean` write anywhere else.
GLOBAL_ROOTS = ("/proc/sys/", "/sys/")
_VERSION = 1

Item = dict[str, Any]


class Register:
    """One lab's list of its changes, always equal to its file.

    Attributes:
        name: name of the lab.
        kind: "netns", "cable", "ssh" or "vm".
        settings: inputs of the lab, so that a later process can use a kept lab.
        kept: whether the lab remains when the process that made it ends.
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
        content = read(name)
        if content is None:
            return None
        register = cls(name, content["kind"], content["settings"], lock=lock)
        register.kept = content["kept"]
        register._items = content["items"]
        return register

    @property
    def directory(self) -> Path:
        """Parent of the private directories of the lab's devices."""
        return directory_of(self.name)

    def record(self, what: str, **values: str) -> None:
        """Write down what is about to be made: "namespace" (name=), "directory" (path=).

        "remote" (undo=, says=) is undone by a shell snippet on another machine, which `settings` name: its host as
        `natgauge.labs.ssh.openssh.Host` has it, and the lab's token.
        """
        self._items.append({"what": what, **values})
        self._write()

    def refuse_kept(self) -> None:
        """Refuse to replace a lab that is kept.

        Raises:
            UsageError: it is kept.
        """
        if self.kept:
            raise UsageError(
                f'lab {self.name}: is up and kept; use it, take it down with "natgauge lab down {self.name}", '
                "or choose another name"
            )

    def require_kept(self, kind: str) -> None:
        """Refuse to use a lab that is not kept, or of another kind.

        Raises:
            UsageError: it is not kept, or not of this kind.
        """
        if not self.kept or self.kind != kind:
            raise UsageError(
                f'lab {self.name}: is no kept {kind} lab; "natgauge lab down {self.name}" removes what is left of it'
            )

    @property
    def length(self) -> int:
        """Number of recorded changes."""
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
        files.remove(self._path)
        return done

    def undo_since(self, length: int) -> list[str]:
        """Undo all recorded changes after the first `length` ones, last change first.

        Returns:
            The changes undone, one sentence each.

        Raises:
            BrokenError: a change could not be undone. Its record remains; all other changes are undone.
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
        """Return the last item, with earlier items of the same kind: namespaces are deleted together, much faster."""
        last = len(self._items) - 1
        while last > length and self._items[last - 1]["what"] == self._items[-1]["what"]:
            last -= 1
        return self._items[last:]

    def release(self) -> None:
        """Release the lock on the lab's name; another process may take it."""
        self._lock.release()

    @property
    def _path(self) -> Path:
        return locks.RUN / f"{self.name}.json"

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
        files.replace(self._path, json.dumps(content, indent=1))


def _undo_namespaces(_register: Register, items: list[Item]) -> list[str]:
    existing = [item["name"] for item in reversed(items) if namespaces.exists(item["name"])]
    namespaces.delete(existing)
    return [f"deleted namespace {name}" for name in existing]


def _undo_directories(_register: Register, items: list[Item]) -> list[str]:
    existing = [item["path"] for item in reversed(items) if Path(item["path"]).exists()]
    for path in existing:
        shutil.rmtree(path)
    return [f"deleted directory {path}" for path in existing]


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


def _undo_remote(register: Register, items: list[Item]) -> list[str]:
    undo = kinds.get(register.kind).undo
    if undo is None:
        raise BrokenError(f"labs of kind {register.kind} undo nothing on other machines; use the natgauge that made it")
    return undo(register.directory, register.settings, list(reversed(items)))


_UNDO: Final[Mapping[str, Callable[[Register, list[Item]], list[str]]]] = {
    "namespace": _undo_namespaces,
    "directory": _undo_directories,
    "global": _undo_globals,
    "remote": _undo_remote,
}


@contextmanager
def _globals_locked() -> Iterator[None]:
    """Hold the lock of global settings: one process at a time may record or restore them."""
    locks.RUN.mkdir(parents=True, exist_ok=True)
    handle = os.open(locks.RUN, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _other_globals(name: str) -> Iterator[tuple[str, str]]:
    """Global settings that other labs remember, with their first values."""
    for other in registered():
        content = read(other) if other != name else None
        if content:
            yield from ((item["path"], item["value"]) for item in content["items"] if item["what"] == "global")


def registered() -> list[str]:
    """Names of all labs of this machine, sorted."""
    return sorted(path.stem for path in locks.RUN.glob("*.json"))


def read(name: str) -> Mapping[str, Any] | None:
    """A register's content; None when there is none.

    Raises:
        HostError: it is damaged or of another version.
    """
    path = locks.RUN / f"{name}.json"
    try:
        content = json.loads(path.read_text())
        version = content["version"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HostError(f"{path}: is damaged; delete it, then run: natgauge lab clean") from error
    if version != _VERSION:
        raise HostError(f"{path}: version {version}, but this natgauge reads {_VERSION}; use the one that wrote it")
    assert isinstance(content, dict)  # noqa: S101 - it has a version
    return content


def kept_settings(name: str, kind: str) -> Mapping[str, Any] | None:
    """Return the inputs of a kept lab of this kind and name; None = there is none.

    Raises:
        HostError: the register is damaged or of another version.
    """
    content = read(name)
    if content is None or not content["kept"] or content["kind"] != kind:
        return None
    settings: Mapping[str, Any] = content["settings"]
    return settings
