# SPDX-License-Identifier: Apache-2.0
"""Recorded delays of trials, by load and direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Percentiles of the table.
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

#: (delay in us, share of the frames that took longer).
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Timed:
    """Delays of all trials of one load in one direction.

    Attributes:
        rate: rate of the frames in this direction, frames/s.
        points: the share of frames that took longer, over the delay.
        percentiles: delay in us by percent.
    """

    rate: float
    direction: str
    frames: int
    points: tuple[Point, ...]
    percentiles: Mapping[float, float]


class LoadDelays:
    """Counts of delays by load and direction, summed over trials."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[float, str], Counter[tuple[int, int]]] = {}

    def add(self, trial: Mapping[str, Any]) -> None:
        """Add the delays of a trial, if it was counted and its frames were timed."""
        phase = (trial.get("result") or {}).get("phase2") or {}
        if trial.get("verdict") in ("INVALID", "COLLAPSED") or not isinstance(phase, dict):
            return
        for direction, counts in phase.items():
            delay = counts.get("delay") if isinstance(counts, dict) else None
            if buckets := (delay or {}).get("buckets"):
                own = self._buckets.setdefault((float(counts["intended_rate"]), direction), Counter())
                for lower, upper, frames in buckets:
                    own[lower, upper] += frames
                if own.total() <= 0:
                    raise ValueError("its delays are of no frame")

    def distributions(self) -> list[Timed]:
        """Return the delays of each load and direction, the highest load first."""
        return [_timed(*key, sorted(self._buckets[key].items())) for key in sorted(self._buckets, reverse=True)]


def _timed(rate: float, direction: str, buckets: Sequence[tuple[tuple[int, int], int]]) -> Timed:
    total = sum(frames for _, frames in buckets)
    points: list[Point] = []
    wanted = {percent: math.ceil(round(percent * total / 100, 9)) for percent in PERCENTILES}
    percentiles: dict[float, float] = {}
    passed = 0
    for (lower, upper), frames in buckets:
        passed += frames
        middle = (lower + upper) / 2e3
        points.append((middle, 1 - passed / total))
        for percent, rank in wanted.items():
            if passed >= rank:
                percentiles.setdefault(percent, middle)
    return Timed(rate, direction, total, tuple(points), percentiles)
