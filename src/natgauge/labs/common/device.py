# SPDX-License-Identifier: Apache-2.0
"""Devices in network namespaces: their snippets are run, and the processes that handle their frames are found.

The processes are found on the machine, whatever a recipe says of them. A process gets frames from the kernel by a TUN
or TAP interface, a packet socket, an XDP socket, a raw socket of UDP or TCP, or a queue of netfilter (NFQUEUE). It is
one of the device's where these belong to the device's namespace, or to one that links join to it, or where the device's
snippets started it. Nothing depends on names, nor on a process being the one that opened a socket: daemons fork.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import AF_UNIX, SO_DOMAIN, SOL_SOCKET, socket
from typing import Final, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge import device_work
from natgauge.device_work import ObjectCaches
from natgauge.errors import BrokenError, HostError
from natgauge.host import process_files, programs
from natgauge.host.capabilities import memory_octets
from natgauge.host.settings import LocalSetting, Remembers
from natgauge.labs.common import namespaces, processes
from natgauge.labs.common.namespaces import inside, within
from natgauge.labs.common.processes import all_processes, in_thread
from natgauge.labs.common.shell import SNIPPET_VARIABLES, run_shell, title
from natgauge.labs.contract import CommandResult

_NET: Final = Path("/proc/thread-self/net")
#: ETH_P_ALL, ETH_P_IP and ETH_P_IPV6, as /proc/net/packet prints them: other sockets get no frames of IP.
_IP_FRAMES: Final = frozenset({"0003", "0800", "86dd"})
#: TCP and UDP, as the port in /proc/net/raw and raw6.
_TRANSPORTS: Final = frozenset({"0006", "0011"})
#: Queues of netfilter: the one of these files that has no heading.
_QUEUES: Final = "netfilter/nfnetlink_queue"
#: NETLINK_NETFILTER, as /proc/net/netlink prints it.
_NETFILTER: Final = "12"
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
#: The same number wherever there are such sockets; Python has no name for it.
_AF_XDP: Final = 44
#: Variable of a device's snippets whose value no other device has.
WORK: Final = "NG_WORK"


@dataclass(frozen=True, slots=True)
class _Handles:
    """What frames are handled by."""

    sockets: frozenset[str]
    cookies: frozenset[int]
    namespaces: frozenset[int]


def frame_processes(netns: str, work: str) -> dict[int, str]:
    """Return the names of the processes that handle a device's frames by their numbers; empty = the kernel does.

    Args:
        work: the device's private directory, which its snippets know as `NG_WORK`; empty = it has none.
    """
    pids = list(all_processes())
    handles = _handles_in(joined(netns, pids).values())
    found = []
    for pid in pids:
        own = Path(f"/proc/{pid}")
        if _handles_frames(own, handles):
            found.append(pid)
        elif work and process_files.has_variable(own, WORK, work):
            found += [pid] if _handles_frames(own, _handles_in([own / "ns" / "net"])) else []
    return {pid: processes.name_of(pid, "a process") for pid in found}


def _keep_on(pid: int, cpus: Collection[int]) -> None:
    """Let all threads of a process run on some cores only, as far as they may run on others now."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                may = os.sched_getaffinity(int(thread.name))
                if not may <= set(cpus):
                    os.sched_setaffinity(int(thread.name), may.intersection(cpus) or cpus)


def _handles_in(spaces: Iterable[Path]) -> _Handles:
    """Return what frames are handled by in namespaces; those that are gone have nothing."""
    found = []
    for path in spaces:
        with suppress(OSError):
            found.append(call_in(path, lambda: (_sockets(), namespaces.cookie_number(), namespaces.inode_of(None))))
    sockets: frozenset[str] = frozenset().union(*(sockets for sockets, _, _ in found))
    return _Handles(sockets, frozenset(cookie for _, cookie, _ in found), frozenset(inode for _, _, inode in found))


def _sockets() -> frozenset[str]:
    """Return the inodes of the listed sockets that handle frames in the calling thread's namespace."""
    sockets = {row[-1] for row in _rows("packet") if len(row) >= 9 and row[3] in _IP_FRAMES}
    for name in ("raw", "raw6"):
        sockets |= {row[9] for row in _rows(name) if len(row) > 9 and row[1].rpartition(":")[2] in _TRANSPORTS}
    # A queue has the number of its socket, which is that of the process that bound it, or of none.
    queues = {row[1] for row in _rows(_QUEUES) if len(row) > 1}
    sockets |= {row[-1] for row in _rows("netlink") if len(row) > 9 and row[1] == _NETFILTER and row[2] in queues}
    return frozenset(sockets - {"0"})


def _rows(name: str) -> Iterator[list[str]]:
    """Yield the words of each row below the heading of a file; none where this kernel has no such file."""
    with suppress(OSError):
        lines = (_NET / name).read_text(encoding="ascii").splitlines()
        yield from map(str.split, lines if name == _QUEUES else lines[1:])


def _handles_frames(process: Path, handles: _Handles) -> bool:
    for file, target in process_files.open_files(process):
        found = _SOCKET.fullmatch(str(target))
        if found is not None and (found[1] in handles.sockets or _xdp_cookie(file) in handles.cookies):
            return True
    return any(tun.namespace in handles.namespaces for tun in process_files.held_tuns(process))


def _xdp_cookie(file: Path) -> int | None:
    """Return the cookie of the namespace of an XDP socket; None = it is none, or this user may not look."""
    with suppress(OSError), process_files.borrowed(file) as ours, socket(AF_UNIX, fileno=os.dup(ours)) as same:
        if same.getsockopt(SOL_SOCKET, SO_DOMAIN) == _AF_XDP:
            return namespaces.cookie_number_of(same)
    return None


#: The first process's namespace is that of the machine, to which links of many programs lead.
_MACHINES: Final = Path("/proc/1/ns/net")
#: That of the main thread; a thread in a lab has another one.
_MAIN_THREADS: Final = Path("/proc/self/ns/net")
#: NETNSA_NSID_NOT_ASSIGNED of linux/net_namespace.h, as an unsigned number.
_NO_NUMBER: Final = 0xFFFFFFFF
_NO_NUMBERS: Final[dict[int, int]] = {}
_T = TypeVar("_T")


def joined(netns: str, pids: Iterable[int]) -> dict[int, Path]:
    """Return the namespace and those that links join to it, directly or by others, by inode, with a file of each.

    Those that natgauge made, that of the machine and natgauge's own are not among the others, and links of theirs are
    not followed: the tester and the devices of a chain have processes of their own.
    """
    found = {namespaces.inside(netns, lambda: namespaces.inode_of(None)): namespaces.path_of(netns)}
    others = _others(pids)
    ends = {inode: _tried(path, _numbers, frozenset[int]()) for inode, path in others.items()}
    new = dict(found)
    while new:
        rest = {inode: path for inode, path in others.items() if inode not in found}
        new = {inode: path for one in new.values() for inode, path in _next_to(one, rest, ends).items()}
        found.update(new)
    return found


def call_in(path: Path, function: Callable[[], _T]) -> _T:
    """Call `function` in the namespace of a file."""
    with path.open("rb") as file:

        def enter() -> _T:
            namespaces.enter(file.fileno())
            return function()

        return in_thread(enter)


def _others(pids: Iterable[int]) -> dict[int, Path]:
    """Return the namespaces that neither natgauge made nor the machine or natgauge is in."""
    every: dict[int, Path] = {}
    kind = _MAIN_THREADS.stat().st_dev
    for path in (*map(namespaces.path_of, namespaces.names()), *(Path(f"/proc/{pid}/ns/net") for pid in pids)):
        with suppress(OSError):
            file = path.stat()
            # A name may be that of an ordinary file: its namespace is gone, or only its makers see it.
            if file.st_dev == kind:
                every.setdefault(file.st_ino, path)
    for path in (_MACHINES, _MAIN_THREADS, *map(namespaces.path_of, filter(_is_made, namespaces.names()))):
        with suppress(OSError):
            every.pop(path.stat().st_ino, None)
    return every


def _is_made(name: str) -> bool:
    with suppress(HostError):
        return namespaces.is_marked(name)
    return False


def _next_to(path: Path, rest: Mapping[int, Path], ends: Mapping[int, frozenset[int]]) -> dict[int, Path]:
    """Return those of `rest` that a link joins to the namespace of a file: a link is seen at one end or at both."""
    numbers = _tried(path, _numbers, frozenset[int]())
    theirs = _tried(path, partial(_numbers_of, rest), _NO_NUMBERS) if numbers else _NO_NUMBERS
    near = {inode for inode, number in theirs.items() if number in numbers}
    for inode in rest.keys() - near:
        if ends[inode] and _tried(rest[inode], partial(_numbers_of, {0: path}), _NO_NUMBERS).get(0) in ends[inode]:
            near.add(inode)
    return {inode: rest[inode] for inode in near}


def _tried(path: Path, function: Callable[[], _T], otherwise: _T) -> _T:
    """Call a function in a namespace; `otherwise` where it is gone, which other programs' ones may be at any time."""
    with suppress(OSError, NetlinkError):
        return call_in(path, function)
    return otherwise


def _numbers() -> frozenset[int]:
    """Return the numbers of the namespaces at the other ends of the links of the calling thread's namespace."""
    with IPRoute() as routes:
        found = (link.get_attr("IFLA_LINK_NETNSID") for link in routes.get_links())
        return frozenset(int(number) & _NO_NUMBER for number in found if number is not None) - {_NO_NUMBER}


def _numbers_of(paths: Mapping[int, Path]) -> dict[int, int]:
    """Return the number that each namespace has in the calling thread's; those without one are left out."""
    numbers = {}
    with IPRoute() as routes:
        for inode, path in paths.items():
            with suppress(OSError, NetlinkError), path.open("rb") as file:
                answer = routes.get_netnsid(fd=file.fileno())
                if answer is not None and answer["nsid"] is not None:
                    numbers[inode] = int(answer["nsid"]) & _NO_NUMBER
    return {inode: number for inode, number in numbers.items() if number != _NO_NUMBER}


_CLONE_NEWNS = 0x00020000
_MS_SLAVE_ALL = (1 << 19) | (1 << 14)  # MS_SLAVE | MS_REC
_MS_BIND = 1 << 12
#: Where eBPF programs and maps are pinned.
_BPFFS = "/sys/fs/bpf"


class ThisMachine:
    """The machine of every device in a namespace of the tester's host."""

    system: str = os.uname().sysname
    has_tester_files: bool = True

    def __init__(self, memory: Callable[[], Remembers]) -> None:
        """Take the way to the `memory` that stores global settings before their change; a lab has it once it is up."""
        self._memory = memory

    def free_octets(self) -> int:
        """Return MemAvailable in octets."""
        octets = memory_octets("MemAvailable")
        if octets is None:
            raise HostError("/proc/meminfo: has no MemAvailable; natgauge needs Linux 6.6 or later")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the kernel's object caches; empty where they are not readable."""
        with suppress(OSError):
            return device_work.read(Path("/proc/slabinfo").read_text(encoding="ascii"))
        return {}

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> LocalSetting:
        """Return a global setting; nothing is changed yet."""
        return LocalSetting(name, paths, module=module, memory=self._memory)


@dataclass(slots=True)
class NamespaceDevice:
    """A device whose home is a network namespace of this machine (see `natgauge.labs.contract.Device`).

    Attributes:
        nice: priority of its snippets and of their processes, -20 (highest) to 19.
    """

    name: str
    netns: str
    inside: str
    outside: str
    environment: Mapping[str, str]
    machine: ThisMachine = field(compare=False)
    nice: int = 0
    #: Processes of its snippets, with their start times.
    _running: dict[int, str] = field(default_factory=dict, init=False, compare=False, repr=False)

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) in the namespace, as we are, in the device's private directory.

        Programs it leaves running exist in the namespace until the lab is removed; they need not close their output.
        It sees PATH, `SNIPPET_VARIABLES`, `self.environment` and `environment`, and nothing else of ours.
        """
        variables = {"PATH": programs.search_path(), **SNIPPET_VARIABLES, **self.environment, **(environment or {})}
        before = set(all_processes())
        what = f"device {self.name}: snippet {title(snippet)!r}"
        try:
            result = run_shell(
                lambda out, err: inside(self.netns, lambda: self._start(snippet, variables, out, err)), timeout, what
            )
        finally:
            new = set(all_processes()) - before
            self._write_ranks(within(self.netns, new) if new else ())
        if result is None:
            raise BrokenError(f"{what} did not end within {timeout:g} s and was killed")
        return result

    def frame_processes(self) -> tuple[str, ...]:
        """Return the names of the processes that handle the device's frames, and keep them on its cores.

        They may live in another namespace, and count as `nice` says there, too.
        """
        found = frame_processes(self.netns, self.environment.get(WORK, ""))
        cpus = [int(cpu) for cpu in self.environment.get("NG_CPUS", "").split(",") if cpu]
        for pid in found if cpus else ():
            _keep_on(pid, cpus)
        self._write_ranks(found)
        return tuple(sorted(set(found.values())))

    def _write_ranks(self, found: Iterable[int]) -> None:
        """Let the processes that were found now and earlier count as `nice` says, and forget those that have ended.

        Where the kernel groups tasks by session (autogroup), a process's own priority counts only inside its session,
        and a daemon has one of its own. Written after every snippet: a daemon may have made it since.
        """
        self._running |= {pid: process_files.began(Path(f"/proc/{pid}")) for pid in found}
        for pid, began in tuple(self._running.items()):
            process = Path(f"/proc/{pid}")
            # The number of one that has ended may be that of another process.
            same = process_files.began(process) == began != ""
            try:
                if same:
                    (process / "autogroup").write_text(str(self.nice))
            except OSError:
                # It has just ended, or this kernel has no such groups.
                same = False
            if not same:
                del self._running[pid]

    def _start(self, snippet: str, variables: Mapping[str, str], out: int, err: int) -> subprocess.Popen[bytes]:
        """Start the shell from a thread that is in the namespace: the child inherits it."""
        _see_own_sysfs()
        # Of the calling thread alone; the child inherits it.
        os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        folder = variables.get("NG_WORK", "/")
        if not Path(folder).is_dir():
            raise BrokenError(
                f"device {self.name}: its private directory {folder} is gone; a recipe must not remove $NG_WORK"
            )
        return subprocess.Popen(
            ["/bin/sh", "-eu", "-c", snippet],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=variables,
            cwd=folder,
            # Ctrl-C is for natgauge, which then ends the snippet itself.
            start_new_session=True,
        )


def _see_own_sysfs() -> None:
    """Give the calling thread a /sys that shows the interfaces of its namespace (/sys/class/net is fixed at mounting).

    Where eBPF programs and maps are pinned is in it as outside: what a snippet pins is there for the next one.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def need(refused: int) -> None:
        if refused:
            raise BrokenError(f"/sys of the device's namespace cannot be mounted ({os.strerror(ctypes.get_errno())})")

    need(libc.unshare(_CLONE_NEWNS))
    need(libc.mount(b"none", b"/", None, _MS_SLAVE_ALL, None))
    # Held, for it lies below what comes over it.
    pinned = os.open(_BPFFS, os.O_PATH) if os.path.ismount(_BPFFS) else None
    try:
        need(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))
        if pinned is not None:
            need(libc.mount(f"/proc/thread-self/fd/{pinned}".encode(), _BPFFS.encode(), None, _MS_BIND, None))
    finally:
        if pinned is not None:
            os.close(pinned)
