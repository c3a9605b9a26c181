# SPDX-License-Identifier: Apache-2.0
"""Labs from outside: which there are, taking one down, and cleaning up what killed runs left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from natgauge.errors import BrokenError, NatgaugeError
from natgauge.file_access import whole_name
from natgauge.host import process_files
from natgauge.interruption import uninterrupted
from natgauge.labs.common import locks, namespaces, processes, register, undoing
from natgauge.labs.common.locks import InUseError, Lock, Subfolder
from natgauge.labs.common.register import Register, read, refuse_hidden, registered
from natgauge.labs.common.undoing import Decision, Deed, Gone, Left, Tell, deed

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
#: Ends of names in the folder of labs: registers and locks.
_REGISTER, _LOCK = ".json", ".lock"

State = Literal["in use", "kept", "left behind"]


@dataclass(frozen=True, slots=True)
class LabStatus:
    """One lab of this machine.

    Attributes:
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
        why: why it is not deleted, even on request; empty = it may be.
    """

    name: str
    processes: tuple[int, ...]
    why: str = ""

    @property
    def text(self) -> str:
        """The namespace and its processes, for people."""
        return self.left.done

    @property
    def left(self) -> Left:
        """The decision that it stays."""
        shown = [f"{pid} ({processes.name_of(pid)})" for pid in self.processes[:_MOST_NAMES]]
        more = [f"{len(self.processes) - _MOST_NAMES} more"] if len(self.processes) > _MOST_NAMES else []
        inside = f"processes {', '.join([*shown, *more])}" if shown else "no process in it"
        remedy = self.why or '"natgauge lab clean --strays" deletes it and ends its processes'
        return Left(f"namespace {self.name}", f"natgauge did not make it, {inside}; {remedy}")


def status() -> list[LabStatus]:
    """All labs of this machine, by name; nothing is made or changed."""
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
    """
    done: list[str] = []
    carry_out(decide(only, strays=strays), done.append)
    return done


def decide(only: Collection[str] | None = None, *, strays: bool = False) -> list[Decision]:
    """Decide what cleaning takes away now, and what it leaves; nothing is changed.

    A decision on a lab is made once more under the lab's lock when it is carried out, by the same functions.

    Args:
        only: names of labs; None = all of them, and also namespaces that natgauge made and no lab has, marks without a
            namespace, folders and locks without a lab, and engines whose parent is gone.
        strays: decide that also namespaces go that begin with "ng-" and that natgauge did not make.
    """
    # Before the registers are read: what is made after this look is nobody's remains.
    present = namespaces.names()
    gone = Gone()
    unused = [name for name in registered() if (only is None or name in only) and _user_of(name) is None]
    labs = [_of_lab(name, gone) for name in unused]
    if only is not None:
        return labs
    others: list[Callable[[], Iterable[Decision]]] = [
        partial(_of_ownerless, present, gone),
        partial(_of_partial, gone),
        partial(_of_marks, gone),
        partial(_of_files, gone),
        _of_locks,
        partial(_of_strays, present, gone, doomed=strays),
    ]
    return [*_of_orphans(), *labs, *(decision for each in others for decision in _guarded(each))]


def would(decisions: Iterable[Decision]) -> list[str]:
    """Return the lines of a dry run."""
    return [outcome.would for decision in decisions for outcome in decision.outcomes]


def carry_out(decisions: Collection[Decision], tell: Tell) -> None:
    """Carry out every decision, whatever becomes of the others."""
    failed: list[NatgaugeError] = []
    for decision in decisions:
        try:
            decision.act(tell)
        except NatgaugeError as error:
            failed.append(error)
        for left in () if decision.whole else decision.left:
            if left.fails:
                failed.append(left.error or BrokenError(f"{left.what}: {left.why}"))
            else:
                tell(left.done)
    if failed:
        raise failed[0]


def _guarded(look: Callable[[], Iterable[Decision]]) -> list[Decision]:
    """Return decisions, or one that all stays of which nothing can be known; other things go all the same."""
    try:
        return list(look())
    except NatgaugeError as error:
        return [Decision((Left("namespaces and files of no lab", str(error), fails=True, error=error),))]


def _of_lab(name: str, gone: Gone) -> Decision:
    """Decide on a lab that no live process uses."""
    try:
        register = Register.look(name)
        if register is None:
            return Decision(())
        decisions = register.decide(gone)
    except NatgaugeError as error:
        return Decision((Left(f"lab {name}", str(error), fails=True, error=error),))
    outcomes = (outcome for decision in decisions for outcome in decision.outcomes)
    return Decision((_title(register), *outcomes), partial(_take_lab, name), whole=True)


def _take_lab(name: str, tell: Tell) -> None:
    """Undo a lab, unless another process has begun to use it, or to undo it."""
    try:
        register = Register.reopen_any(name)
    except InUseError:
        tell(Left(f"lab {name}", f"in use by {Lock(name).holder_in_words()}").done)
        return
    if register is None:
        tell(Left(f"lab {name}", "another natgauge has taken it down meanwhile").done)
        return
    tell(_title(register).done)
    _undo(register, tell)


def _title(register: Register) -> Deed:
    by = f" by {register.user}" if register.user else ""
    return deed("take down", f"lab {register.name}, {'kept' if register.kept else 'left behind'}{by}")


def undo_left_behind() -> list[str]:
    """Undo the labs and locks that killed runs left on this machine, and wait until their engines have ended.

    Labs in use and kept labs remain. Namespaces without a register remain, too: other programs may have made them.
    """
    gone = Gone()
    labs = [_of_lab(lab.name, gone) for lab in status() if lab.state == "left behind"]
    done: list[str] = []
    carry_out([*_of_orphans(), *labs, *_of_files(gone, folders=False), *_of_locks()], done.append)
    return done


def take_down(name: str, tell: Tell | None = None) -> list[str]:
    """Undo one lab that no live process uses, kept or left behind."""
    refuse_hidden()
    done: list[str] = []

    def both(line: str) -> None:
        done.append(line)
        if tell is not None:
            tell(line)

    _undo(Register.reopen(name), both)
    return done


@uninterrupted()
def _undo(register: Register, tell: Tell) -> None:
    try:
        register.undo(tell)
    finally:
        for line in register.left:
            tell(line)
        register.release()


def has_ended(pid: int) -> bool:
    """Whether a process has ended, also where its parent has not taken it off the list of processes yet."""
    try:
        return process_files.ends(pid, 0.0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)


def _of_orphans() -> list[Decision]:
    """Decide that our programs end whose parent is gone."""
    never = processes.ancestry()
    orphans = [pid for pid in namespaces.all_processes() if pid not in never and _is_orphan(pid)]
    deeds = {pid: deed("end", f"process {pid}") for pid in orphans if not has_ended(pid)}

    def end(tell: Tell) -> None:
        ended = namespaces.end_processes(orphans)
        _wait_reaped(orphans)
        for pid in ended:
            tell(deeds.get(pid, deed("end", f"process {pid}")).done)

    return [Decision(tuple(deeds.values()), end)] if orphans else []


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
        parent = processes.parent_of(pid)
        # Without one it has ended, or its parent is outside of this container.
        if not parent or _is_natgauge(parent):
            return False
        return parent == 1 or _name_of(parent) in _INIT_NAMES or _program_of(parent) is None
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
    return process_files.name_of(Path(f"/proc/{pid}"))


def _owned(gone: Collection[str] = ()) -> set[str]:
    return {name for lab in status() if lab.name not in gone for name in lab.namespaces}


def ownerless(present: Sequence[str] | None = None) -> list[str]:
    """Return the namespaces that natgauge made and that no register names, of those listed before in `present`.

    None = of those that there are now.
    """
    present = namespaces.names() if present is None else present
    owned, marked = _owned(), namespaces.mark_names()
    return [name for name in present if name in marked and name not in owned and namespaces.is_marked(name)]


def _of_ownerless(present: Sequence[str], gone: Gone) -> list[Decision]:
    return undoing.going([name for name in ownerless(present) if name not in gone.namespaces], gone)


def find_strays(present: Sequence[str] | None = None, gone: Gone | None = None) -> list[Stray]:
    """Return the namespaces that are named like those of natgauge, and that natgauge did not make."""
    present = namespaces.names() if present is None else present
    owned = _owned(gone.labs if gone else ())
    names = [name for name in present if name.startswith(namespaces.PREFIX) and name not in owned]
    found = [name for name in names if namespaces.exists(name) and not namespaces.is_marked(name)]
    return [Stray(name, namespaces.processes(name), namespaces.refusal(name, unmarked=True)) for name in found]


def _of_strays(present: Sequence[str], gone: Gone, *, doomed: bool) -> Iterable[Decision]:
    """Decide on strays: they stay, and are listed, unless they are `doomed`."""
    found = [stray for stray in find_strays(present, gone) if stray.name not in gone.namespaces]
    if doomed:
        yield from undoing.going([stray.name for stray in found if not stray.why], gone, unmarked=True)
    for stray in found:
        if stray.name not in gone.namespaces | gone.left:
            yield Decision((stray.left,))


# Files of natgauge that belong to no lab: what killed runs left.


def _of_partial(gone: Gone) -> Iterable[Decision]:
    """Decide that partial files of marks, settings, used ports and guests go; whoever writes one holds a lock."""
    folders = [path for name in get_args(Subfolder) if name != "labs" and not (path := locks.folder(name)).is_symlink()]
    found = [path for folder in folders for path in sorted(folder.glob("*.new")) if whole_name(path.name)]
    # After the list is made: what a process writes that takes its lock later is not in it.
    if any(lock.is_held() for lock in locks.every()):
        return
    followed = {*gone.marks, *(register.value_file_of(setting).name for _, setting in gone.settings)}
    for path in found:
        if whole_name(path.name) not in followed:
            yield Decision((_deletion(path),), partial(_unlink_present, path))


def _unlink_present(path: Path, tell: Tell) -> None:
    if os.path.lexists(path):
        _unlink(path, tell)


def _of_marks(gone: Gone) -> Iterable[Decision]:
    """Decide that marks go whose namespaces are gone; a lab in use may be about to give its namespace the name."""
    if any(lock.is_held() for lock in locks.every()):
        return
    for name in namespaces.mark_names():
        if (
            name not in gone.marks
            and namespaces.is_mark(name)
            and not (namespaces.exists(name) and namespaces.is_marked(name))
        ):
            yield Decision((_deletion(namespaces.mark_path(name)),), partial(_delete_mark, name))


def _delete_mark(name: str, tell: Tell) -> None:
    path = namespaces.mark_path(name)
    if os.path.lexists(path):
        namespaces.remove_mark(name)
        tell(_deletion(path).done)


def _of_files(gone: Gone, *, folders: bool = True) -> Iterable[Decision]:
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


def _of_locks() -> Iterable[Decision]:
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
    register = whole_name(path.name)
    return register.removesuffix(_REGISTER) if register.endswith(_REGISTER) else None


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
        for path in (each for each in present if each != lock.path):
            delete = undoing.delete_folder if _is_folder(path) else _unlink
            delete(path, tell)
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
