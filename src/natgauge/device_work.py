# SPDX-License-Identifier: Apache-2.0
"""What a trial takes of a device's machine, read before and after it: work of each core, memory for a connection.

Linux keeps connections in object caches (slabs), and /proc/slabinfo counts the objects of each (slabinfo(5)). A cache
belongs to the connection tracking table if a connection takes a whole number of its objects. Free memory would be
easier to read, but where the device shares a machine with the tester, the tester's memory changes, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

#: With fewer connections, objects that the rest of the machine makes and frees are too large a share.
LEAST_CONNECTIONS: Final = 10_000
#: The objects of a connection differ from a whole number by no more than this.
_NEAR_WHOLE: Final = 0.1
#: Name, objects in use, all objects, octets of an object.
_CACHE: Final = re.compile(r"^(\S+)\s+(\d+)\s+\d+\s+(\d+)\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CoreWork:
    """Work of one core.

    Attributes:
        busy_seconds: time in which the core was not idle, >= 0; None = not known.
        devices: devices of a chain that the core works for; empty = all of them.
    """

    frames: int
    busy_seconds: float | None = None
    devices: str = ""


#: Work by the number of the core; empty = not known.
WorkByCore = Mapping[int, CoreWork]


def total(every: Iterable[WorkByCore]) -> dict[int, CoreWork]:
    """Return the sum of several readings by core; a core whose time is unknown once has no time."""
    by_core: dict[int, CoreWork] = {}
    for work in every:
        for core, of_core in work.items():
            other = by_core.get(core, CoreWork(0, 0.0))
            known = None not in (of_core.busy_seconds, other.busy_seconds)
            seconds = (of_core.busy_seconds or 0.0) + (other.busy_seconds or 0.0) if known else None
            by_core[core] = CoreWork(of_core.frames + other.frames, seconds, of_core.devices)
    return by_core


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """An object cache of a kernel."""

    objects: int
    octets: int


#: Object caches by name; empty = not known.
ObjectCaches = Mapping[str, ObjectCache]


def read(text: str) -> dict[str, ObjectCache]:
    """Parse /proc/slabinfo; lines of another format are left out."""
    return {name: ObjectCache(int(objects), int(octets)) for name, objects, octets in _CACHE.findall(text)}


def octets_per_connection(before: ObjectCaches, after: ObjectCaches, connections: int, asked: int) -> float | None:
    """Return the memory of a connection in octets; None = not known.

    It is not known where the caches are not known, or where no cache grew with the connections: the device keeps them
    elsewhere, such as in a process. Nor is it where the device did not keep all connections that it was asked to: those
    that it refused leave objects behind for a while, so the growth of a cache says nothing of those that it kept.
    """
    if connections < max(LEAST_CONNECTIONS, asked):
        return None
    octets = 0.0
    for name, cache in after.items():
        each = (cache.objects - before.get(name, ObjectCache(0, 0)).objects) / connections
        if round(each) >= 1 and abs(each - round(each)) <= _NEAR_WHOLE:
            octets += each * cache.octets
    return octets or None
