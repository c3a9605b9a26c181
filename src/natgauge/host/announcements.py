# SPDX-License-Identifier: Apache-2.0
"""Announcements of this machine's natgauge processes: who relies on a global setting, and who restores it.

A global setting belongs to the whole machine, but a container has its own /run and its own /proc, so a lock file there
excludes nobody outside. An announcement is an abstract Unix socket (unix(7)), whose name is the message. All processes
of a network namespace can list the names, and the machine-wide network settings can only be changed in one namespace,
the machine's own. The kernel removes the name when the process ends, for any reason.

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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self, get_args

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
        """Announce.

        Args:
            path: file of the setting; None = the turn.
        """
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


def ends_never(rival: Announced, waiting: Announcement) -> bool:
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
