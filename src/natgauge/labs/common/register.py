# SPDX-License-Identifier: Apache-2.0
"""A record of what each lab makes, written first, so that the remains of a killed run can be found and undone.

A register is one file, /run/natgauge/labs/<lab>.json, and a lock next to it that the process using the lab holds. The
kernel releases the lock however that process ends, so a register without a holder is either kept on purpose or left
behind. What the file promises is in `natgauge.host.private_files`.

Global settings that labs changed are recorded with the first value, the value that was set, and who restores the first
one: the last of the labs that changed a setting. Labs with the same folder in /run find each other by their registers.
Labs of other containers, which have folders of their own, find each other by announcements (`natgauge.host.settings`).
A value that another program has set meanwhile stays, and is reported.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import Field

from natgauge import file_access
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import settings
from natgauge.host.private_files import (
    FILE_MODE,
    FOLDER_MODE,
    Content,
    HiddenLabsError,
    Item,
    Strict,
    UndoJournal,
    refusal,
    unwritable,
)
from natgauge.host.settings import Announced, Announcement, group_of, others
from natgauge.interruption import uninterrupted
from natgauge.labs.common import locks, undoing
from natgauge.labs.common.locks import Lock, check_name, directory_of
from natgauge.labs.common.undoing import Decision, Deed, Gone, Left, Tell, deed, nothing

_DIGITS: Final = 16
#: Where global settings are; a register never makes `clean` write anywhere else.
GLOBAL_ROOTS = ("/proc/sys/", "/sys/")


class GlobalSettings:
    """The global settings that one lab restores, and their announcements."""

    def __init__(self) -> None:
        self._announcements: dict[str, Announcement] = {}

    def refusal(self, path: str) -> str:
        """Return why a path is no global setting, also by way of a symbolic link; empty = it is one."""
        if path.startswith(GLOBAL_ROOTS) and ".." not in path and os.path.realpath(path).startswith(GLOBAL_ROOTS):
            return ""
        return f"only files below {' or '.join(GLOBAL_ROOTS)} can be remembered or restored"

    def first_of(self, path: str, registers: Mapping[str, str]) -> str | None:
        """Return the first value of a setting that another lab changed; None = no other lab has."""
        return registers.get(path) or next((each.first for each in self._rivals(path) if each.first), None)

    def announce(self, path: str, first: str, value: str = "") -> None:
        """Announce that this lab restores a setting. `value`: what was set; empty = it is being set."""
        new = Announcement(Path(path), "restores", group=group_of(locks.RUN), first=first, value=value)
        self.withdraw(path)
        self._announcements[path] = new

    def withdraw(self, path: str | None = None) -> None:
        """Take the announcement of a setting back; None = of all settings."""
        for each in [path] if path is not None else list(self._announcements):
            if announcement := self._announcements.pop(each, None):
                announcement.close()

    def decide(self, path: str, first: str, registers: Mapping[str, str]) -> Decision:
        """Decide on a setting: its first value is restored, unless another lab will, or another program changed it."""
        if why := self.refusal(path):
            return Decision((Left(f"global setting {path}", why, fails=True),))
        setting = Path(path)
        if not setting.exists() or path in registers:
            return Decision((), lambda _tell: self.withdraw(path))
        try:
            now = setting.read_text().strip()
        except OSError as error:
            why = f"cannot be read ({error.strerror}); it was {first}"
            return Decision((Left(f"global setting {path}", why, fails=True),))
        return self._decide_on(path, first, now)

    def _decide_on(self, path: str, first: str, now: str) -> Decision:
        """Decide on a setting that no other lab of this container restores; `now` is its present value."""
        rivals, mine = self._rivals(path), value_set(path)
        if rivals and any(each.first != first for each in rivals):
            why = f"is {now}, was {first}, and {rivals[0].who} relies on it; wait until it has ended"
            return Decision((Left(f"global setting {path}", why, fails=True),))
        if now != first and mine not in (None, "", now) and not rivals:
            why = f"natgauge had set {mine}, and another program changed it; it was {first} before"
            return Decision((Left(f"{path} at {now}", why),), lambda _tell: self._forget(path))
        if (wanted := _wanted(rivals, first)) != now and (not rivals or mine == now):
            restored = deed("restore", f"{path} to {wanted}")
            return Decision((restored,), lambda tell: self._write(path, wanted, restored, tell))
        return Decision((), lambda _tell: self._forget(path))

    def _write(self, path: str, wanted: str, restored: Deed, tell: Tell) -> None:
        try:
            Path(path).write_text(wanted)
        except OSError as error:
            raise BrokenError(f"global setting {path}: cannot be set to {wanted} ({error.strerror})") from error
        tell(restored.done)
        self._forget(path)

    def _forget(self, path: str) -> None:
        """Let go of a setting once its first value is restored."""
        self.withdraw(path)
        with suppress(OSError):
            file_access.remove(value_file_of(path))

    def _rivals(self, path: str) -> list[Announced]:
        """Labs of other containers that restore this setting, too; those of this container are in the registers."""
        group = group_of(locks.RUN)
        found = others(Path(path), ["restores"], own=tuple(self._announcements.values()))
        return [each for each in found if each.group != group]


def _wanted(rivals: Iterable[Announced], first: str) -> str:
    """Return the value to restore: the one that the other containers' labs have set, the largest; else the first."""
    values = [each.value for each in rivals if each.value]
    with suppress(ValueError):
        return max(values, key=int, default=first)
    return values[0]


def value_file_of(path: str) -> Path:
    """Return the file with the value of a setting that natgauge set last."""
    return locks.folder("settings") / hashlib.sha256(path.encode()).hexdigest()[:_DIGITS]


def value_set(path: str) -> str | None:
    """Return the value that natgauge set last; empty = it is being set, None = natgauge has not set it."""
    with suppress(OSError):
        return value_file_of(path).read_text()
    return None


def _store_value(path: str, value: str) -> None:
    """Store the value that natgauge sets, for all labs of this container; empty = it is being set."""
    locks.made_folder("settings")
    try:
        file_access.replace(value_file_of(path), value, mode=FILE_MODE)
    except OSError as error:
        raise unwritable(value_file_of(path), error) from error


_LOG: Final = logging.getLogger("natgauge")
#: What a namespace may be called: a file of /run/netns, and of no other folder.
_FILE_NAME: Final = r"^[^/\x00]*[^/\x00.][^/\x00]*$"
_Path = Annotated[str, Field(pattern=r"^/[^\x00]*$")]


class _Namespace(Strict):
    what: Literal["namespace"]
    name: Annotated[str, Field(pattern=_FILE_NAME)]


class _Directory(Strict):
    what: Literal["directory"]
    path: _Path


class _Global(Strict):
    what: Literal["global"]
    path: _Path
    value: str


class _Remote(Strict):
    what: Literal["remote"]
    undo: str
    says: str
    at: str


class _Content(Content):
    name: str
    kind: str
    kept: bool
    user: str = ""
    settings: dict[str, Any]
    items: list[Annotated[_Namespace | _Directory | _Global | _Remote, Field(discriminator="what")]]


class Register:
    """One lab's list of its changes, always equal to its file.

    Attributes:
        left: what was found changed by others and therefore left as it is, one sentence each.
    """

    def __init__(self, name: str, kind: str, settings: Mapping[str, Any], *, lock: Lock) -> None:
        self.name = name
        self.kind = kind
        self.settings = dict(settings)
        self.kept = False
        self.user = user_name()
        self.globals = GlobalSettings()
        self.left: list[str] = []
        self._journal = _journal_of(_path_of(name), self._head)
        self._lock = lock

    @classmethod
    def begin(cls, name: str, kind: str, settings: Mapping[str, Any]) -> Self:
        """Take a lab's name. What a killed run left under it is undone first."""
        lock = Lock(check_name(name))
        refuse_hidden()
        lock.take()
        try:
            if old := cls._load(name, lock):
                old.refuse_kept()
                old.undo()
                old.say_left()
            return cls(name, kind, settings, lock=lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def reopen(cls, name: str) -> Self:
        """Take an existing lab: to use it when it is kept, or to undo it."""
        register = cls.reopen_any(name)
        if register is None:
            raise UsageError(f'lab {name}: there is none; "natgauge lab status" lists those there are')
        return register

    @classmethod
    def reopen_any(cls, name: str) -> Self | None:
        """Take an existing lab; None = there is none."""
        lock = Lock(check_name(name))
        lock.take()
        try:
            register = cls._load(name, lock)
        except BaseException:
            lock.release()
            raise
        if register is None:
            lock.release()
        return register

    @classmethod
    def look(cls, name: str) -> Self | None:
        """Return the register of a lab as it is now, without taking the lab; None = there is none."""
        return cls._load(name, Lock(name))

    @classmethod
    def _load(cls, name: str, lock: Lock) -> Self | None:
        content = read(name)
        if content is None:
            return None
        register = cls(name, content["kind"], content["settings"], lock=lock)
        register.kept = content["kept"]
        register.user = content.get("user", register.user)
        register._journal.items = list(content["items"])
        return register

    @property
    def directory(self) -> Path:
        """Parent of the private directories of the lab's devices."""
        return directory_of(self.name)

    def record(self, what: str, **values: str) -> None:
        """Write down what is about to be made: "namespace" (name=), "directory" (path=).

        "remote" (undo=, says=) is undone by a shell snippet on another machine, which `settings` name: its host as
        `natgauge.labs.ssh.remote.SshHost` has it, and its token.
        """
        self._journal.record({"what": what, **values})

    def make_directory(self, path: Path) -> None:
        """Make a private directory of the lab, written down before."""
        self.record("directory", path=str(path))
        try:
            path.mkdir(FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error

    def refuse_kept(self) -> None:
        """Refuse to replace a lab that is kept."""
        if self.kept:
            raise UsageError(
                f'lab {self.name}: is up and kept; use it, take it down with "natgauge lab down {self.name}", '
                "or choose another name"
            )

    def require_kept(self, kind: str) -> None:
        """Refuse to use a lab that is not kept, or of another kind."""
        if not self.kept or self.kind != kind:
            raise UsageError(
                f'lab {self.name}: is no kept {kind} lab; "natgauge lab down {self.name}" removes what is left of it'
            )

    @property
    def length(self) -> int:
        """Number of recorded changes."""
        return len(self._journal.items)

    def keep(self) -> None:
        """Let the lab stay up when this process ends."""
        self.kept = True
        self._journal.write()

    def remember_global(self, path: str | Path, value: str) -> None:
        """Write down the present `value` of a global setting that is about to be changed; it is restored at the end.

        Only the first value of a path counts. When another lab has changed the path already, that lab's first value
        is taken, and the last of the labs restores it.
        """
        path = str(path)
        if why := self.globals.refusal(path):
            raise UsageError(f"global setting {path}: {why}")
        with settings.turn():
            # Until the value is known that the kernel accepts, any value is natgauge's.
            _store_value(path, "")
            if not any(item.get("path") == path for item in self._journal.items):
                self._record_global(path, _present(path, value))

    def confirm_global(self, path: str | Path, value: str) -> None:
        """Write down the `value` that the kernel accepted; the first value is restored only while this one stands."""
        path = str(path)
        with settings.turn():
            _store_value(path, value.strip())
            first = next((item["value"] for item in self._journal.items if item.get("path") == path), None)
            if first is not None:
                self.globals.announce(path, first, value.strip())

    def share_global(self, path: str | Path, value: str) -> None:
        """Restore a setting, too, that another lab has changed to the present `value`, on which this lab relies."""
        path = str(path)
        if any(item.get("path") == path for item in self._journal.items):
            return
        with settings.turn():
            first = self.globals.first_of(path, _other_globals(self.name))
            if first not in (None, value.strip()):
                if value_set(path) is None:
                    _store_value(path, value.strip())
                self._record_global(path, value.strip())
                self.globals.announce(path, first or "", value.strip())

    def value_set(self, path: str | Path) -> str | None:
        """Return the value of a setting that a natgauge of this container set last; None = none has."""
        return value_set(str(path))

    def _record_global(self, path: str, present: str) -> None:
        first = self.globals.first_of(path, _other_globals(self.name)) or present
        self.globals.announce(path, first)
        self.record("global", path=path, value=first)

    def set_global(self, path: str | Path, value: str | int) -> None:
        """Remember a global setting's present value, then change it."""
        try:
            self.remember_global(path, Path(path).read_text())
            Path(path).write_text(str(value))
            self.confirm_global(path, Path(path).read_text())
        except OSError as error:
            raise HostError(f"global setting {path}: cannot be set to {value} ({error.strerror})") from error

    def decide(self, gone: Gone) -> list[Decision]:
        """Decide what becomes of all that is written down, last first."""
        items, decisions = list(self._journal.items), []
        while items:
            step = _last_step(items, 0)
            try:
                found = self._decide_step(step, gone)
            except NatgaugeError as error:
                left = Left(f"each {step[0]['what']} of lab {self.name}", str(error), fails=True)
                found = [Decision((left,))]
            if not any(decision.fails for decision in found):
                gone.settings.update((self.name, item["path"]) for item in step if item["what"] == "global")
            decisions += found
            del items[-len(step) :]
        if not any(decision.fails for decision in decisions):
            gone.labs.add(self.name)
        return decisions

    @uninterrupted()
    def undo(self, tell: Tell = nothing) -> None:
        """Undo all that is written down, last first, and delete the register. The lock stays taken."""
        self.undo_since(0, tell)
        self._journal.remove()

    @uninterrupted()
    def undo_since(self, length: int, tell: Tell = nothing) -> None:
        """Undo all recorded changes after the first `length` ones, last change first."""
        left, failed = list(self._journal.items), list[Item]()
        first = ""
        while len(left) > length:
            step = _last_step(left, length)
            del left[-len(step) :]
            if why := self._undo_step(step, [*left, *failed], tell):
                failed, first = step + failed, first or why
        if failed:
            self._journal.shorten([*left, *failed])
            raise BrokenError(f"lab {self.name}: {first}; then run: natgauge lab clean")

    def _decide_step(self, step: list[Item], gone: Gone) -> list[Decision]:
        match step[0]["what"]:
            case "namespace":
                return undoing.of_namespaces(step, gone)
            case "directory":
                return undoing.of_directories(step, self.directory, gone)
            case "global":
                # The first value of a setting is the one that was written down first.
                firsts = {item["path"]: item["value"] for item in reversed(step)}
                others = _other_globals(self.name, gone.settings)
                return [self.globals.decide(path, first, others) for path, first in firsts.items()]
            case _:
                return [undoing.of_remote(step, self.kind, self.directory, self.settings, self._journal.path)]

    def _undo_step(self, step: list[Item], rest: Sequence[Item], tell: Tell) -> str:
        """Undo items of one kind, then list only the `rest`; return why one could not be undone, empty = all were."""
        reasons: list[str] = []
        try:
            # Nobody else may change a setting meanwhile, or leave one to this lab, which lists it until the end.
            with settings.turn() if step[0]["what"] == "global" else nullcontext():
                for decision in self._decide_step(step, Gone()):
                    reasons += [f"{left.what}: {left.why}" for left in decision.left if left.fails]
                    self.left += [left.done for left in decision.left if not left.fails]
                    try:
                        decision.act(tell)
                    except (NatgaugeError, OSError) as error:
                        reasons.append(_reason(error, step))
                if not reasons:
                    self._journal.shorten(rest)
        except (NatgaugeError, OSError) as error:
            reasons.append(_reason(error, step))
        return reasons[0] if reasons else ""

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Let go of the lab at the end of the block, which undoes it, and say what was left."""
        try:
            yield
        finally:
            self.say_left()
            self.release()

    def say_left(self) -> None:
        """Tell the user what was left because others changed it, even where nobody asked what was undone."""
        for line in self.left:
            # Without a configuration of logging, Python prints warnings on standard error.
            _LOG.warning("natgauge: %s", line)

    def release(self) -> None:
        """Release the lock on the lab's name; another process may take it, unless it is kept for the next lab."""
        self.globals.withdraw()
        self._lock.rest()

    def _head(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "kept": self.kept,
            "user": self.user,
            "pid": os.getpid(),
            "settings": self.settings,
        }


def _reason(error: NatgaugeError | OSError, step: Sequence[Item]) -> str:
    if isinstance(error, NatgaugeError):
        return str(error)
    return f"{error.filename or step[0]['what']}: cannot be undone ({error.strerror or error})"


def _last_step(items: Sequence[Item], length: int) -> list[Item]:
    """Return the last item, with earlier items of the same kind: namespaces are deleted together, much faster."""
    last = len(items) - 1
    while last > length and items[last - 1]["what"] == items[-1]["what"]:
        last -= 1
    return list(items[last:])


def user_name() -> str:
    """Return the name of the user who runs this natgauge, also by way of sudo; the number where there is no name."""
    if by := os.environ.get("SUDO_USER"):
        return by
    with suppress(KeyError):
        return pwd.getpwuid(os.getuid()).pw_name
    return str(os.getuid())


def _present(path: str, value: str) -> str:
    """Return the present value of a setting; `value` where it cannot be read."""
    with suppress(OSError):
        return Path(path).read_text().strip()
    return value.strip()


def _other_globals(name: str, gone: Collection[tuple[str, str]] = ()) -> dict[str, str]:
    """Global settings that other labs remember, with their first values; `gone` ones of a lab do not count."""
    others = {other: content["items"] for other in registered() if other != name and (content := read(other))}
    return {
        item["path"]: item["value"]
        for other, items in others.items()
        for item in items
        if item["what"] == "global" and (other, item["path"]) not in gone
    }


def registered() -> list[str]:
    """Names of all labs of this machine, sorted."""
    folder = locks.folder("labs")
    refuse_hidden()
    found = sorted(path.stem for path in folder.glob("*.json"))
    for name in found:
        try:
            check_name(name)
        except UsageError as error:
            raise HostError(f"{_path_of(name)}: is of no lab; delete it, then run: natgauge lab clean") from error
    return found


def refuse_hidden() -> None:
    """Refuse a user who may not see the labs of this machine, and whatever is in the place of a folder of natgauge."""
    # A link in the place of any folder would make cleaning delete what is in another one.
    folders = [locks.RUN, *(locks.folder(name) for name in get_args(locks.Subfolder))]
    if refused := next(filter(None, map(refusal, folders)), None):
        raise refused


def _journal_of(path: Path, head: Callable[[], Mapping[str, Any]] = dict) -> UndoJournal:
    """Return the journal in the file of a register; `head` returns its fields besides the items."""
    mend = f"rm -r {path} && natgauge lab clean"
    return UndoJournal(path, _Content, "delete it, then run: natgauge lab clean", mend=mend, head=head)


def _path_of(name: str) -> Path:
    return locks.folder("labs") / f"{name}.json"


def read(name: str) -> Mapping[str, Any] | None:
    """A register's content; None when there is none."""
    journal = _journal_of(_path_of(name))
    try:
        content = journal.read()
    except PermissionError as error:
        why = refusal(locks.RUN)
        raise why or HiddenLabsError(f"{journal.path}: cannot be read; run natgauge as root") from error
    if content is not None and content["name"] != name:
        raise journal.damaged(f"it is of lab {content['name']!r}")
    return content


def kept_settings(name: str, kind: str) -> Mapping[str, Any] | None:
    """Return the inputs of a kept lab of this kind and name; None = there is none, or this user may not see it."""
    try:
        content = read(name)
    except HiddenLabsError:
        # A plan can be checked without it; to measure, this user must become root.
        return None
    if content is None or not content["kept"] or content["kind"] != kind:
        return None
    return dict(content["settings"])
