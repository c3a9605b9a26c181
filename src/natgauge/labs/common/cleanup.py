# SPDX-License-Identifier: Apache-2.0
"""Labs from outside: which there are, taking one down, and cleaning up what killed runs left."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from natgauge import files
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.labs.common import locks, marks, namespaces, protected
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.register import Register, read, refuse_hidden, registered

#: The programs whose orphans `clean` ends.
PROGRAMS: Final = ("natgauge-engine",)

_INIT_NAMES = ("init", "systemd")
#: An init process that looks after ended processes once a second is waited for.
_REAP_SECONDS: Final = 3.0
#: The kernel keeps this many octets of a program's name with each process (proc_pid_comm(5)).
_NAME_OCTETS: Final = 15
#: Of `python -m natgauge` and `python .../natgauge`, the program is among the first words.
_COMMAND_WORDS: Final = 4
#: Names of at most this many processes of a stray namespace are listed.
_MOST_NAMES: Final = 5

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
        user: name of the user who made it; empty = not known.
    """

    name: str
    kind: str
    state: State
    pid: int | None
    namespaces: tuple[str, ...]
    changed: Mapping[str, str]
    user: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """A namespace named like those of natgauge that natgauge did not make.

    Attributes:
        name: its name.
        processes: processes in it.
        why: why it is not deleted, even on request; empty = it may be.
    """

    name: str
    processes: tuple[int, ...]
    why: str = ""

    @property
    def text(self) -> str:
        """The namespace and its processes, for people."""
        shown = [f"{pid} ({protected.name_of(pid)})" for pid in self.processes[:_MOST_NAMES]]
        more = [f"{len(self.processes) - _MOST_NAMES} more"] if len(self.processes) > _MOST_NAMES else []
        inside = f"processes {', '.join([*shown, *more])}" if shown else "no process in it"
        remedy = self.why or '"natgauge lab clean --strays" deletes it and ends its processes'
        return f"left namespace {self.name}: natgauge did not make it, {inside}; {remedy}"


def status() -> list[LabStatus]:
    """All labs of this machine, by name; nothing is made or changed.

    Raises:
        HiddenLabsError: the labs belong to another user.
        HostError: a register is damaged or of another version.
    """
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
                    user=content.get("user", ""),
                )
            )
    return labs


def _user_of(name: str) -> int | None:
    """The live process that uses a lab; 0 when it cannot be named."""
    lock = Lock(name)
    return (lock.holder() or 0) if lock.is_held() else None


def clean(only: Collection[str] | None = None, *, strays: bool = False) -> list[str]:
    """Undo what killed runs left, and labs kept on purpose; labs in use by a live process are left alone.

    Engines of killed runs are gone when it returns: it waits for one that is ending already, too.

    Args:
        only: names of labs; None = all of them, and also namespaces that natgauge made and no lab has, and engines
            whose parent is gone.
        strays: delete also namespaces that begin with "ng-" and that natgauge did not make.

    Returns:
        What was done, one sentence each; empty when there was nothing.

    Raises:
        BrokenError: something could not be undone; all else was.
        HostError: a register is damaged or of another version.
    """
    # Before the registers are read: what is made after this look is nobody's remains.
    present = namespaces.names()
    unused = [name for name in registered() if (only is None or name in only) and _user_of(name) is None]
    labs = [partial(_taken, name) for name in unused]
    if only is not None:
        return _all_done(labs)
    others: list[Callable[[], list[str]]] = [
        partial(_delete_ownerless, present),
        _delete_marks,
        _delete_folders,
        _delete_lock_files,
    ]
    return _all_done([_end_orphans, *labs, *others, *([partial(_delete_strays, present)] if strays else [])])


def plan(*, strays: bool = False) -> list[str]:
    """Return what `clean` would do now, one sentence each; nothing is changed.

    Raises:
        HostError: a register is damaged or of another version.
    """
    present = namespaces.names()
    done = [f"would end process {pid}" for pid in namespaces.all_processes() if _is_orphan(pid)]
    for lab in status():
        if lab.state != "in use" and (content := read(lab.name)):
            done.append(f"would take down {_title(content)}")
            done += [f"would {_undoing(item)}" for item in reversed(content["items"])]
    done += [f"would delete namespace {name}" for name in ownerless(present)]
    if strays:
        done += [f"would delete namespace {name}" for name in _doomed_strays(present)]
    return done


def _undoing(item: Mapping[str, str]) -> str:
    match item:
        case {"what": "namespace", "name": name}:
            return f"delete namespace {name}"
        case {"what": "directory", "path": path}:
            return f"delete directory {path}"
        case {"what": "global", "path": path, "value": value}:
            return f"restore {path} to {value}, unless another program has changed it"
    return f"undo on another machine: {item.get('says', '')}"


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


def _taken(name: str) -> list[str]:
    content = read(name)
    kept = [f"took down {_title(content)}"] if content is not None and content["kept"] else []
    return [*kept, *take_down(name)]


def _title(content: Mapping[str, Any]) -> str:
    by = f" by {content['user']}" if content.get("user") else ""
    return f"lab {content['name']}, {'kept' if content['kept'] else 'left behind'}{by}"


def take_down(name: str) -> list[str]:
    """Undo one lab that no live process uses, kept or left behind.

    Returns:
        What was done, and what was left because others had changed it, one sentence each.

    Raises:
        BrokenError: something could not be undone.
        HostError: a live process uses it.
        UsageError: there is no such lab.
    """
    refuse_hidden()
    register = Register.reopen(name)
    try:
        return register.undo() + register.left
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
        parent = protected.parent_of(pid)
        if not parent:
            # It has ended, or its parent is outside of this container.
            return False
        if _is_natgauge(parent):
            return False
        if parent == 1 or _name_of(parent) in _INIT_NAMES:
            return True
        return _program_of(parent) is None
    except OSError:
        return False


def _is_natgauge(pid: int) -> bool:
    """Whether a process is a natgauge: in a container, the first process may be one."""
    if pid in locks.holders():
        return True
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    try:
        program = _program_of(pid) or ""
    except PermissionError:
        # Of the first process of a machine even root may read only the command.
        program = Path(command[0]).name
    return program.startswith("python") and any("natgauge" in Path(word).name for word in command[:_COMMAND_WORDS])


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


def _owned() -> set[str]:
    return {name for lab in status() for name in lab.namespaces}


def ownerless(present: Sequence[str] | None = None) -> list[str]:
    """Return the namespaces that natgauge made and that no register names.

    Args:
        present: namespaces to look at, listed before; None = those there are now.

    Raises:
        HostError: a register is damaged or of another version, or the labs belong to another user.
    """
    present = namespaces.names() if present is None else present
    owned, marked = _owned(), marks.names()
    return [name for name in present if name in marked and name not in owned and namespaces.is_marked(name)]


def _delete_ownerless(present: Sequence[str]) -> list[str]:
    doomed = ownerless(present)
    namespaces.delete(doomed)
    return [f"deleted namespace {name}" for name in doomed]


def _delete_marks() -> list[str]:
    """Delete marks whose namespaces are gone; a lab that is in use may be about to give its namespace the name."""
    if not any(lock.is_held() for lock in locks.every()):
        for name in marks.names():
            if not namespaces.exists(name) or not namespaces.is_marked(name):
                marks.remove(name)
    return []


def find_strays(present: Sequence[str] | None = None) -> list[Stray]:
    """Return the namespaces that are named like those of natgauge, and that natgauge did not make.

    Args:
        present: namespaces to look at, listed before; None = those there are now.

    Raises:
        HostError: a register is damaged or of another version, or the labs belong to another user.
    """
    present = namespaces.names() if present is None else present
    owned = _owned()
    names = [name for name in present if name.startswith(namespaces.PREFIX) and name not in owned]
    found = [name for name in names if namespaces.exists(name) and not namespaces.is_marked(name)]
    return [Stray(name, namespaces.processes(name), namespaces.refusal(name, unmarked=True)) for name in found]


def _doomed_strays(present: Sequence[str]) -> list[str]:
    return [stray.name for stray in find_strays(present) if not stray.why]


def _delete_strays(present: Sequence[str]) -> list[str]:
    doomed = _doomed_strays(present)
    namespaces.delete(doomed, unmarked=True)
    return [f"deleted namespace {name}" for name in doomed]


def _delete_folders() -> list[str]:
    """Delete the folders of labs whose registers are gone: a user may have deleted a damaged one.

    Raises:
        BrokenError: one cannot be deleted.
    """
    done = []
    for folder in locks.folder("labs").glob("*"):
        lock = Lock(folder.name)
        if folder.is_dir() and not lock.path.with_suffix(".json").exists() and lock.try_take():
            try:
                shutil.rmtree(folder)
                done.append(f"deleted directory {folder}")
            except OSError as error:
                raise BrokenError(f"{folder}: cannot be deleted ({error.strerror or error})") from error
            finally:
                lock.release()
    return done


def _delete_lock_files() -> list[str]:
    """Delete the locks, and unfinished registers, of runs that were killed before they made anything."""
    done = []
    for lock in locks.every():
        register = lock.path.with_suffix(".json")
        if not register.exists() and lock.try_take():
            files.remove(register)
            lock.release()
            done.append(f"deleted {lock.path}")
    return done
