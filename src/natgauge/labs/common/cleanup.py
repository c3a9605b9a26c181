# SPDX-License-Identifier: Apache-2.0
"""Labs from outside: which there are, taking one down, and cleaning up what killed runs left."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from natgauge import files
from natgauge.errors import NatgaugeError
from natgauge.labs.common import locks, namespaces
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.register import Register, read, registered

#: The programs whose orphans `clean` ends.
PROGRAMS: Final = ("natgauge-engine",)

_INIT_NAMES = ("init", "systemd")
#: An init process that looks after ended processes once a second is waited for.
_REAP_SECONDS: Final = 3.0
#: The kernel keeps this many octets of a program's name with each process (proc_pid_comm(5)).
_NAME_OCTETS: Final = 15

State = Literal["in use", "kept", "left behind"]


@dataclass(frozen=True, slots=True)
class LabStatus:
    """One lab of this machine.

    Attributes:
        name: name of the lab.
        kind: "netns", "cable", "ssh" or "vm".
        state: used by a live process, kept on purpose, or left behind by a killed one.
        pid: process that uses it, else None.
        namespaces: network namespaces that it made.
        changed: global settings that it changed, with their previous values.
    """

    name: str
    kind: str
    state: State
    pid: int | None
    namespaces: tuple[str, ...]
    changed: Mapping[str, str]


def status() -> list[LabStatus]:
    """All labs of this machine, by name."""
    labs = []
    for name in registered():
        if content := read(name):
            items = content["items"]
            pid = _user_of(name)
            labs.append(
                LabStatus(
                    name=name,
                    kind=content["kind"],
                    state="in use" if pid is not None else "kept" if content["kept"] else "left behind",
                    pid=pid,
                    namespaces=tuple(item["name"] for item in items if item["what"] == "namespace"),
                    changed={item["path"]: item["value"] for item in items if item["what"] == "global"},
                )
            )
    return labs


def _user_of(name: str) -> int | None:
    """The live process that uses a lab; 0 when it cannot be named."""
    lock = Lock(name)
    if lock.take_soon(0.0):
        lock.release()
        return None
    return lock.holder() or 0


def clean(only: Collection[str] | None = None) -> list[str]:
    """Undo what killed runs left, and labs kept on purpose; labs in use by a live process are left alone.

    Engines of killed runs are gone when it returns: it waits for one that is ending already, too.

    Args:
        only: names of labs; None = all of them, and also namespaces that begin with "ng-" and belong to no lab, and
            engines whose parent is gone.

    Returns:
        What was done, one sentence each; empty when there was nothing.

    Raises:
        BrokenError: something could not be undone; all else was.
        HostError: a register is damaged or of another version.
    """
    unused = [name for name in registered() if (only is None or name in only) and _user_of(name) is None]
    labs = [partial(take_down, name) for name in unused]
    return _all_done(labs if only is not None else [_end_orphans, *labs, _delete_strays, _delete_lock_files])


def undo_left_behind() -> list[str]:
    """Undo the labs and locks that killed runs left on this machine, and wait until their engines have ended.

    Labs in use and kept labs remain. Namespaces without a register remain, too: other programs may have made them.

    Returns:
        What was done, one sentence each; empty when there was nothing.

    Raises:
        BrokenError: something could not be undone; all else was.
        HostError: a register is damaged or of another version.
    """
    labs = [partial(take_down, lab.name) for lab in status() if lab.state == "left behind"]
    return _all_done([_end_orphans, *labs, _delete_lock_files])


def _all_done(steps: Iterable[Callable[[], list[str]]]) -> list[str]:
    """Take every step, whatever becomes of the others: a machine that cannot be reached keeps no other from its turn.

    Raises:
        NatgaugeError: the first that a step raised.
    """
    done: list[str] = []
    failed: list[NatgaugeError] = []
    for step in steps:
        try:
            done += step()
        except NatgaugeError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return done


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
    """End our programs whose parent is gone, and wait until they have ended.

    Raises:
        BrokenError: one does not end within some seconds.
    """
    orphans = [pid for pid in namespaces.all_processes() if _is_orphan(pid)]
    ended = namespaces.end_processes(orphans)
    _wait_reaped(orphans)
    return [f"ended process {pid}" for pid in ended]


def _wait_reaped(pids: Collection[int]) -> None:
    """Wait until the init process has taken the ended processes off the list of processes, some seconds at most.

    A process that it never takes off has ended all the same, and holds nothing.
    """
    until = time.monotonic() + _REAP_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)


def _is_orphan(pid: int) -> bool:
    """Whether a process runs one of our programs, and its parent has ended, or is ending."""
    try:
        if not _runs_ours(pid):
            return False
        # The name in parentheses may hold anything, so what follows is counted from the last one.
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if parent <= 1 or _name_of(parent) in _INIT_NAMES:
            return True
        return _program_of(parent) is None
    except OSError:
        return False


def _runs_ours(pid: int) -> bool:
    """Whether a process runs one of our programs.

    A process that is ending has no program any more, while its threads may work for a second: it still has its name.
    """
    program = _program_of(pid)
    if program is None:
        return _name_of(pid) in {name[:_NAME_OCTETS] for name in PROGRAMS}
    return program in PROGRAMS


def _program_of(pid: int) -> str | None:
    """Name of the file that a process runs; None = the process is ending, or has ended."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
    except FileNotFoundError:
        return None


def _name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _delete_strays() -> list[str]:
    """Delete our namespaces that no register names."""
    owned = {name for lab in status() for name in lab.namespaces}
    strays = [name for name in namespaces.names() if name.startswith(namespaces.PREFIX) and name not in owned]
    namespaces.delete(strays)
    return [f"deleted namespace {name}" for name in strays]


def _delete_lock_files() -> list[str]:
    """Delete the locks, and unfinished registers, of runs that were killed before they made anything."""
    done = []
    for path in locks.RUN.glob("*.lock"):
        lock = Lock(path.stem)
        if not path.with_suffix(".json").exists() and lock.try_take():
            files.remove(path.with_suffix(".json"))
            lock.release()
            done.append(f"deleted {path}")
    return done
