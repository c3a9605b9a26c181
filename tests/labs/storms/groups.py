# SPDX-License-Identifier: Apache-2.0
"""Control groups of Linux: all processes that a program starts, however it starts them, and a limit of their memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Self

_SECONDS: Final = 10.0
_CONTROLLERS: Final = ("memory", "cpu")
#: Time after which the quota of a group begins anew, microseconds: the kernel's default.
_PERIOD: Final = 100_000


def _mounted() -> dict[str, Path]:
    """Where groups can be made: "all" of version 2, "memory" and "cpu" in the version that has this controller."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found["all"] = Path(place)
            controllers = Path(place) / "cgroup.subtree_control"
            given = controllers.read_text().split() if controllers.exists() else []
        elif kind == "cgroup":
            given = options.split(",")
        else:
            continue
        found |= {name: Path(place) for name in _CONTROLLERS if name in given}
    return found


def missing() -> str:
    """Why no process can be followed here; empty = it can."""
    return "" if "all" in _mounted() else "no cgroup2 is mounted, so what a killed run started cannot be found"


def memory_missing() -> str:
    """Why no memory can be limited here; empty = it can."""
    return missing() or ("" if "memory" in _mounted() else "no control group limits memory here")


def cpu_missing() -> str:
    """Why no processor time can be limited here; empty = it can."""
    return missing() or ("" if "cpu" in _mounted() else "no control group limits processor time here")


class Group:
    """A control group, in which programs are started; `with` makes it and removes it.

    Args:
        name: of its folder.
        octets: limit of the memory of all its processes; None = no limit.
        cores: quota of their processor time, cores; None = no quota.
    """

    def __init__(self, name: str, octets: int | None = None, cores: float | None = None) -> None:
        mounted = _mounted()
        self._folders = [mounted["all"] / name]
        self._octets = octets
        self._cores = cores
        wanted = {"memory": octets, "cpu": cores}
        limited = [mounted[controller] / name for controller, value in wanted.items() if value is not None]
        self._folders += [folder for folder in limited if folder not in self._folders]

    def __enter__(self) -> Self:
        for folder in self._folders:
            folder.mkdir()
        if self._octets is not None:
            folder = self._folders[-1]
            limit = folder / "memory.limit_in_bytes"
            (limit if limit.exists() else folder / "memory.max").write_text(str(self._octets))
        if self._cores is not None:
            quota = int(self._cores * _PERIOD)
            folder = self._folders[-1]
            limit = folder / "cpu.cfs_quota_us"
            if limit.exists():
                limit.write_text(str(quota))
            else:
                (folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
        return self

    def __exit__(self, *_error: object) -> None:
        """End what is left in it, and remove it."""
        self.end()
        deadline = time.monotonic() + _SECONDS
        for folder in self._folders:
            # A process that was killed counts until the kernel has freed its memory, a guest's for example.
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdout: IO[str],
        stderr: IO[str],
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a program in it, with further variables of its environment."""
        enter = "".join(f"echo 0 > {folder}/cgroup.procs; " for folder in self._folders)
        variables = {**os.environ, "PYTHONFAULTHANDLER": "1", **(environment or {})}
        line = ["/bin/sh", "-c", f'{enter}exec "$@"', "sh", *command]
        return subprocess.Popen(line, cwd=cwd, stdout=stdout, stderr=stderr, text=True, env=variables)

    def members(self) -> list[int]:
        """The processes in it, except those that have ended and only wait for their parent."""
        listed = (self._folders[0] / "cgroup.procs").read_text().split()
        return [int(pid) for pid in listed if _lives(int(pid))]

    def most_octets(self) -> int:
        """Most memory that its processes had at a time."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            with suppress(OSError):
                return int((self._folders[-1] / name).read_text())
        raise LookupError(f"{self._folders[-1]}: no figure of its memory")

    def out_of_memory(self) -> bool:
        """Whether the kernel killed one of its processes because the memory had ended."""
        for name in ("memory.oom_control", "memory.events"):
            with suppress(OSError):
                for line in (self._folders[-1] / name).read_text().splitlines():
                    word, number = line.split()
                    if word == "oom_kill" and int(number) > 0:
                        return True
        return False

    def end(self) -> None:
        """Kill what is in it.

        Raises:
            TimeoutError: something does not end.
        """
        deadline = time.monotonic() + _SECONDS
        while members := self.members():
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._folders[0]}: {members} do not end")
            time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}
