# SPDX-License-Identifier: Apache-2.0
"""Global settings of a machine that a gateway needs: read, remembered by the lab, written, and announced to others.

A process that uses such a setting relies on it until the process ends. Raising the setting disturbs no other process;
lowering it is refused while another process relies on it. The process announces its reliance to all processes of the
machine, also in other containers, and the kernel ends the announcement with the process, for any reason. So whoever
needs another value waits until it has ended. A process that makes several labs one after the other keeps the
announcement between them (`reliance_kept`). A setting that changes all the same is found when it is read again after
each trial.

A global setting belongs to the whole machine, but a container has its own /run and its own /proc, so a lock file there
excludes nobody outside. An announcement is an abstract Unix socket (unix(7)), whose name is the message. All processes
of a network namespace can list the names, and the machine-wide network settings can only be changed in one namespace,
the machine's own.

Every user may bind such a name. The kernel reports the owner of each socket (sock_diag(7)), and only sockets of root
and of the calling user count. So other users can neither hold a setting nor hide an announcement. Names are unique, so
nobody can occupy them in advance.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import secrets
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, Self, get_args

from natgauge.errors import HostError
from natgauge.host.process_files import command_of

#: "relies": no other process may lower the setting. "lowered": it was lowered, so no other process may rely on it.
#: "restores": a lab of this process restores the first value at its end. "busy": the process has the turn. "waits": it
#: waits until nothing of another process is in its way.
Kind = Literal["relies", "lowered", "restores", "busy", "waits"]
_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}

_PREFIX: Final = "natgauge-setting"
_DIGITS: Final = 10
#: Longest wait for another process that records or restores a setting, which takes it milliseconds.
TURN_SECONDS: Final = 5.0
_MOST_PAUSE_SECONDS: Final = 0.02
#: The longest value that a name has room for; values of settings are numbers.
_LONGEST_VALUE: Final = 14

# linux/sock_diag.h, linux/unix_diag.h
_SOCK_DIAG_BY_FAMILY: Final = 20
_NETLINK_SOCK_DIAG: Final = 4
_NLM_F_DUMP_REQUEST: Final = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SHOW_NAME_AND_UID: Final = 0x01 | 0x40
_UNIX_DIAG_NAME, _UNIX_DIAG_UID = 0, 7
_ALL_STATES: Final = 0xFFFFFFFF
#: Errors of a process, or a machine, without free resources.
_TRANSIENT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


@dataclass(frozen=True, slots=True)
class Announced:
    """One announcement, as every process of the network namespace sees it.

    Attributes:
        setting: digest of the setting's path; empty for the turn.
        group: digest of the folder in /run: processes with the same folder know each other's registers.
        first: of "restores": the value that is restored at the end; empty where it has no room.
        value: of "restores": the value that was set; empty while it is being set.
    """

    setting: str
    kind: Kind
    group: str
    pid: int
    space: int
    token: str
    first: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        """Name of the socket."""
        who = f"{self.group}/{self.pid}/{self.space}/{self.token}"
        return f"{_PREFIX}/{self.setting}/{self.kind}/{who}/{self.first}/{self.value}"

    @classmethod
    def read(cls, name: str) -> Self | None:
        """Read a socket's name; None = it is no announcement."""
        parts = name.split("/")
        if len(parts) != 9 or parts[0] != _PREFIX or parts[2] not in _KINDS:
            return None
        _, setting, kind, group, pid, space, token, first, value = parts
        if not pid.isdecimal() or not space.isdecimal():
            return None
        return cls(setting, _KINDS[kind], group, int(pid), int(space), token, first, value)

    @property
    def who(self) -> str:
        """The process, for messages."""
        return f"process {self.pid}" if self.space == _pid_space() else f"process {self.pid} of another container"

    @property
    def command(self) -> str:
        """Command line of the process; empty where it is in another container."""
        return command_of(Path(f"/proc/{self.pid}")) if self.space == _pid_space() else ""


class Announcement:
    """An announcement of this process; it ends with `close`, or with the process."""

    def __init__(self, path: Path | None, kind: Kind, *, group: str = "", first: str = "", value: str = "") -> None:
        """`path`: file of the setting; None = the turn."""
        if max(len(first), len(value)) > _LONGEST_VALUE:
            first = value = ""
        setting = "" if path is None else _digest(str(path))
        self.announced = Announced(setting, kind, group, os.getpid(), _pid_space(), secrets.token_hex(4), first, value)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
                opened.bind(f"\0{self.announced.name}")
                # It lasts as long as the process unless it is closed, whatever becomes of this object.
                self._handle: int | None = opened.detach()
        except OSError as error:
            raise HostError(f"settings of this machine: no socket can be opened for them ({error.strerror})") from error
        _own.add(self.announced.token)

    def close(self) -> None:
        """Take the announcement back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        _own.discard(self.announced.token)


#: Tokens of this process's announcements.
_own: set[str] = set()


def group_of(folder: Path) -> str:
    """Return the digest of a folder in /run: equal for processes that share it, by whatever path; empty without it."""
    try:
        found = folder.stat()
    except OSError:
        return ""
    return _digest(f"{found.st_dev} {found.st_ino}")


def others(path: Path, kinds: Sequence[Kind], *, own: Sequence[Announcement] = ()) -> list[Announced]:
    """Return the announcements on a setting."""
    setting, mine = _digest(str(path)), {each.announced.token for each in own}
    return [each for each in _all() if each.setting == setting and each.kind in kinds and each.token not in mine]


def is_own(announced: Announced) -> bool:
    """Whether this process announced it."""
    return announced.token in _own


def _ends_never(rival: Announced, waiting: Announcement) -> bool:
    """Whether a process may wait for a rival for ever: both hold what the other one waits for.

    Of two such processes it is true for one only; the other one goes on as soon as the first one has given up.
    """
    every = _all()
    held = {each.setting for each in every if is_own(each) and each.kind in ("relies", "lowered")}
    return any(
        each.kind == "waits"
        and each.setting in held
        and (each.pid, each.space) == (rival.pid, rival.space)
        and each.token < waiting.announced.token
        for each in every
    )


@contextmanager
def turn() -> Iterator[None]:
    """Have the turn to record or restore settings; one process of the machine at a time has it.

    A process announces that it is busy, and then looks: of two that begin at once, at least one sees the other, takes
    its announcement back and tries again after a random pause.
    """
    until = time.monotonic() + TURN_SECONDS
    while True:
        mine = Announcement(None, "busy")
        busy = [each for each in _all() if each.kind == "busy" and each.token != mine.announced.token]
        if not busy:
            break
        mine.close()
        if time.monotonic() > until:
            raise HostError(
                f"settings of this machine: {busy[0].who} has been changing them for {TURN_SECONDS:g} s; "
                "wait until that natgauge has ended, or end it"
            )
        time.sleep(random.uniform(0.0, _MOST_PAUSE_SECONDS))  # noqa: S311 - no secret
    try:
        yield
    finally:
        mine.close()


def _all() -> list[Announced]:
    """All announcements of root and of this user in this network namespace; none where the kernel cannot list them."""
    trusted = {0, os.geteuid()}
    try:
        found = [Announced.read(name) for name, uid in _abstract_sockets() if uid in trusted]
    except OSError as error:
        if error.errno in _TRANSIENT:
            raise HostError(f"settings of this machine: cannot be looked at ({error.strerror})") from error
        # A kernel without sock_diag: a change by another container shows when the value is read again.
        return []
    return [each for each in found if each is not None]


def _abstract_sockets() -> Iterator[tuple[str, int]]:
    """Names and owners of all abstract Unix sockets of this network namespace (sock_diag(7))."""
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW_NAME_AND_UID, 0, 0)
    header = struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_DUMP_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as diag:
        diag.send(header + request)
        while True:
            answer, offset = diag.recv(1 << 16), 0
            while offset < len(answer):
                length, kind = struct.unpack_from("=IH", answer, offset)
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return
                # Behind both headers come the attributes.
                attributes = dict(_attributes(answer[offset + 32 : offset + length]))
                name, uid = attributes.get(_UNIX_DIAG_NAME, b""), attributes.get(_UNIX_DIAG_UID, b"")
                if name[:1] == b"\0" and len(uid) == 4:
                    yield name[1:].decode(errors="replace"), struct.unpack("=I", uid)[0]
                offset += (length + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _pid_space() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


_MODPROBE_SECONDS: Final = 10.0
#: Longest wait for another natgauge, and the time between two looks at it.
PATIENCE_SECONDS: Final = 1800.0
_LOOK_SECONDS: Final = 0.1

#: Announcements that outlast the gateways that made them, by path; None = announcements end with the gateways.
_kept: ContextVar[dict[Path, list[Announcement]] | None] = ContextVar("kept reliance", default=None)
#: Values that this process set last, by path: several gateways of one process may set the same setting.
_set_here: dict[Path, int] = {}
#: Receives for whom this process waits, what ends a wait that nobody wants any more, and the settings of which the rule
#: was told; None = nobody and nothing.
_waits: ContextVar[tuple[Callable[[str], None], Callable[[], None], set[str]] | None] = ContextVar(
    "waits", default=None
)


class OccupiedError(HostError):
    """Another natgauge of this machine needs another value of a setting."""


def _nothing(*_: object) -> None:
    """Tell nobody, and end no wait."""


@contextmanager
def waits_told(tell: Callable[[str], None], go_on: Callable[[], None] = _nothing) -> Iterator[None]:
    """Within the block, `tell` receives a line whenever another natgauge is waited for, unless it is told already.

    The first line on a setting says why and for how long, later ones only that it is waited for again.
    `go_on` is called again and again during a wait, which ends with what it raises.
    """
    before = _waits.set(_waits.get() or (tell, go_on, set()))
    try:
        yield
    finally:
        _waits.reset(before)


@contextmanager
def reliance_kept() -> Iterator[None]:
    """Within the block, keep relying on all settings of this machine that a gateway of this process used.

    The values are still restored with each gateway. But no other natgauge can lower a setting between the end of a lab
    and the beginning of the next. The next gateway takes over the announcements.
    """
    if _kept.get() is not None:
        yield
        return
    held: dict[Path, list[Announcement]] = {}
    before = _kept.set(held)
    try:
        yield
    finally:
        _kept.reset(before)
        for announcements in held.values():
            for announcement in announcements:
                announcement.close()


class Remembers(Protocol):
    """Stores values before their change, so that they can be restored even after a kill (labs and registers do)."""

    def remember_global(self, path: str | Path, value: str) -> None:
        """Write down the present `value` of the file `path`; it is restored when the lab is undone."""

    def confirm_global(self, path: str | Path, value: str) -> None:
        """Write down the `value` that was set; the first value is restored only while this one stands."""

    def share_global(self, path: str | Path, value: str) -> None:
        """Restore the file `path`, too, where another lab has changed it to the present `value`."""

    def value_set(self, path: str | Path) -> str | None:
        """Return the value of the file `path` that a natgauge of this container set last; None = none has."""


class MachineSetting(ABC):
    """One global setting of a machine, a whole number held in one or more files.

    Attributes:
        name: name in messages, e.g. "table_size (nf_conntrack_max)".
        paths: at least one file; all are written, the smallest value counts.
        module: kernel module whose loading makes the files appear; None = none does.
    """

    def __init__(self, name: str, paths: Sequence[str | Path], module: str | None, where: str = "") -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.module = module
        self._expected: dict[Path, int] = {}
        self.name = f"{name} ({', '.join(path.name for path in self.paths)}){where}"

    @abstractmethod
    def available(self) -> bool:
        """Whether the machine has the setting; a missing kernel module is loaded first."""

    @abstractmethod
    def values(self) -> dict[Path, int]:
        """The present values by their files."""

    def read(self) -> int:
        """The present value, the smallest one of several files."""
        return min(self.values().values())

    def settle(self) -> None:  # noqa: B027 - no other natgauge uses a machine that is locked
        """Wait until no other natgauge has lowered it, so that what is found is the machine's own value."""

    def rely(self) -> None:  # noqa: B027 - as above
        """See that no other natgauge lowers it from now on; wait for one that has."""

    def write(self, value: int) -> None:
        """Set the value, and rely on it; the lab stores the previous value, and restores it even after a kill."""
        # Reading loads the module where that is what is missing.
        before = self.values()
        while self._claim(value, min(before.values())):
            before = self.values()
        for path in self.paths:
            self._remember(path, before[path])
            self._put(path, value)
        self._expected = self.values()
        for path in self.paths:
            self._confirm(path, self._expected[path])
        if (accepted := min(self._expected.values())) < value:
            raise HostError(f"{self.name}: set to {value}, but the kernel made it {accepted}; use a smaller value")

    def found_changed(self) -> str:
        """Return which file of the setting has another value than when it was set or relied on; empty = none has."""
        now = self.values()
        for path in self.paths:
            was, found = self._expected.get(path), now[path]
            if was not in (None, found) and not self._set_by_us(path, found):
                if self._may_be_taken_over(path, found):
                    self._expected[path] = found
                return (
                    f"{self.name}: {path} was {was} when the device was set up, and is {found} now; "
                    "another program, or another natgauge, changed it"
                )
        return ""

    def release(self) -> None:  # noqa: B027 - as above
        """Stop relying on the setting."""

    def _set_by_us(self, _path: Path, _value: int) -> bool:
        """Whether this process itself set the value."""
        return False

    def _may_be_taken_over(self, _path: Path, _value: int) -> bool:
        """Whether later trials may run with this other value."""
        return False

    def _confirm(self, _path: Path, _value: int) -> None:  # noqa: B027 - most settings store nothing more
        """Have the lab write down the value that was accepted."""

    def _claim(self, _value: int, _present: int) -> bool:
        """Rely on a value that is about to be set; True = it had to wait, so that another value may be present now."""
        return False

    @abstractmethod
    def _remember(self, path: Path, value: int) -> None:
        """Have the lab write down what a file holds; only the first value of a file counts."""

    @abstractmethod
    def _put(self, path: Path, value: int) -> None:
        """Write a file."""


class LocalSetting(MachineSetting):
    """A global setting of this machine."""

    def __init__(
        self, name: str, paths: Sequence[str | Path], *, memory: Callable[[], Remembers], module: str | None = None
    ) -> None:
        super().__init__(name, paths, module)
        self._memory = memory
        self._reliance: dict[Path, Announcement] = {}

    def available(self) -> bool:
        """Whether this kernel has the setting; a missing kernel module is loaded first."""
        if not self._exists() and self.module:
            # Without success where the kernel has no such module or modprobe is missing.
            with suppress(OSError, subprocess.TimeoutExpired):
                command = ["modprobe", self.module]
                subprocess.run(command, capture_output=True, timeout=_MODPROBE_SECONDS, check=False)
        return self._exists()

    def values(self) -> dict[Path, int]:
        """The present values by their files."""
        if not self.available():
            hint = f'try "modprobe {self.module}"' if self.module else "use another kernel"
            raise HostError(f"{self.name}: this kernel has no {self.paths[0]}; {hint}")
        try:
            return {path: int(path.read_text()) for path in self.paths}
        except (OSError, ValueError) as error:
            raise HostError(f"{self.name}: {self.paths[0]} cannot be read ({error})") from error

    def settle(self) -> None:
        """Wait until no other natgauge has lowered it."""

        def rival() -> Announced | None:
            every = (each for path in self.paths for each in others(path, ("lowered",)))
            return next((each for each in every if not is_own(each)), None)

        self._wait_for(rival, "has lowered it")

    def rely(self) -> None:
        """See that no other natgauge lowers it from now on; wait for one that has."""
        self._announce("relies", ("lowered",), "has lowered it")
        self._expected = self.values()
        for path in self.paths:
            self._memory().share_global(path, str(self._expected[path]))

    def release(self) -> None:
        """Stop relying on it, or keep the announcements for the next gateway."""
        kept = _kept.get()
        while self._reliance:
            path, announcement = self._reliance.popitem()
            if kept is None:
                announcement.close()
            else:
                kept.setdefault(path, []).append(announcement)

    def _claim(self, value: int, present: int) -> bool:
        if value < present:
            return self._announce("lowered", ("relies", "lowered"), "relies on it")
        return self._announce("relies", ("lowered",), "has lowered it")

    def _remember(self, path: Path, value: int) -> None:
        self._memory().remember_global(path, str(value))

    def _confirm(self, path: Path, value: int) -> None:
        _set_here[path] = value
        self._memory().confirm_global(path, str(value))

    def _set_by_us(self, path: Path, value: int) -> bool:
        return _set_here.get(path) == value

    def _may_be_taken_over(self, path: Path, value: int) -> bool:
        """Allow a value that a natgauge of this container has set: raising a setting disturbs no other natgauge."""
        return self._memory().value_set(path) in (str(value), "")

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

    def _announce(self, kind: Kind, opposed: tuple[Kind, ...], who: str) -> bool:
        """Announce the reliance as soon as no announcement is in its way; return whether it had to wait."""

        def tried() -> Announced | None:
            kept = _kept.get() or {}
            with turn():
                for path in self.paths:
                    if path not in self._reliance and (handed := kept.get(path)):
                        self._reliance[path] = handed.pop()
                    former = self._reliance.get(path)
                    if rivals := others(path, opposed, own=() if former is None else (former,)):
                        return rivals[0]
                    self._reliance[path] = Announcement(path, kind)
                    if former is not None:
                        former.close()
            return None

        return self._wait_for(tried, who)

    def _wait_for(self, rival_now: Callable[[], Announced | None], who: str) -> bool:
        """Wait until no other process is in the way; return whether there was one."""
        if (rival := rival_now()) is None:
            return False
        text = f"{self.name}: another natgauge on this machine {who}"
        if is_own(rival):
            raise HostError(f"{text} (another gateway of this one); wait until it has ended")
        text = f"{text} ({': '.join(filter(None, (rival.who, rival.command)))})"
        until = time.monotonic() + PATIENCE_SECONDS
        tell, go_on, told = _waits.get() or (_nothing, _nothing, set[str]())
        first = f"{text}; waiting until it has ended, for at most {PATIENCE_SECONDS / 60:g} min"
        tell(f"{self.name}: waiting again, for {rival.who}" if self.name in told else first)
        told.add(self.name)
        with ExitStack() as waits:
            waiting = [waits.enter_context(closing(Announcement(path, "waits"))) for path in self.paths]
            while rival is not None:
                go_on()
                mutual = _ends_never(rival, waiting[0])
                if mutual or time.monotonic() > until:
                    why = "waits for this one, too" if mutual else "has not ended in time"
                    raise OccupiedError(f"{text}, and {why}; begin again when it has ended")
                time.sleep(_LOOK_SECONDS)
                rival = rival_now()
        return True
