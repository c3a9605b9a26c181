# SPDX-License-Identifier: Apache-2.0
"""Ratios of devices' work, block by block, without the tester's own work.

A block visits every device and a cable within some milliseconds. The time of the cable is the tester's own work.

No cable carries the frames of a device that translates between address families: they are sent in one family and arrive
in the other. The tester's own work for them lies between that of a cable of either family. Their mean is taken off, and
intervals reach to the ends that follow from each cable alone.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from natgauge.paired.slices import BlockWork
from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate
from natgauge.statistics.rounds import estimate_over_rounds, magnitude_over_rounds
from natgauge.words import Quantity

#: A kind of frames: what decides the cost of plain forwarding and of a cable.
KindT = TypeVar("KindT", bound=Hashable)
#: What has a position in a round. A gateway that only forwards is its own plain forwarding.
PlaceKind = Literal["gateway", "plain forwarding", "cable"]


def ratio(device: float, other: float) -> float | None:
    """Return the ratio of two devices' work in a block, without the tester's own work.

    Below 0 where only the other device has work above the tester's own, infinite where only this one has, None where
    neither has.
    """
    if other <= 0:
        return math.inf if device > 0 else None
    return device / other


def work_of_block(quantity: Quantity, order: Sequence[int], nanoseconds: Sequence[int], frames: int) -> BlockWork:
    """Return the work of a block, which visits each place twice, in counterbalanced order, within some milliseconds.

    Args:
        order: positions in the order of the first slices; the second ones follow in the reverse order.
        nanoseconds: duration of each slice in its order.
    """
    work = [0.0] * len(order)
    for position, first, second in zip(order, nanoseconds, reversed(nanoseconds), strict=False):
        work[position] = (first + second) / (2 * frames)
    return BlockWork(quantity, work)


@dataclass(frozen=True, slots=True)
class RoundPlace:
    """Positions of a gateway and its references in a round.

    Attributes:
        positions: of the gateway; of plain forwarding, whose work is compared, one for each family.
    """

    label: str
    positions: tuple[int, ...]
    cables: tuple[int, ...]
    forwarding: tuple[int, ...]

    @property
    def needs(self) -> frozenset[int]:
        """Positions without which there is no work of the gateway."""
        return frozenset((*self.positions, *self.cables))

    def works(self, took: Sequence[float]) -> tuple[float, ...]:
        """Return the gateway's own work in a block with these times.

        The first value is the best estimate. Between two families the values that follow are the ends of the range that
        contains the true value.
        """
        own, testers = _mean(took, self.positions), _mean(took, self.cables)
        if len(self.positions) == len(self.cables):
            return (own - testers,)
        return (own - testers, *(own - took[cable] for cable in self.cables))

    def same_tester(self, other: RoundPlace) -> bool:
        """Whether the tester's own work is the same for both, so that its uncertainty is the same, too."""
        return self.cables == other.cables and len(self.positions) == len(other.positions)


@dataclass(frozen=True, slots=True)
class Seat(Generic[KindT]):
    """A gateway of a round, with a kind of frames for each address family; it may be their plain forwarding itself."""

    label: str
    kinds: Sequence[KindT]
    forwards: bool = False


class Seating(Generic[KindT]):
    """The places of a round: its gateways, then plain forwarding, then cables of each kind of frames.

    Attributes:
        labels: of all positions in order; `kinds` are what has them.
        places: of the gateways, in order.
        forwarding: position of plain forwarding, by the kind of frames; that of a gateway if that only forwards.
    """

    def __init__(
        self, seats: Sequence[Seat[KindT]], named: Callable[[KindT], str] = lambda _kind: "plain forwarding"
    ) -> None:
        """Seat the gateways; `named` returns the name of plain forwarding of a kind of frames."""
        kinds = list(dict.fromkeys(kind for seat in seats for kind in seat.kinds))
        self.labels = [seat.label for seat in seats]
        self.kinds: list[PlaceKind] = ["gateway"] * len(seats)
        self.forwarding: dict[KindT, int] = {}
        for kind in kinds:
            own = (at for at, seat in enumerate(seats) if seat.forwards and list(seat.kinds) == [kind])
            if (position := next(own, None)) is None:
                position = len(self.labels)
                self.labels.append(named(kind))
                self.kinds.append("plain forwarding")
            self.forwarding[kind] = position
        self._cables = {kind: len(self.labels) + at for at, kind in enumerate(kinds)}
        self.labels += ["cable"] * len(kinds)
        self.kinds += ["cable"] * len(kinds)
        self.places = [self._place(seat.label, (at,), seat.kinds) for at, seat in enumerate(seats)]

    def plain(self) -> RoundPlace:
        """Return the place of plain forwarding of all kinds, for comparisons with it."""
        return self._place("plain forwarding", tuple(self.forwarding.values()), list(self.forwarding))

    def _place(self, label: str, positions: tuple[int, ...], kinds: Sequence[KindT]) -> RoundPlace:
        cables, forwarding = (tuple(at[kind] for kind in kinds) for at in (self._cables, self.forwarding))
        return RoundPlace(label, positions, cables, forwarding)


@dataclass(slots=True)
class _Collected:
    """Blocks of one place and quantity: ratios to the baseline by round, shares of plain forwarding, ns a frame.

    The rounds are once in `rounds` for each assumption on the tester's own work, the best one first.
    """

    rounds: list[list[list[float]]]
    shares: list[float] = field(default_factory=list)
    nanoseconds: list[float] = field(default_factory=list)


class PairedRatios:
    """Collects blocks, and compares the work of each place with that of the first one, the baseline."""

    def __init__(self, places: Sequence[RoundPlace], quantities: Sequence[Quantity]) -> None:
        self.places = tuple(places)
        self.quantities = tuple(quantities)
        self._assumptions = {place.label: _assumptions(place, places[0]) for place in places}
        self._of = {
            (place.label, quantity): _Collected([[] for _ in self._assumptions[place.label]])
            for place in places
            for quantity in quantities
        }
        self._tester: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}
        self._forwarding: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}

    def add(self, blocks: Iterable[BlockWork], void: frozenset[int] = frozenset()) -> None:
        """Add the blocks of a round, without blocks of void positions."""
        baseline = self.places[0]
        if void & baseline.needs:
            return
        for collected in self._of.values():
            for rounds in collected.rounds:
                rounds.append([])
        for quantity, took in blocks:
            self._tester[quantity].append(_mean(took, baseline.cables))
            if not void & {*baseline.forwarding}:
                self._forwarding[quantity].append(_forwarded(baseline, took))
            for place in self.places:
                if void & place.needs:
                    continue
                collected = self._of[place.label, quantity]
                works, baselines = place.works(took), baseline.works(took)
                collected.nanoseconds.append(works[0])
                for rounds, (own, other) in zip(collected.rounds, self._assumptions[place.label], strict=True):
                    _append(rounds[-1], ratio(works[own], baselines[other]))
                if not void & {*place.forwarding}:
                    _append(collected.shares, ratio(works[0], _forwarded(place, took)))

    def estimate(self, place: RoundPlace, quantity: Quantity, alpha: float) -> MedianEstimate | None:
        """Median ratio of a place's work to the baseline's, 0 to infinity; None where rounds or blocks are too few."""
        assumed = self._of[place.label, quantity].rounds
        estimates = [estimate for rounds in assumed if (estimate := estimate_over_rounds(rounds, alpha)) is not None]
        if len(estimates) < len(assumed):
            return None
        lower, upper = (min(each.lower for each in estimates), max(each.upper for each in estimates))
        interval = ConfidenceInterval(max(0.0, lower), max(0.0, upper), 1 - alpha)
        return MedianEstimate(max(0.0, estimates[0].value), interval, estimates[0].number)

    def bound(self, place: RoundPlace, quantity: Quantity, alpha: float) -> float | None:
        """Return the largest ratio of a place's work to the baseline's that noise can hide.

        For a place without work above the tester's own. None where the baseline has none in a round, or rounds or
        blocks are too few.
        """
        magnitudes = [magnitude_over_rounds(rounds, alpha) for rounds in self._of[place.label, quantity].rounds]
        known = [magnitude for magnitude in magnitudes if magnitude is not None and math.isfinite(magnitude)]
        return max(known) if len(known) == len(magnitudes) else None

    def blocks(self, place: RoundPlace, quantity: Quantity) -> int:
        """Number of blocks with a ratio of this place and quantity, in all rounds."""
        return sum(map(len, self._of[place.label, quantity].rounds[0]))

    def nanoseconds(self, place: RoundPlace, quantity: Quantity) -> float | None:
        """A place's own work for a frame, ns, median over blocks; None without blocks."""
        return _median(self._of[place.label, quantity].nanoseconds)

    def ratio_to_forwarding(self, place: RoundPlace, quantity: Quantity) -> float | None:
        """A place's work / that of plain forwarding, median over blocks, at least 0; None without blocks."""
        share = _median(self._of[place.label, quantity].shares)
        return None if share is None else max(0.0, share)

    def tester(self, quantity: Quantity) -> float | None:
        """The tester's own work for a frame like the baseline's, ns; None without blocks."""
        return _median(self._tester[quantity])

    def forwarding(self, quantity: Quantity) -> float | None:
        """Work of plain forwarding for a frame like the baseline's, ns; None without blocks."""
        return _median(self._forwarding[quantity])


def _assumptions(place: RoundPlace, baseline: RoundPlace) -> list[tuple[int, int]]:
    """Return pairs of positions in the works of a place and of the baseline, the best estimate first."""

    def positions(of: RoundPlace) -> range:
        return range(1 if len(of.positions) == len(of.cables) else 1 + len(of.cables))

    if place.same_tester(baseline):
        return [(at, at) for at in positions(place)]
    return list(itertools.product(positions(place), positions(baseline)))


def _forwarded(place: RoundPlace, took: Sequence[float]) -> float:
    return _mean(took, place.forwarding) - _mean(took, place.cables)


def _mean(took: Sequence[float], positions: Sequence[int]) -> float:
    return sum(took[position] for position in positions) / len(positions)


def _append(values: list[float], value: float | None) -> None:
    if value is not None:
        values.append(value)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
