# SPDX-License-Identifier: Apache-2.0
"""The end of network namespaces: their names are removed, and the kernel is watched until it has taken them apart."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute, IPRSocket, netns
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_GETNSID, RTM_NEWNSID
from pyroute2.netlink.rtnl.nsidmsg import nsidmsg

from natgauge.errors import BrokenError, HostError
from natgauge.host import capabilities
from natgauge.labs.common.threads import in_thread

CLONE_NEWNET: Final = 0x40000000
_OWN: Final = Path("/proc/thread-self/ns/net")


def unshare() -> None:
    """Move the calling thread into a new namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        code = ctypes.get_errno()
        raise HostError(f"a network namespace cannot be made ({os.strerror(code)})")


def remove(name: str) -> bool:
    """Remove the name of a namespace; return whether this process did it: another one may have."""
    try:
        netns.remove(name, ctypes.CDLL(None, use_errno=True))
    except FileNotFoundError:
        return False
    return True


def delete_watched(doomed: Mapping[str, Path], timeout: float) -> list[str]:
    """Delete namespaces, watched from an anonymous one (the calling thread ends up in it).

    A namespace loses its number in ours when the kernel begins to take it apart, which one worker does for the whole
    machine, batch by batch. So when the number of a second, empty namespace, let go after that, is lost too, the
    first batch is done: interfaces, tables and memory are free again.

    Returns:
        Names of the namespaces that this process deleted; another one may have deleted some at the same time.
    """
    deadline = time.monotonic() + timeout
    deleted = []
    unshare()
    with IPRoute() as numbering, IPRSocket() as watcher:
        for number, (name, path) in enumerate(doomed.items()):
            with suppress(FileNotFoundError):
                _number(numbering, os.open(path, os.O_RDONLY | os.O_CLOEXEC), number)
            if remove(name):
                deleted.append(name)
        _wait_gone(watcher, range(len(doomed)), deadline, ", ".join(doomed))
        _number(numbering, in_thread(_anonymous), len(doomed))
        _wait_gone(watcher, [len(doomed)], deadline, ", ".join(doomed))
    return deleted


def _anonymous() -> int:
    """A descriptor of a new namespace that nothing else holds once the calling thread has ended."""
    unshare()
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def _number(numbering: IPRoute, handle: int, number: int) -> None:
    """Give the namespace behind `handle` a number in the watcher's, and close the handle."""
    try:
        numbering.set_netnsid(fd=handle, nsid=number)
    finally:
        os.close(handle)


def _wait_gone(watcher: IPRSocket, numbers: Iterable[int], deadline: float, what: str) -> None:
    waiting = set(numbers)
    while waiting & _numbers(watcher):
        if time.monotonic() > deadline:
            lacking = capabilities.missing(*capabilities.PROCESSES)
            why = f" (not all can be found without {capabilities.described(lacking)})" if lacking else ""
            raise BrokenError(
                f"namespaces {what}: still in use after deletion; end what holds them{why} (see: lsns -t net)"
            )
        time.sleep(0.01)


def _numbers(watcher: IPRSocket) -> set[int]:
    # A dump, not a question for one number: the latter says "gone" already when the last user has let go.
    watcher.put(nsidmsg(), msg_type=RTM_GETNSID, msg_flags=NLM_F_REQUEST | NLM_F_DUMP)
    return {reply.get_attr("NETNSA_NSID") for reply in watcher.get() if reply["header"]["type"] == RTM_NEWNSID}
