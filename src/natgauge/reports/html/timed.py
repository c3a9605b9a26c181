# SPDX-License-Identifier: Apache-2.0
"""Recorded delays of a trial, by direction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Percentiles of the table.
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

#: (delay in us, share of the frames that took longer).
Point = tuple[float, float]
Buckets = Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Timed:
    """A trial's delays in one direction.

    Attributes:
        rate: rate of the frames in this direction, frames/s.
        direction: sender of the frames, "initiator" or "responder".
        frames: number of timed frames.
        points: the share of frames that took longer, over the delay.
        percentiles: delay in us by percent.
    """

    rate: float
    direction: str
    frames: int
    points: tuple[Point, ...]
    percentiles: Mapping[float, float]


def timed_of(trial: Mapping[str, Any]) -> Iterator[Timed]:
    """Yield the delays of both directions, if the trial was counted and its frames were timed."""
    phase = (trial.get("result") or {}).get("phase2") or {}
    if trial.get("verdict") in ("INVALID", "COLLAPSED") or not isinstance(phase, dict):
        return
    for direction, counts in phase.items():
        delay = counts.get("delay") if isinstance(counts, dict) else None
        buckets = (delay or {}).get("buckets")
        if buckets:
            yield _timed(direction, float(counts["intended_rate"]), buckets)


def _timed(direction: str, rate: float, buckets: Buckets) -> Timed:
    total = sum(frames for _, _, frames in buckets)
    points: list[Point] = []
    wanted = {percent: math.ceil(round(percent * total / 100, 9)) for percent in PERCENTILES}
    percentiles: dict[float, float] = {}
    passed = 0
    for lower, upper, frames in buckets:
        passed += frames
        middle = (lower + upper) / 2e3
        points.append((middle, 1 - passed / total))
        for percent, rank in wanted.items():
            if passed >= rank:
                percentiles.setdefault(percent, middle)
    return Timed(rate, direction, total, tuple(points), percentiles)
