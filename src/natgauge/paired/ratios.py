# SPDX-License-Identifier: Apache-2.0
"""Ratios of what devices cost, from rounds of slices or from searches for a rate, and the policy for void places.

A block visits every device and a cable within some milliseconds. The time of the cable is the tester's own work, and is
taken off.

No cable carries the frames of a device that translates between address families: they are sent in one family and arrive
in the other. The tester's own work for them lies between that of a cable of either family. Their mean is taken off, and
intervals reach to the ends that follow from each cable alone.

Costs and comparisons add rounds up by one policy. A place whose frames were lost or wrong in a round is void in it: its
slices say nothing, those of the others count. A ratio that lacks a place in a round is measured again in a further
round. A place that is void in three rounds in a row ends the measurement, and so does a ratio that more rounds lack
than have, because places are void in turn.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent
from natgauge.notes import Note
from natgauge.other_traffic import OtherTraffic, other_traffic_note
from natgauge.paired.slices import BlockWork, TimedRound
from natgauge.statistics.rounds import estimate_over_rounds, magnitude_over_rounds
from natgauge.statistics.summary import ConfidenceInterval, MedianEstimate, median_estimate
from natgauge.words import Quantity, SearchLimitedBy


@dataclass(frozen=True, slots=True)
class RateBounds:
    """Bounds of the device's rate after one search, in frames/s of each direction.

    Attributes:
        lower: a rate that the device surely does; 0 where no rate passed.
        passed: the highest rate that passed; queues and tolerated lag may have raised it above the device's own. 0 =
            none passed.
        upper: the lowest rate that the device failed; infinite where it failed none.
        limit: what ended the search instead of the device; "" = the device did, or it is not known.
    """

    lower: float
    passed: float
    upper: float
    limit: SearchLimitedBy | Literal[""] = ""

    @property
    def middle(self) -> float:
        """Geometric mean of the passed rate and the bound; the passed rate where there is no bound."""
        return self.passed if math.isinf(self.upper) else math.sqrt(self.passed * self.upper)


@dataclass(slots=True)
class RateRounds:
    """The searches for one rate of one gateway, round by round.

    Attributes:
        rounds: bounds of each search; None = the tester, the host or the time voided it, so nothing is known.
    """

    label: str
    quantity: Quantity
    rounds: list[RateBounds | None] = field(default_factory=list)

    @property
    def bounds(self) -> list[RateBounds]:
        """Bounds of the searches in which a rate passed."""
        return [bounds for bounds in self.rounds if bounds is not None and bounds.passed]

    @property
    def rate(self) -> float | None:
        """Median over rounds, in frames/s of each direction; None before there is one."""
        return statistics.median(bounds.middle for bounds in self.bounds) if self.bounds else None

    @property
    def nanoseconds(self) -> float | None:
        """Time for a frame at the highest rate, ns; None if the rate is unknown, or only a lower bound is known."""
        rate = self.rate
        if rate is None or math.isinf(statistics.median_high(bounds.upper for bounds in self.bounds)):
            return None
        # Both directions have frames, and the rate is that of each.
        return 1e9 / rate / (2 if self.quantity == "both" else 1)


def pairs(baseline: RateRounds, other: RateRounds) -> list[tuple[RateBounds, RateBounds]]:
    """Return the bounds of both gateways in the rounds in which both have some."""
    both = zip(baseline.rounds, other.rounds, strict=False)
    return [(first, second) for first, second in both if first is not None and second is not None]


def ratio_of(baseline: RateRounds, other: RateRounds, alpha: float) -> MedianEstimate | None:
    """Estimate the median ratio of costs; the interval covers the lowest and highest ratios that the bounds allow.

    A gateway that passed no rate has an infinite cost. Where neither passed one, the ratio may be any.
    """
    both = pairs(baseline, other)
    middles = [_quotient(first.middle, second.middle) for first, second in both if first.passed or second.passed]
    lowest = median_estimate([first.lower / second.upper for first, second in both], alpha)
    highest = median_estimate([_quotient(first.upper, second.lower) for first, second in both], alpha)
    if not middles or lowest is None or highest is None:
        return None
    interval = ConfidenceInterval(lowest.lower, highest.upper, lowest.interval.coverage)
    return MedianEstimate(statistics.median(middles), interval, len(both))


def _quotient(first: float, second: float) -> float:
    return first / second if second else math.inf


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

    if place.cables == baseline.cables and len(place.positions) == len(baseline.positions):
        # The tester's own work is the same for both, so its uncertainty is the same, too.
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


#: A place that is void in this many rounds in a row ends the measurement.
MOST_VOID: Final = 3
#: More rounds than these that a ratio lacks end the measurement, if fewer rounds have it.
MOST_LACKED: Final = 8
#: What to do where a place without a gateway is void, the likeliest cause first; of gateways each method says it.
_REMEDIES: Final[Mapping[PlaceKind, str]] = {
    "cable": "a cable has no gateway in it, so the fault is in this host: end other work on it, and see "
    '"natgauge selftest" and "natgauge doctor"',
    "plain forwarding": "plain forwarding has no gateway in it, so the fault is in this host: end other work on it, "
    'and see what it does with "natgauge measure throughput --gateway linux-ipv4" (or linux-ipv6)',
}
#: A larger share of interrupted slices makes intervals visibly wider.
_MANY_INTERRUPTED: Final = 0.05


class Void(NamedTuple):
    """A place that is void in a round: what it is, and why it is void."""

    kind: PlaceKind
    why: str


_VALID: Final = Void("gateway", "")


@dataclass(slots=True)
class VoidRounds:
    """Notes void rounds, and counts those of a place in a row, and those that a ratio lacks.

    A message that ends the measurement begins with the command and ends with the remedy, which for a gateway is the
    `remedy` of its place; `what` is void: "round" or "search".
    """

    command: str
    what: str
    remedy: Callable[[str], str]
    notes: list[Note] = field(default_factory=list)
    _in_a_row: dict[str, int] = field(default_factory=dict)
    _having: Counter[str] = field(default_factory=Counter)
    _lacking: dict[str, list[Mapping[str, Void]]] = field(default_factory=dict)

    def judge(self, place: str, why: str, kind: PlaceKind = "gateway") -> None:
        """Take a round into account: `why` it is void for this place, or empty; BrokenError ends the measurement."""
        self._in_a_row[place] = self._in_a_row.get(place, 0) + 1 if why else 0
        if self._in_a_row[place] >= MOST_VOID:
            plural = "searches" if self.what == "search" else f"{self.what}s"
            raise BrokenError(
                f"{self.command}: {place}: {why}, in {MOST_VOID} {plural} in a row; {self._to_do(place, kind)}"
            )
        if why:
            self.notes.append(Note("trials", f"a {self.what} of {place} is void: {why}"))

    def judge_ratio(self, ratio: str, void: Mapping[str, Void]) -> None:
        """Take a round into account: the void places, by label, that a ratio lacks in it.

        BrokenError ends the measurement: the ratio lacks too many rounds.
        """
        if not void:
            self._having[ratio] += 1
            return
        lacking, having = self._lacking.setdefault(ratio, []), self._having[ratio]
        lacking.append(void)
        if len(lacking) <= max(MOST_LACKED, having):
            return
        numbers = Counter(place for each in lacking for place in each)
        places = ", ".join(f"{place} in {number}" for place, number in numbers.most_common())
        kinds = {one.kind for each in lacking for one in each.values()}
        # A host that spoils frames where there is no gateway may spoil those of gateways as well.
        kind: PlaceKind = next((kind for kind in _REMEDIES if kind in kinds), "gateway")
        place, last = next(iter(void.items()))
        raise BrokenError(
            f"{self.command}: {ratio}: {len(lacking)} of {len(lacking) + having} rounds are void, more than are valid "
            f"({places}); the last: {place}: {last.why}; {self._to_do(place, kind)}"
        )

    def _to_do(self, place: str, kind: PlaceKind) -> str:
        return _REMEDIES.get(kind) or self.remedy(place)


class RoundSums:
    """All rounds of one measurement.

    Attributes:
        slices: of all rounds, also those of void places; `waited` and `interrupted` as in `TimedRound`.
    """

    def __init__(self, voids: VoidRounds, seating: Seating[KindT], ratios: PairedRatios) -> None:
        self.voids = voids
        self.ratios = ratios
        self._labels, self._kinds = seating.labels, seating.kinds
        self.slices = self.interrupted = self.waited = 0
        self.others: list[OtherTraffic] = []
        self.log_drops: Counter[str] = Counter()

    def add(self, done: TimedRound) -> bool:
        """Add a round; return whether every place was valid. BrokenError: a place was void too often in a row."""
        # Several cables share a label, and so may several devices that only forward: each label is judged once.
        void = self._void(done, frozenset(done.faults))
        for label in dict.fromkeys(self._labels):
            found = void.get(label, _VALID)
            self.voids.judge(label, found.why, found.kind)
        baseline, *others = self.ratios.places
        for place in others:
            self.voids.judge_ratio(place.label, self._void(done, baseline.needs | place.needs))
        self.ratios.add(done.work, frozenset(done.faults))
        self.slices += done.slices
        self.interrupted += done.interrupted
        self.waited += done.waited
        self.others.append(done.other_traffic)
        for position, dropped in done.log_drops.items():
            self.log_drops[self._labels[position]] += dropped
        return not done.faults

    def _void(self, done: TimedRound, positions: frozenset[int]) -> dict[str, Void]:
        void: dict[str, Void] = {}
        for position, fault in sorted(done.faults.items()):
            if position in positions:
                label = self._labels[position]
                before = f"{void[label].why}; " if label in void else ""
                void[label] = Void(self._kinds[position], before + fault)
        return void


def disturbance_notes(sums: Iterable[RoundSums]) -> tuple[list[Note], list[Note]]:
    """Return notes on other traffic and logs, and on slices with an interruption of over 1 ms, if there were many."""
    every = list(sums)
    others = [*other_traffic_note([other for one in every for other in one.others], "rounds"), *_log_note(every)]
    interrupted, slices = sum(one.interrupted for one in every), sum(one.slices for one in every)
    if interrupted <= _MANY_INTERRUPTED * slices:
        return others, []
    share = interrupted / slices
    text = f"the core was taken away for more than 1 ms in {in_percent(share)} of all slices; intervals are wider"
    return others, [Note("trials", text, interrupted)]


def _log_note(sums: Iterable[RoundSums]) -> list[Note]:
    """Return the doubt about records that logs dropped, or else a note that nobody compared the logs; none without."""
    logs: Counter[str] = Counter()
    for one in sums:
        logs.update(one.log_drops)
    dropped = {label: number for label, number in logs.items() if number}
    if not dropped:
        text = (
            f"slices compare no log with the connections, so nobody knows whether that of {', '.join(logs)} was whole"
        )
        return [Note("method", text)] if logs else []
    said = ", ".join(f"{label} {number:,}" for label, number in dropped.items())
    # A message may have a hundred records (nfnetlink_log), so nobody knows which share of the connections that is.
    text = (
        f"logs had no room for messages ({said}; each has a record or more), which costs less than to write them: "
        "with a whole log the cost is higher"
    )
    return [Note("log dropped", text, sum(dropped.values()), None, "answer")]
