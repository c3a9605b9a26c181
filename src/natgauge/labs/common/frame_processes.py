# SPDX-License-Identifier: Apache-2.0
"""Processes that handle the frames of a namespace, as they are found on the machine, whatever a recipe says of them.

A process gets frames from the kernel by a TUN or TAP interface, a packet socket, a raw socket of UDP or TCP, or a queue
of netfilter (NFQUEUE).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from natgauge.host import process_files
from natgauge.labs.common.namespaces import inside
from natgauge.labs.common.processes import all_processes

_NET: Final = Path("/proc/thread-self/net")
#: ETH_P_ALL, ETH_P_IP and ETH_P_IPV6, as /proc/net/packet prints them: other sockets get no frames of IP.
_IP_FRAMES: Final = frozenset({"0003", "0800", "86dd"})
#: TCP and UDP, as the port in /proc/net/raw and raw6.
_TRANSPORTS: Final = frozenset({"0006", "0011"})
#: Queues of netfilter: the one of these files that has no heading.
_QUEUES: Final = "netfilter/nfnetlink_queue"
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")


def frame_processes(netns: str) -> dict[int, str]:
    """Return the names of the processes that handle frames of a namespace by their numbers; empty = the kernel does."""
    sockets, queues, interfaces = inside(netns, _handles)
    if not sockets and not queues and not interfaces:
        return {}
    wanted = {"socket": sockets, "queue": queues, "interface": interfaces}
    return {pid: _name_of(pid) for pid in all_processes() if _handles_frames(pid, wanted)}


def keep_on(pid: int, cpus: Collection[int]) -> None:
    """Let all threads of a process run on some cores only, as far as they may run on others now."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                may = os.sched_getaffinity(int(thread.name))
                if not may <= set(cpus):
                    os.sched_setaffinity(int(thread.name), may.intersection(cpus) or cpus)


def _handles() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return sockets by inode, queues by the number of their process, and interfaces, of the thread's namespace."""
    sockets = {row[-1] for row in _rows("packet") if len(row) >= 9 and row[3] in _IP_FRAMES}
    for name in ("raw", "raw6"):
        sockets |= {row[9] for row in _rows(name) if len(row) > 9 and row[1].rpartition(":")[2] in _TRANSPORTS}
    queues = {row[1] for row in _rows(_QUEUES) if len(row) > 1}
    interfaces = {row[0].rstrip(":") for row in _rows("dev")} - {"lo"}
    return frozenset(sockets - {"0"}), frozenset(queues), frozenset(interfaces)


def _rows(name: str) -> Iterator[list[str]]:
    """Yield the words of each row below the heading of a file; none where this kernel has no such file."""
    with suppress(OSError):
        lines = (_NET / name).read_text(encoding="ascii").splitlines()
        yield from map(str.split, lines if name == _QUEUES else lines[1:])


def _handles_frames(pid: int, wanted: Mapping[str, frozenset[str]]) -> bool:
    if str(pid) in wanted["queue"]:
        return True
    for file, target in process_files.open_files(Path(f"/proc/{pid}")):
        found = _SOCKET.fullmatch(str(target))
        if found is not None and found[1] in wanted["socket"]:
            return True
        with suppress(OSError):
            if process_files.tun_of(file, target) in wanted["interface"]:
                return True
    return False


def _name_of(pid: int) -> str:
    with suppress(OSError):
        return process_files.name_of(Path(f"/proc/{pid}"))
    return "a process"
