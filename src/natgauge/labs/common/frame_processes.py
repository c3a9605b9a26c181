# SPDX-License-Identifier: Apache-2.0
"""Processes that handle the frames of a device, as they are found on the machine, whatever a recipe says of them.

A process gets frames from the kernel by a TUN or TAP interface, a packet socket, an XDP socket, a raw socket of UDP or
TCP, or a queue of netfilter (NFQUEUE). It is one of the device's where these belong to the device's namespace, or to
one that links join to it, or where the device's snippets started it. Nothing depends on names, nor on a process being
the one that opened a socket: daemons fork.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import AF_UNIX, SO_DOMAIN, SOL_SOCKET, socket
from typing import Final

from natgauge.host import process_files
from natgauge.labs.common import marks, protected
from natgauge.labs.common.joined_namespaces import call_in, joined
from natgauge.labs.common.processes import all_processes

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
    """What frames are handled by.

    Attributes:
        cookies: those of the network namespaces whose XDP sockets count; no file lists these.
    """

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
    return {pid: protected.name_of(pid, "a process") for pid in found}


def keep_on(pid: int, cpus: Collection[int]) -> None:
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
            found.append(call_in(path, lambda: (_sockets(), marks.number(), Path("/proc/thread-self/ns/net").stat())))
    sockets: frozenset[str] = frozenset().union(*(sockets for sockets, _, _ in found))
    return _Handles(sockets, frozenset(cookie for _, cookie, _ in found), frozenset(own.st_ino for _, _, own in found))


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
            return marks.number_of(same)
    return None
