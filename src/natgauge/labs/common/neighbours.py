# SPDX-License-Identifier: Apache-2.0
"""Limits of the kernel's neighbour tables, which must have room for all of the tester's hosts at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from natgauge.words import Family


def neighbour_limits(families: Iterable[Family], hosts: int) -> Iterator[tuple[str, int]]:
    """Each limit's file and the least value that it needs for this number of hosts (arp(7): gc_thresh1 to gc_thresh3).

    The highest limit comes first: the kernel wants the lower ones below it.
    """
    for family in set(families):
        for number, factor in ((3, 4), (2, 3), (1, 2)):
            yield f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}", hosts * factor
