# SPDX-License-Identifier: Apache-2.0
"""Global settings of a machine that a gateway needs: read, remembered by the lab, written.

A process that uses such a setting relies on it until the process ends. Raising the setting disturbs no other process;
lowering it is refused while another process relies on it. The reliance is a lock on the setting's own file, so the
kernel releases it when the process ends, for any reason. A process that makes several labs one after the other keeps
the lock between them (`reliance_kept`).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Protocol

from natgauge.errors import HostError

_MODPROBE_SECONDS: Final = 10.0

#: Open files of settings whose locks outlast the gateways that took them, by path; None = locks end with the gateways.
_kept: ContextVar[dict[Path, list[int]] | None] = ContextVar("kept reliance", default=None)


@contextmanager
def reliance_kept() -> Iterator[None]:
    """Within the block, keep the locks of all settings of this machine that a gateway of this process used.

    The values are still restored with each gateway. But no other natgauge can lower a setting between the end of a lab
    and the beginning of the next. The next gateway takes over the locks.
    """
    if _kept.get() is not None:
        yield
        return
    held: dict[Path, list[int]] = {}
    before = _kept.set(held)
    try:
        yield
    finally:
        _kept.reset(before)
        for handles in held.values():
            for handle in handles:
                os.close(handle)


class Remembers(Protocol):
    """Stores values before their change, so that they can be restored even after a kill (labs and registers do)."""

    def remember_global(self, path: str | Path, value: str) -> None:
        """Write down the present `value` of the file `path`; it is restored when the lab is undone."""


class MachineSetting(ABC):
    """One global setting of a machine, a whole number held in one or more files.

    Attributes:
        name: name in messages, e.g. "table_size (nf_conntrack_max)".
        paths: at least one file; all are written, the smallest value counts.
        module: kernel module whose loading makes the files appear; None = none does.
    """

    def __init__(self, name: str, paths: Sequence[str | Path], module: str | None, where: str = "") -> None:
        """Name the setting; nothing is touched.

        Args:
            name: e.g. "table_size".
            paths: at least one file.
            module: kernel module whose loading makes the files appear.
            where: ends the name in messages, e.g. " of ssh host gateway".
        """
        self.paths = tuple(Path(path) for path in paths)
        self.module = module
        self.name = f"{name} ({', '.join(path.name for path in self.paths)}){where}"

    @abstractmethod
    def available(self) -> bool:
        """Whether the machine has the setting; a missing kernel module is loaded first."""

    @abstractmethod
    def values(self) -> dict[str, int]:
        """The present values by name of their files.

        Raises:
            HostError: the machine does not have it, or it is no number.
        """

    def read(self) -> int:
        """The present value, the smallest one of several files.

        Raises:
            HostError: the machine does not have it, or it is no number.
        """
        return min(self.values().values())

    @abstractmethod
    def rely(self) -> None:
        """See that no other natgauge lowers it from now on.

        Raises:
            HostError: another one has lowered it and still runs.
        """

    def write(self, value: int) -> None:
        """Set the value, and rely on it; the lab stores the previous value, and restores it even after a kill.

        Raises:
            HostError: it is refused, or another natgauge relies on a higher value.
        """
        # Reading loads the module where that is what is missing.
        before = self.values()
        self._claim(value, min(before.values()))
        for path in self.paths:
            self._remember(path, before[path.name])
            self._put(path, value)
        if (accepted := self.read()) < value:
            raise HostError(f"{self.name}: set to {value}, but the kernel made it {accepted}; use a smaller value")

    @abstractmethod
    def release(self) -> None:
        """Stop relying on the setting."""

    @abstractmethod
    def _claim(self, value: int, present: int) -> None:
        """Rely on a value that is about to be set."""

    @abstractmethod
    def _remember(self, path: Path, value: int) -> None:
        """Have the lab write down what a file holds; only the first value of a file counts."""

    @abstractmethod
    def _put(self, path: Path, value: int) -> None:
        """Write a file.

        Raises:
            HostError: the machine refuses it.
        """


class LocalSetting(MachineSetting):
    """A global setting of this machine."""

    def __init__(self, name: str, paths: Sequence[str | Path], *, memory: Remembers, module: str | None = None) -> None:
        """Name the setting; nothing is touched.

        Args:
            name: e.g. "table_size".
            paths: at least one file.
            memory: stores and restores the previous value.
            module: kernel module whose loading makes the files appear.
        """
        super().__init__(name, paths, module)
        self._memory = memory
        self._reliance: dict[Path, int] = {}

    def available(self) -> bool:
        """Whether this kernel has the setting; a missing kernel module is loaded first."""
        if not self._exists() and self.module:
            _load_module(self.module)
        return self._exists()

    def values(self) -> dict[str, int]:
        """The present values by name of their files.

        Raises:
            HostError: this kernel does not have it, or it is no number.
        """
        if not self.available():
            hint = f'try "modprobe {self.module}"' if self.module else "use another kernel"
            raise HostError(f"{self.name}: this kernel has no {self.paths[0]}; {hint}")
        try:
            return {path.name: int(path.read_text()) for path in self.paths}
        except (OSError, ValueError) as error:
            raise HostError(f"{self.name}: {self.paths[0]} cannot be read ({error})") from error

    def rely(self) -> None:
        """See that no other natgauge lowers it from now on.

        Raises:
            HostError: another one has lowered it and still runs.
        """
        self._lock(fcntl.LOCK_SH, "has lowered it")

    def release(self) -> None:
        """Stop relying on it, or keep the locks for the next gateway."""
        kept = _kept.get()
        while self._reliance:
            path, handle = self._reliance.popitem()
            if kept is None:
                os.close(handle)
            else:
                kept.setdefault(path, []).append(handle)

    def _claim(self, value: int, present: int) -> None:
        if value < present:
            self._lock(fcntl.LOCK_EX, "relies on it")
        else:
            self.rely()

    def _remember(self, path: Path, value: int) -> None:
        self._memory.remember_global(path, str(value))

    def _exists(self) -> bool:
        return all(path.exists() for path in self.paths)

    def _put(self, path: Path, value: int) -> None:
        try:
            path.write_text(str(value))
        except OSError as error:
            raise HostError(
                f"{self.name}: {path} cannot be set to {value} ({error.strerror}); run natgauge as root, outside of "
                "containers and network namespaces"
            ) from error

    def _lock(self, kind: int, who: str) -> None:
        self._open()
        for handle in self._reliance.values():
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HostError(
                    f"{self.name}: another natgauge on this machine {who}; wait until it has ended"
                ) from None

    def _open(self) -> None:
        kept = _kept.get() or {}
        for path in self.paths:
            if path not in self._reliance:
                handles = kept.get(path)
                self._reliance[path] = handles.pop() if handles else os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _load_module(name: str) -> None:
    """Load a kernel module; without success when the kernel has none or modprobe is missing."""
    try:
        subprocess.run(["modprobe", name], capture_output=True, timeout=_MODPROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
