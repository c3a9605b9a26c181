# SPDX-License-Identifier: Apache-2.0
"""Network namespaces that links join to a device's: its frames may be handled there.

The kernel numbers the namespaces at the other ends of links (IFLA_LINK_NETNSID). These numbers are compared, so that
neither a name nor an index of an interface, which may occur in each namespace, decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import HostError
from natgauge.labs.common import namespaces
from natgauge.labs.common.threads import in_thread

#: The first process's namespace is that of the machine, to which links of many programs lead.
_MACHINES: Final = Path("/proc/1/ns/net")
_OWN: Final = Path("/proc/self/ns/net")
#: NETNSA_NSID_NOT_ASSIGNED of linux/net_namespace.h, as an unsigned number.
_NO_NUMBER: Final = 0xFFFFFFFF
_NONE: Final[dict[int, int]] = {}
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
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def enter() -> _T:
        namespaces.enter(handle)
        return function()

    try:
        return in_thread(enter)
    finally:
        os.close(handle)


def _others(pids: Iterable[int]) -> dict[int, Path]:
    """Return the namespaces that neither natgauge made nor the machine or natgauge is in."""
    every: dict[int, Path] = {}
    kind = _OWN.stat().st_dev
    for path in (*map(namespaces.path_of, namespaces.names()), *(Path(f"/proc/{pid}/ns/net") for pid in pids)):
        with suppress(OSError):
            file = path.stat()
            # A name may be that of an ordinary file: its namespace is gone, or only its makers see it.
            if file.st_dev == kind:
                every.setdefault(file.st_ino, path)
    for path in (_MACHINES, _OWN, *map(namespaces.path_of, filter(_is_made, namespaces.names()))):
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
    theirs = _tried(path, partial(_numbers_of, rest), _NONE) if numbers else _NONE
    near = {inode for inode, number in theirs.items() if number in numbers}
    for inode in rest.keys() - near:
        if ends[inode] and _tried(rest[inode], partial(_numbers_of, {0: path}), _NONE).get(0) in ends[inode]:
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
            with suppress(OSError, NetlinkError):
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    answer = routes.get_netnsid(fd=handle)
                finally:
                    os.close(handle)
                if answer is not None and answer["nsid"] is not None:
                    numbers[inode] = int(answer["nsid"]) & _NO_NUMBER
    return {inode: number for inode, number in numbers.items() if number != _NO_NUMBER}
