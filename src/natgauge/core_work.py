# SPDX-License-Identifier: Apache-2.0
"""Work of each core of the devices: read before and after a trial, and added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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
