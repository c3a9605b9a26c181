# SPDX-License-Identifier: Apache-2.0
"""Ratios of devices' work, block by block, with the tester's own work taken off.

A block visits every device and a cable within some milliseconds. What the cable took is the tester's own work.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from natgauge.statistics.interval import MedianEstimate
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.words import Quantity


def ratio(here: float, baseline: float, tester: float, baseline_tester: float) -> float | None:
    """Ratio of two devices' work in a block, 0 to infinity; None where neither shows above the tester's own."""
    device, other = here - tester, baseline - baseline_tester
    if other <= 0:
        return math.inf if device > 0 else None
    return max(device, 0.0) / other


class BlockWork(NamedTuple):
    """Work of one block.

    Attributes:
        quantity: kind of its frames.
        nanoseconds: for a frame, by position in the round; the tester's own work is included.
    """

    quantity: Quantity
    nanoseconds: Sequence[float]


@dataclass(frozen=True, slots=True)
class RoundPlace:
    """Positions of a gateway, its cable and its plain forwarding in a round."""

    label: str
    position: int
    cable: int
    forwarding: int


@dataclass(slots=True)
class _Collected:
    """Blocks of one place and quantity: ratios to the baseline by round, shares of plain forwarding, ns a frame."""

    rounds: list[list[float]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    nanoseconds: list[float] = field(default_factory=list)


class PairedRatios:
    """Collects blocks, and compares the work of each place with that of the first one, the baseline.

    Attributes:
        places: the baseline first.
        quantities: kinds of frames.
    """

    def __init__(self, places: Sequence[RoundPlace], quantities: Sequence[Quantity]) -> None:
        """Store the arguments; there are no blocks yet."""
        self.places = tuple(places)
        self.quantities = tuple(quantities)
        self._of = {(place.label, quantity): _Collected() for place in places for quantity in quantities}
        self._tester: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}
        self._forwarding: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}

    def add(self, blocks: Iterable[BlockWork], void: frozenset[int] = frozenset()) -> None:
        """Add the blocks of a round, without blocks of void positions."""
        baseline = self.places[0]
        if void & {baseline.position, baseline.cable}:
            return
        for collected in self._of.values():
            collected.rounds.append([])
        for quantity, took in blocks:
            self._tester[quantity].append(took[baseline.cable])
            if baseline.forwarding not in void:
                self._forwarding[quantity].append(took[baseline.forwarding] - took[baseline.cable])
            for place in self.places:
                if void & {place.position, place.cable}:
                    continue
                collected = self._of[place.label, quantity]
                own, tester = took[place.position], took[place.cable]
                collected.nanoseconds.append(own - tester)
                _append(collected.rounds[-1], ratio(own, took[baseline.position], tester, took[baseline.cable]))
                if place.forwarding not in void:
                    _append(collected.shares, ratio(own, took[place.forwarding], tester, tester))

    def estimate(self, place: RoundPlace, quantity: Quantity, alpha: float) -> MedianEstimate | None:
        """Median ratio of a place's work to the baseline's; None where rounds or blocks are too few."""
        return estimate_over_rounds(self._of[place.label, quantity].rounds, alpha)

    def blocks(self, place: RoundPlace, quantity: Quantity) -> int:
        """Number of blocks with a ratio of this place and quantity, in all rounds."""
        return sum(map(len, self._of[place.label, quantity].rounds))

    def nanoseconds(self, place: RoundPlace, quantity: Quantity) -> float | None:
        """A place's own work for a frame, ns, median over blocks; None without blocks."""
        return _median(self._of[place.label, quantity].nanoseconds)

    def ratio_to_forwarding(self, place: RoundPlace, quantity: Quantity) -> float | None:
        """A place's work / that of plain forwarding, median over blocks; None without blocks."""
        return _median(self._of[place.label, quantity].shares)

    def tester(self, quantity: Quantity) -> float | None:
        """The tester's own work for a frame like the baseline's, ns; None without blocks."""
        return _median(self._tester[quantity])

    def forwarding(self, quantity: Quantity) -> float | None:
        """Work of plain forwarding for a frame like the baseline's, ns; None without blocks."""
        return _median(self._forwarding[quantity])


def _append(values: list[float], value: float | None) -> None:
    if value is not None:
        values.append(value)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
