# SPDX-License-Identifier: Apache-2.0
"""Gateways beside each other by the highest rates they have in turn: for processes, wires, and whatever has no slices.

All are up at once, unless they stand between given ports, or a setting of the whole machine differs. In each round each
gateway, the first one twice, is searched for its highest rate, in an order drawn anew; a frame costs 1 / rate. The
ratio of two such costs in one round is free of what the host was like in that minute, though not of what changed within
it: intervals are wider than those of slices, and honestly so. A search leaves two bounds, the highest rate that passed
and the lowest that failed, so each ratio is known between two values, too.
"""

from __future__ import annotations

import math
import os
import random
import statistics as plain
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Self

from natgauge.bench.bench import Bench, Ready
from natgauge.bench.rounds import MOST_VOID
from natgauge.bench.watch import Watch
from natgauge.campaigns.store import Store
from natgauge.comparisons.asked import Asked, CompareOptions, Goal, differing_knob
from natgauge.comparisons.contestants import sharing
from natgauge.comparisons.figures import Figure, Subject, figure_of
from natgauge.errors import BrokenError
from natgauge.labs import kinds
from natgauge.paired import Interval, interval
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.time_budget import TimeUpError
from natgauge.words import Quantity

#: Of each search. A frame that a stall took makes no rate: a failed trial is tried once more.
SEARCH: Final[Mapping[str, object]] = {"profile": "quick", "error": "2%", "loss_verifications": 1}
#: Phase 1 of a throughput need not be as fast as the device can, only surely no faster.
_SURELY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one search left: the highest rate that passed, and the lowest that failed (infinite: none did)."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The rate as one figure."""
        return self.lower if math.isinf(self.upper) else math.sqrt(self.lower * self.upper)


@dataclass(slots=True)
class Standing:
    """A gateway on a bench of its own.

    Attributes:
        label: what it is called.
        bench: where it stands.
        ready: it, about to be measured, for each quantity; empty before the `with` block.
        known: the last rate of each quantity.
        rounds: what the searches of each quantity left, round by round; None where one said nothing.
    """

    label: str
    bench: Bench
    ready: dict[Quantity, Ready] = field(default_factory=dict)
    known: dict[Quantity, float] = field(default_factory=dict)
    rounds: dict[Quantity, list[Bounds | None]] = field(default_factory=dict)


class _Labelled:
    """Keeps trials as the store does, each with the gateway's label."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.store: Store | None = None

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Keep one trial."""
        if self.store is not None:
            self.store.add_trial({"gateway": self.label, **trial})

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Keep one round of slices."""
        if self.store is not None:
            self.store.add_round({"gateway": self.label, **comparison_round})


class ByRates:
    """See `Way`."""

    # Seven rounds are the fewest that a median's interval can be made of at the first look.
    first_look = 8

    def __init__(
        self, gateways: Sequence[Asked], quantities: Sequence[Quantity], options: CompareOptions, watch: Watch
    ) -> None:
        """Plan all; nothing is made.

        Raises:
            UsageError: the first thing that is wrong.
        """
        self._watch, self._quantities, self._seed = watch, quantities, options.seed or 0
        self._placement = options.placement or "isolated"
        first = gateways[0]
        every = [*gateways, Asked(f"{first.label} (again)", first.recipe, first.choices)]
        self._all = [self._standing(one, number) for number, one in enumerate(every)]
        self.labels = [one.label for one in self._all[:-1]]
        self.stage = f"comparing {', '.join(self.labels)} by their highest rates, in turn"
        self.notes: list[str] = []
        self._voids: dict[str, int] = {}
        self._made = ExitStack()
        # Where ports are given, or a setting of the whole machine differs, only one can stand at a time.
        own_labs = all(one.choices.get("lab", kinds.DEFAULT) == kinds.DEFAULT for one in gateways)
        self._at_once = own_labs and differing_knob(gateways) is None
        self._sharing = sharing(one.bench for one in self._all) if self._at_once else 1
        self._keepers = {one.label: _Labelled(one.label) for one in self._all}

    def __enter__(self) -> Self:
        """Make all labs and start all gateways, each fit for all that is measured of it."""
        try:
            for one in self._all if self._at_once else ():
                self._made.enter_context(one.bench)
                self._start(one, self._quantities)
        except BaseException:
            self._made.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def conditions(self) -> Mapping[str, object]:
        """All that was chosen."""
        return {"gateways": {one.label: {"recipe": one.bench.recipe.origin} for one in self._all}, "search": SEARCH}

    def devices(self) -> Mapping[str, object]:
        """How each is set."""
        return {one.label: next(iter(one.ready.values())).device for one in self._all if one.ready}

    def round(self, store: Store, number: int) -> None:
        """Search each rate of each gateway once."""
        for keeper in self._keepers.values():
            keeper.store = store
        # Pseudorandom, not secret: whoever comes first in a round is no better off over many.
        order = random.Random(self._seed + number)  # noqa: S311 - no secret
        found: dict[str, dict[str, object]] = {one.label: {} for one in self._all}
        for quantity in self._quantities:
            for one in order.sample(self._all, len(self._all)):
                with self._up(one, quantity):
                    measured = self._search(one, quantity)
                bounds = _bounds(measured)
                one.rounds.setdefault(quantity, []).append(bounds)
                if bounds is None:
                    self._note_void(one, quantity, measured)
                else:
                    one.known[quantity] = bounds.lower
                    found[one.label][quantity] = [bounds.lower, None if math.isinf(bounds.upper) else bounds.upper]
        store.add_round({"rates": found})

    def figures(self, goal: Goal, alpha: float) -> list[Figure]:
        """What is known."""
        return [self._figure(one, quantity, goal, alpha) for one in self._all[1:] for quantity in self._quantities]

    def told(self) -> Mapping[str, object]:
        """The baseline's time for a frame at its highest rate, and every gateway's rates."""
        return {
            "by": "rates",
            "placement": self._placement,
            "baseline_costs": [
                {
                    "quantity": quantity,
                    "nanoseconds": _nanoseconds(self._all[0], quantity),
                    "share_of_forwarding": None,
                    "tester_nanoseconds": None,
                }
                for quantity in self._quantities
            ],
            "rates": {
                one.label: {quantity: _rate(one, quantity) for quantity in self._quantities} for one in self._all
            },
        }

    def _standing(self, asked: Asked, number: int) -> Standing:
        place: dict[str, object] = {"lab_name": f"compare-{os.getpid()}-{number}", "seed": self._seed}
        if asked.choices.get("lab", kinds.DEFAULT) == kinds.DEFAULT and "placement" not in asked.choices:
            place["placement"] = self._placement
        bench = Bench(asked.cell(place), self._watch)
        for quantity in self._quantities:
            # What is wrong is told before anything is made.
            bench.plan(*_asked(quantity))
        return Standing(asked.label, bench)

    def _start(self, one: Standing, wanted: Sequence[Quantity]) -> None:
        planned = {quantity: one.bench.plan(*_asked(quantity)) for quantity in self._quantities}
        # Fit for all at once: it is not set anew between one search and the next.
        facts = max((each.facts for each in planned.values()), key=lambda facts: facts.after_seconds)
        facts = replace(facts, sharing=self._sharing)
        for quantity in wanted:
            ready = replace(planned[quantity], facts=facts)
            one.ready[quantity] = one.bench.ready(ready, self._keepers[one.label])

    @contextmanager
    def _up(self, one: Standing, quantity: Quantity) -> Iterator[None]:
        """While it stands; where not all can be up at once, it is made for this and undone."""
        if self._at_once:
            yield
            return
        with one.bench:
            # Nothing else of it is started: two measurers of one wire would not know which four tuples the other used.
            self._start(one, (quantity,))
            yield

    def _search(self, one: Standing, quantity: Quantity) -> Measurement | TimeUpError:
        ready = one.ready[quantity]
        settings = ready.planned.settings
        try:
            if quantity != "new":
                if "new" not in one.known:
                    one.known["new"] = self._establishing(one, quantity)
                settings = replace(settings, connection_rate=one.known["new"] * _SURELY)  # type: ignore[call-arg] # has it
            return ready.planned.procedure.once(ready.measurer, settings, one.known.get(quantity), self._watch.event)
        except TimeUpError as error:
            return error

    def _establishing(self, one: Standing, quantity: Quantity) -> float:
        """How fast connections are established where no quantity asks for it: phase 1 must be no faster.

        Raises:
            BrokenError: none are.
            TimeUpError: as `Procedure.once`.
        """
        ready = one.ready[quantity]
        planned = one.bench.plan(*_asked("new"))
        found = planned.procedure.once(ready.measurer, planned.settings, None, self._watch.event)
        if not found.value:
            raise BrokenError(f'compare: {one.label}: establishes connections at no rate; see "natgauge measure"')
        return found.value

    def _note_void(self, one: Standing, quantity: Quantity, found: Measurement | TimeUpError) -> None:
        why = str(found) if isinstance(found, TimeUpError) else "no rate passed"
        self.notes.append(f"a search of {one.label} ({quantity}) is void: {why}")
        self._voids[one.label] = self._voids.get(one.label, 0) + 1
        if self._voids[one.label] >= MOST_VOID:
            raise BrokenError(
                f"compare: {one.label}: {why}, in {MOST_VOID} searches; see what it does with "
                '"natgauge measure throughput"'
            )

    def _figure(self, one: Standing, quantity: Quantity, goal: Goal, alpha: float) -> Figure:
        baseline, twin = self._all[0], self._all[-1]
        found = _interval(baseline, one, quantity, alpha)
        bias = None if one is twin else _interval(baseline, twin, quantity, alpha)
        blocks = len(_pairs(baseline, one, quantity))
        return figure_of(Subject(one.label, quantity, _nanoseconds(one, quantity), None, blocks), found, bias, goal)


def _asked(quantity: Quantity) -> tuple[str, dict[str, object]]:
    """Metric and settings of a quantity."""
    if quantity == "new":
        return "connection-rate", dict(SEARCH)
    return "throughput", {**SEARCH, "directions": quantity}


def _bounds(found: Measurement | TimeUpError) -> Bounds | None:
    """None where nothing passed: a rate of 0 has no cost."""
    if isinstance(found, TimeUpError) or not found.value:
        return None
    return Bounds(found.value, math.inf if found.upper is None else found.upper)


def _pairs(baseline: Standing, one: Standing, quantity: Quantity) -> list[tuple[Bounds, Bounds]]:
    """Of the rounds in which both have a rate."""
    both = zip(baseline.rounds.get(quantity, ()), one.rounds.get(quantity, ()), strict=False)
    return [(first, other) for first, other in both if first is not None and other is not None]


def _interval(baseline: Standing, one: Standing, quantity: Quantity, alpha: float) -> Interval | None:
    """Of the median ratio of costs: its ends are those of the lowest and the highest ratios that the bounds allow."""
    pairs = _pairs(baseline, one, quantity)
    middle = interval([first.middle / other.middle for first, other in pairs], alpha)
    lowest = interval([first.lower / other.upper for first, other in pairs], alpha)
    highest = interval([first.upper / other.lower for first, other in pairs], alpha)
    if middle is None or lowest is None or highest is None:
        return None
    return Interval(middle.ratio, lowest.low, highest.high, len(pairs))


def _rate(one: Standing, quantity: Quantity) -> float | None:
    """Median over rounds, frames/s."""
    rates = [bounds.middle for bounds in one.rounds.get(quantity, ()) if bounds is not None]
    return plain.median(rates) if rates else None


def _nanoseconds(one: Standing, quantity: Quantity) -> float | None:
    """Of a frame at the highest rate; both directions have frames, and the rate is that of each."""
    rate = _rate(one, quantity)
    return None if rate is None else 1e9 / rate / (2 if quantity == "both" else 1)
