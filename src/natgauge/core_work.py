# SPDX-License-Identifier: Apache-2.0
"""Work of each core of the devices: read before and after a trial, and judged for how evenly it is spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

#: A core is idle with less than this share of the mean frames and of the busiest core's time.
IDLE_SHARE: Final = 0.1
#: With fewer frames for each core, chance alone spreads them unevenly.
LEAST_FRAMES: Final = 100


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


def imbalance(work: WorkByCore) -> float | None:
    """Return the frames of the busiest core divided by the mean of all cores, from 1 to the number of cores.

    Where devices of a chain have cores of their own, each device is taken by itself, and the largest value counts.
    None where no device has several cores, or where each has fewer than `LEAST_FRAMES` frames for each core.
    """
    known = [each for each in map(_imbalance, _by_devices(work)) if each is not None]
    return max(known, default=None)


def idle_cores(work: WorkByCore) -> list[int]:
    """Return the cores that did next to nothing (`IDLE_SHARE`), ascending; empty where `imbalance` is None."""
    return sorted(core for of_device in _by_devices(work) for core in _idle(of_device))


def _by_devices(work: WorkByCore) -> Iterable[WorkByCore]:
    groups: dict[str, dict[int, CoreWork]] = {}
    for core, of_core in work.items():
        groups.setdefault(of_core.devices, {})[core] = of_core
    return groups.values()


def _imbalance(work: WorkByCore) -> float | None:
    frames = sum(of_core.frames for of_core in work.values())
    if len(work) < 2 or frames < LEAST_FRAMES * len(work):
        return None
    return max(of_core.frames for of_core in work.values()) * len(work) / frames


def _idle(work: WorkByCore) -> list[int]:
    if _imbalance(work) is None:
        return []
    mean = sum(of_core.frames for of_core in work.values()) / len(work)
    longest = max(of_core.busy_seconds or 0.0 for of_core in work.values())
    return [
        core
        for core, of_core in work.items()
        if of_core.frames < IDLE_SHARE * mean
        and (of_core.busy_seconds is None or not longest or of_core.busy_seconds < IDLE_SHARE * longest)
    ]
