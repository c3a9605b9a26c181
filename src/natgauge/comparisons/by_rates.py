# SPDX-License-Identifier: Apache-2.0
"""Gateways beside each other by the highest rates they have in turn: for processes, wires, and whatever has no slices.

All are up at once, unless they stand between given ports, or a setting of the whole machine differs. Each round has
labs and a seed of its own. In each round each gateway, the first one twice, is searched for its highest rate, in an
order drawn anew; a frame costs 1 / rate. The ratio of two such costs in one round is free of what the host was like in
that minute, though not of what changed within it: intervals are wider than those of slices, and honestly so. A search
leaves two bounds, a rate that the device surely does and one that it failed, so each ratio is known between two values,
too (`searched`).
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Self, cast

from natgauge.bench.bench import Bench, Ready
from natgauge.bench.planned import Planned
from natgauge.bench.receiver_time import receiver_seconds
from natgauge.bench.seeds import in_repetition
from natgauge.bench.watch import Watch
from natgauge.comparisons.asked import ComparedGateway, CompareOptions, ComparisonGoal, differing_knob, goal_of
from natgauge.comparisons.contestants import sharing
from natgauge.comparisons.figures import Subject, estimate_of
from natgauge.comparisons.searched import Searched, pairs, ratio_of, refuse_too_few
from natgauge.comparisons.way import Findings, making_again
from natgauge.errors import BrokenError, UsageError
from natgauge.host import machine
from natgauge.inputs.question import Cell
from natgauge.measurements.conditions import with_receiver, without_search
from natgauge.measurements.measure import parameters_of
from natgauge.paired.voids import VoidRounds
from natgauge.procedures.kit.search.queues import LEAST_WAIT_SECONDS, waits
from natgauge.procedures.kit.search.rate_search import SearchSettings
from natgauge.procedures.kit.time_budget import TimeUpError
from natgauge.records.comparison import BaselineCost, RatioEstimate
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.statistics.order_statistics import rank_of_end
from natgauge.words import Quantity

#: Of each search. A frame that a stall took makes no rate: a failed trial is tried once more.
SEARCH: Final[Mapping[str, object]] = {"profile": "quick", "error": "2%", "loss_verifications": 1}
#: Phase 1 of a throughput need not be as fast as the device can, only surely no faster.
_SURELY: Final = 0.5


@dataclass(slots=True)
class RatedGateway:
    """A gateway on a bench of its own.

    Attributes:
        label: what it is called.
        cell: what is measured, and where.
        bench: where it stands in this round.
        ready: it, about to be measured, for each quantity; empty before the `with` block.
        known: the last rate of each quantity.
        searched: what the searches of each quantity left.
        receivers: what the tester's receivers took of the device's cores in searches of each quantity, s a frame; None
            = not known.
    """

    label: str
    cell: Cell
    bench: Bench
    ready: dict[Quantity, Ready] = field(default_factory=dict)
    known: dict[Quantity, float] = field(default_factory=dict)
    searched: dict[Quantity, Searched] = field(default_factory=dict)
    receivers: dict[Quantity, float | None] = field(default_factory=dict)


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

    # At 95 % seven rounds are the fewest that a median's interval can be made of at the first look.
    first_look = 8

    def __init__(
        self, gateways: Sequence[ComparedGateway], quantities: Sequence[Quantity], options: CompareOptions, watch: Watch
    ) -> None:
        """Plan all; nothing is made.

        Raises:
            UsageError: the first thing that is wrong.
        """
        self._watch, self._quantities, self._seed = watch, quantities, options.seed or 0
        self._goal = goal_of(options)
        self._placement = options.placement or "isolated"
        first = gateways[0]
        every = [*gateways, ComparedGateway(f"{first.label} (again)", first.recipe, first.choices)]
        self._all = [self._standing(one, number) for number, one in enumerate(every)]
        self.labels = [one.label for one in self._all[:-1]]
        self.stage = f"comparing {', '.join(self.labels)} by their highest rates, in turn"
        self._voids = VoidRounds("compare", "search", 'see what it does with "natgauge measure throughput"')
        self.notes = self._voids.notes
        self._made = ExitStack()
        # Where ports are given, or a setting of the whole machine differs, only one can stand at a time.
        own_labs = all(one.lab_kind.shares_core for one in gateways)
        self._at_once = own_labs and differing_knob(gateways) is None
        self._sharing = sharing(one.bench for one in self._all) if self._at_once else 1
        self._keepers = {one.label: _Labelled(one.label) for one in self._all}
        self._machine: Mapping[str, object] = {}

    def __enter__(self) -> Self:
        """Make all labs and start all gateways for the first round, each fit for all that is measured of it."""
        self._machine = machine.facts()
        self._make()
        return self

    def _make(self) -> None:
        try:
            for one in self._all if self._at_once else ():
                self._made.enter_context(one.bench)
                self._start(one, self._quantities)
        except BaseException:
            self._made.close()
            raise

    def _renew(self, number: int) -> None:
        """Give each gateway a bench and a seed of this round's own, so that the interval covers what these change.

        Raises:
            NatgaugeError: as `Bench`.
        """
        self._made.close()
        for one in self._all:
            one.bench = Bench(in_repetition(one.cell, self._seed, number + 1), self._watch)
        self._make()

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def conditions(self) -> Mapping[str, object]:
        """All that was chosen."""
        return {"gateways": {one.label: {"recipe": one.bench.recipe.origin} for one in self._all}, "search": SEARCH}

    def devices(self) -> Mapping[str, object]:
        """How each is set."""
        return {one.label: next(iter(one.ready.values())).device for one in self._all if one.ready}

    def round(self, store: Store, number: int) -> None:
        """Search each rate of each gateway once.

        Raises:
            BrokenError: a gateway has no rate, again and again.
            NotMadeAgainError: the lab of a gateway could not be made, in another round than the first one.
            UsageError: the connections are too few for an answer, or a gateway runs on an emulated machine.
        """
        for keeper in self._keepers.values():
            keeper.store = store
        if number:
            with making_again(number):
                self._renew(number)
        # Pseudorandom, not secret: whoever comes first in a round is no better off over many.
        order = random.Random(self._seed + number)  # noqa: S311 - no secret
        found: dict[str, dict[str, object]] = {one.label: {} for one in self._all}
        for quantity in self._quantities:
            for one in order.sample(self._all, len(self._all)):
                with self._up(one, quantity, number):
                    why = self._search(one, quantity)
                self._voids.judge(f"{one.label} ({quantity})", why)
                bounds = one.searched[quantity].rounds[-1]
                if bounds is not None:
                    one.known[quantity] = bounds.passed
                    found[one.label][quantity] = [bounds.lower, None if math.isinf(bounds.upper) else bounds.upper]
            if quantity == "new":
                self._refuse_too_few()
        store.add_round({"rates": found})

    def _refuse_too_few(self) -> None:
        """See that the connections are enough for an answer, as soon as that can be told."""
        baseline, *others = (one.searched["new"] for one in self._all)
        connections = {one.label: one.bench.traffic.connections for one in self._all}
        for other in others:
            refuse_too_few(baseline, other, connections, self._goal)

    def least_rounds(self, alpha: float) -> int:
        """As many as the interval of a median takes."""
        return next(number for number in itertools.count(1) if rank_of_end(number, alpha))

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline."""
        return [self._estimate(one, quantity, goal, alpha) for one in self._all[1:] for quantity in self._quantities]

    def parameters(self) -> Mapping[str, Parameters]:
        """Return all that was set for each gateway, by its label."""
        return {one.label: self._set_for(one) for one in self._all}

    @staticmethod
    def _set_for(one: RatedGateway) -> Parameters:
        """The parameters under which a gateway was searched first; only its name where no search left anything."""
        known = (searched.parameters for searched in one.searched.values())
        found = next((parameters for parameters in known if parameters is not None), None)
        return Parameters(device={"dut": one.bench.recipe.name}) if found is None else without_search(found)

    def findings(self) -> Findings:
        """Return the baseline's time for a frame at its highest rate, and every gateway's rates with their doubts."""
        baseline = self._all[0].searched
        return Findings(
            by="rates",
            baseline_costs=tuple(
                BaselineCost(
                    quantity=quantity,
                    nanoseconds=baseline[quantity].nanoseconds,
                    ratio_to_forwarding=None,
                    tester_nanoseconds=None,
                )
                for quantity in self._quantities
            ),
            rates={one.label: {each.quantity: each.rate for each in one.searched.values()} for one in self._all},
            doubts={one.label: {each.quantity: each.doubts for each in one.searched.values()} for one in self._all},
        )

    def _standing(self, asked: ComparedGateway, number: int) -> RatedGateway:
        place: dict[str, object] = {"lab_name": f"compare-{os.getpid()}-{number}", "seed": self._seed}
        if asked.lab_kind.shares_core and "placement" not in asked.choices:
            place["placement"] = self._placement
        cell = asked.cell(place)
        bench = Bench(cell, self._watch)
        for quantity in self._quantities:
            # What is wrong is told before anything is made.
            _planned(bench, quantity)
        return RatedGateway(
            asked.label,
            cell,
            bench,
            searched={quantity: Searched(asked.label, quantity) for quantity in self._quantities},
        )

    def _start(self, one: RatedGateway, wanted: Sequence[Quantity]) -> None:
        if one.bench.lab.emulated:
            raise UsageError(
                f"{one.label}: runs on an emulated machine; its figures show that it works, not how fast it is, and "
                "are compared with no others: use a host with KVM, or measure the gateway alone"
            )
        planned = {quantity: _planned(one.bench, quantity) for quantity in self._quantities}
        # Fit for all at once: it is not set anew between one search and the next.
        facts = max((each.facts for each in planned.values()), key=lambda facts: facts.after_seconds)
        facts = replace(facts, sharing=self._sharing)
        for quantity in wanted:
            before = one.ready.get(quantity)
            one.ready[quantity] = one.bench.ready(replace(planned[quantity], facts=facts), self._keepers[one.label])
            if before is not None:
                one.ready[quantity].measurer.continue_after(before.measurer)

    @contextmanager
    def _up(self, one: RatedGateway, quantity: Quantity, number: int) -> Iterator[None]:
        """While it stands; where not all can be up at once, it is made for this search of a round and undone."""
        if self._at_once:
            yield
            return
        with ExitStack() as made:
            with making_again(number):
                made.enter_context(one.bench)
                # Nothing else of it is started: two measurers of one wire would not know which four tuples the other
                # used.
                self._start(one, (quantity,))
            yield

    def _search(self, one: RatedGateway, quantity: Quantity) -> str:
        """Search once; why that is void, or nothing."""
        ready, searched = one.ready[quantity], one.searched[quantity]
        # Both metrics search for a rate.
        settings = cast("SearchSettings", ready.planned.settings)
        try:
            if quantity != "new":
                if "new" not in one.known:
                    one.known["new"] = self._establishing(one, quantity)
                settings = replace(settings, connection_rate=one.known["new"] * _SURELY)  # type: ignore[call-arg] # has it
            procedure = ready.planned.procedure
            found = procedure.once(ready.measurer, settings, one.known.get(quantity), self._watch.event)
        except TimeUpError as error:
            searched.add_void()
            return str(error)
        if found.value and quantity not in one.receivers:
            one.receivers[quantity] = receiver_seconds(ready.measurer)
        return searched.add(procedure, settings, self._parameters(one, quantity), found)

    def _parameters(self, one: RatedGateway, quantity: Quantity) -> Parameters:
        """All that was set for a search, as a result of `measure` has it."""
        found = parameters_of(one.bench, one.ready[quantity], self._machine)
        return with_receiver(found, one.receivers.get(quantity))

    def _establishing(self, one: RatedGateway, quantity: Quantity) -> float:
        """How fast connections are established where no quantity asks for it: phase 1 must be no faster.

        Raises:
            BrokenError: none are.
            TimeUpError: as `Procedure.once`.
        """
        ready = one.ready[quantity]
        planned = _planned(one.bench, "new")
        found = planned.procedure.once(ready.measurer, planned.settings, None, self._watch.event)
        if not found.value:
            raise BrokenError(f'compare: {one.label}: establishes connections at no rate; see "natgauge measure"')
        return found.value

    def _estimate(self, one: RatedGateway, quantity: Quantity, goal: ComparisonGoal, alpha: float) -> RatioEstimate:
        baseline, other, twin = (each.searched[quantity] for each in (self._all[0], one, self._all[-1]))
        found = ratio_of(baseline, other, alpha)
        bias = None if other is twin else ratio_of(baseline, twin, alpha)
        limits = (*baseline.limits, *other.limits)
        subject = Subject(one.label, quantity, other.nanoseconds, None, len(pairs(baseline, other)), limits)
        return estimate_of(subject, found, bias, goal)


def _planned(bench: Bench, quantity: Quantity) -> Planned:
    """The search for the rate of a quantity, on its bench.

    Raises:
        UsageError: it cannot be measured there.
    """
    if quantity != "new":
        return bench.plan("throughput", {**SEARCH, "directions": quantity})
    asked: dict[str, object] = dict(SEARCH)
    if waits(bench.lab.placement, bench.recipe.own_processes):
        # As short as in a trial of the throughput: how long N connections take is not known beforehand.
        asked["frame_timeout_seconds"] = LEAST_WAIT_SECONDS
    return bench.plan("connection-rate", asked)
