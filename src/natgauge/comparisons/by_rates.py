# SPDX-License-Identifier: Apache-2.0
"""Comparison by highest rates, for gateways that slices cannot time: those with processes, or behind a wire.

In each round the highest rate of each gateway and of the A/A control is searched, one after another in random order; a
frame costs 1 / rate. Each round has its own labs and its own seed. All gateways are up during the round; in labs other
than network namespaces, and where a setting of the whole machine differs, each is started for its own searches instead.
The ratio of two such costs in one round excludes the state of the host in that minute, but not changes within it.
Intervals are therefore wider than those of slices. A search ends with two bounds, a rate that passed and a rate that
failed, so each ratio lies between two values (`searched`).
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Self, cast

from natgauge.analysis.ratio_verdicts import is_alike, is_open
from natgauge.comparisons.estimates import Subject, estimate_of, margin_of
from natgauge.comparisons.method import Findings, NotMadeAgainError, making_again, named, sharing
from natgauge.comparisons.request import (
    MOST_SECONDS,
    ComparedGateway,
    CompareOptions,
    ComparisonGoal,
    differing_knob,
    goal_of,
)
from natgauge.comparisons.searched import Searched, refuse_too_few
from natgauge.errors import BrokenError, UsageError
from natgauge.figure_text import with_noun
from natgauge.host import machine
from natgauge.inputs.question import Cell
from natgauge.measurements.conditions import with_receiver, without_search
from natgauge.measurements.prepared import parameters_of
from natgauge.paired.rates import pairs, ratio_of
from natgauge.paired.rounds import Void, VoidRounds
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.result.frame_counts import losses
from natgauge.procedures.kit.result.notes import tolerance_note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search.queues import LEAST_WAIT_SECONDS, waits
from natgauge.procedures.kit.search.rate_search import SearchSettings
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.procedures.kit.time_budget import TIME, TimeBudget, TimeUpError
from natgauge.records.comparison import BaselineCost, RatioEstimate
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.statistics.interval import MedianEstimate, finite
from natgauge.statistics.order_statistics import rank_of_end
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.planned import Planned
from natgauge.trial.protocols import Observer, Unread
from natgauge.trial.receiver_time import receiver_seconds
from natgauge.trial.renewal import FreshLabs, in_repetition
from natgauge.words import QUANTITIES, Quantity, sending

#: Settings of each search. A failed trial is repeated once, so that one stall of the host decides no rate.
SEARCH: Final[Mapping[str, object]] = {"profile": "quick", "error": "2%", "loss_verifications": 1}
#: Rate of phase 1 of a throughput trial, as a share of the connection rate; it must not exceed what the device can do.
_SURELY: Final = 0.5
#: Two gateways and the A/A control.
_FEWEST: Final = 3


@dataclass(slots=True)
class RatedGateway:
    """A gateway on benches of its own.

    Attributes:
        bench: of the present round, `round_number`, counted from 1.
        labs: labs of the rounds, by quantity; all quantities share them where all gateways run at once.
        ready: the started device for each quantity; empty before the `with` block.
        found: the last search with a rate, by quantity; in frames/s or connections/s.
        receivers: time of the tester's receivers on the device's cores, by quantity, s per frame; None = unknown.
    """

    label: str
    bench: Bench
    round_number: int = 1
    labs: dict[Quantity, FreshLabs[Bench]] = field(default_factory=dict)
    ready: dict[Quantity, Ready] = field(default_factory=dict)
    found: dict[Quantity, Measurement] = field(default_factory=dict)
    searched: dict[Quantity, Searched] = field(default_factory=dict)
    receivers: dict[Quantity, float | None] = field(default_factory=dict)


class _Labelled(Unread):
    """A recorder that stores trials with the gateway's label; by rates there are no rounds of slices."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.store: Store | None = None

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Write a trial to the results folder, if there is one."""
        if self.store is not None:
            self.store.add_trial({"gateway": self.label, **trial})


class ByRates:
    """Compares highest rates; see `natgauge.comparisons.method`."""

    # At 95 %, a median's interval needs seven rounds at the first interim analysis.
    first_analysis = 8

    def __init__(
        self,
        gateways: Sequence[ComparedGateway],
        quantities: Sequence[Quantity],
        options: CompareOptions,
        observer: Observer,
    ) -> None:
        """Plan every gateway; no lab is made."""
        self._observer, self._quantities, self._seed = observer, quantities, options.seed or 0
        self._goal = goal_of(options)
        self._search_settings = {**SEARCH, "loss_tolerance": options.loss_tolerance}
        self._placement = options.placement or "isolated"
        every = [*gateways, gateways[0].control()]
        # With given ports, or different settings of the whole machine, only one gateway can run at a time.
        own_labs = all(gateway.lab_kind.shares_core for gateway in gateways)
        self._at_once = own_labs and differing_knob(gateways) is None
        self._all = [self._rated(gateway, number) for number, gateway in enumerate(every)]
        names = ", ".join(rated.label for rated in self._all[:-1])
        self.stage = f"comparing {names} by their highest rates, in turn"
        self._alone = {
            _searched(gateway.label, quantity): f'see what it does with "{gateway.alone(quantity, self._placement)}"'
            for gateway in every
            for quantity in QUANTITIES
        }
        self._voids = VoidRounds("compare", "search", self._alone.__getitem__)
        self.notes = self._voids.notes
        self.notes.extend(tolerance_note(options.loss_tolerance))
        self._made = ExitStack()
        self._sharing = sharing(rated.bench.recipe for rated in self._all) if self._at_once else 1
        self._keepers = {rated.label: _Labelled(rated.label) for rated in self._all}
        self._machine: Mapping[str, object] = {}
        self._budget = TimeBudget()
        self._is_cut = False

    def __enter__(self) -> Self:
        """Make all labs and start all gateways for the first round, each with limits for all of its searches."""
        self._machine = machine.facts()
        with ExitStack() as made:
            for rated in self._all if self._at_once else ():
                made.enter_context(rated.labs[self._quantities[0]])
            self._made = made.pop_all()
        return self

    def _renew(self, number: int) -> None:
        """Give each gateway a new lab and a new seed, so that the interval covers their effects."""
        labs = [rated.labs[self._quantities[0]] for rated in self._all]
        # The labs of two rounds would share the machine's memory and tables.
        for each in reversed(labs):
            each.leave()
        for each in labs:
            each.begin(number + 1)

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # the same arguments

    def conditions(self) -> Mapping[str, object]:
        """Return all choices, for the results folder."""
        return {
            "gateways": {rated.label: {"recipe": rated.bench.recipe.origin} for rated in self._all},
            "control": self._all[-1].label,
            "search": self._search_settings,
        }

    def devices(self) -> Mapping[str, object]:
        """Return the configuration of each gateway, by its label."""
        return {rated.label: next(iter(rated.ready.values())).device for rated in self._all if rated.ready}

    def round(self, store: Store, number: int, budget: TimeBudget) -> None:
        """Search every rate of every gateway once, as far as the time suffices."""
        self._budget = budget
        for keeper in self._keepers.values():
            keeper.store = store
        if number and self._at_once:
            with making_again(number):
                self._renew(number)
        # A random order balances the effect of a gateway's position in a round.
        order = random.Random(self._seed + number)  # noqa: S311 - no secret
        bounds_of: dict[str, dict[str, object]] = {rated.label: {} for rated in self._all}
        passed: dict[str, dict[str, float]] = {rated.label: {} for rated in self._all}
        failed: dict[str, dict[str, float]] = {rated.label: {} for rated in self._all}
        for quantity in self._quantities:
            void: dict[str, Void] = {}
            for rated in order.sample(self._all, len(self._all)):
                why = self._searched_in_time(rated, quantity, number)
                self._voids.judge(_searched(rated.label, quantity), why)
                if why:
                    void[rated.label] = Void("gateway", why)
                bounds = rated.searched[quantity].rounds[-1]
                if bounds is not None and not bounds.passed:
                    failed[rated.label][quantity] = bounds.upper
                elif bounds is not None:
                    bounds_of[rated.label][quantity] = [bounds.lower, finite(bounds.upper)]
                    passed[rated.label][quantity] = bounds.passed
            self._judge_ratios(quantity, void)
            if quantity == "new":
                self._refuse_too_few()
        store.add_round({"rates": bounds_of, "passed": passed, "failed": failed})

    def _judge_ratios(self, quantity: Quantity, void: Mapping[str, Void]) -> None:
        baseline, *others = (rated.label for rated in self._all)
        for label in others:
            lacked = {_searched(one, quantity): void[one] for one in (baseline, label) if one in void}
            self._voids.judge_ratio(_searched(label, quantity), lacked)

    def _refuse_too_few(self) -> None:
        baseline, *others = (rated.searched["new"] for rated in self._all)
        connections = {rated.label: rated.bench.traffic.connections for rated in self._all}
        for other in others:
            refuse_too_few(baseline, other, connections, self._goal)

    def least_rounds(self, alpha: float) -> int:
        """Return the rounds that the confidence interval of a median needs."""
        return next(number for number in itertools.count(1) if rank_of_end(number, alpha))

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline."""
        return [
            self._estimate(rated, quantity, goal, alpha) for rated in self._all[1:] for quantity in self._quantities
        ]

    def findings(self) -> Findings:
        """Return the baseline's time for a frame at its highest rate, and every gateway's rates with their doubts."""
        baseline = self._all[0].searched
        return Findings(
            by="rates",
            parameters={rated.label: self._set_for(rated) for rated in self._all},
            baseline_costs=tuple(
                BaselineCost(
                    quantity=quantity,
                    nanoseconds=baseline[quantity].nanoseconds,
                    ratio_to_forwarding=None,
                    tester_nanoseconds=None,
                )
                for quantity in self._quantities
            ),
            rates={rated.label: {each.quantity: each.rate for each in rated.searched.values()} for rated in self._all},
            doubts={
                rated.label: {each.quantity: each.doubts for each in rated.searched.values()} for rated in self._all
            },
        )

    @staticmethod
    def _set_for(rated: RatedGateway) -> Parameters:
        """Return the parameters of a gateway's first search; only its name if no search has a result."""
        known = next((each.parameters for each in rated.searched.values() if each.parameters is not None), None)
        return Parameters(device={"gateway": rated.bench.recipe.name}) if known is None else without_search(known)

    def _rated(self, gateway: ComparedGateway, number: int) -> RatedGateway:
        place: dict[str, object] = {"lab_name": f"compare-{os.getpid()}-{number}", "seed": self._seed}
        if gateway.lab_kind.shares_core and gateway.placement is None:
            place["placement"] = self._placement
        cell = gateway.cell(place)
        bench = Bench(cell, self._observer)
        for quantity in self._quantities:
            # Refuse an impossible search before any lab is made.
            self._planned(bench, quantity)
        rated = RatedGateway(
            gateway.label,
            bench,
            searched={quantity: Searched(gateway.label, quantity) for quantity in self._quantities},
        )
        # Only one measurer per wire: two would not know which four tuples the other has used.
        for wanted in [self._quantities] if self._at_once else [(quantity,) for quantity in self._quantities]:
            labs = FreshLabs(partial(self._bench_of, rated, cell), partial(self._start, rated, wanted))
            rated.labs |= dict.fromkeys(wanted, labs)
        return rated

    def _bench_of(self, rated: RatedGateway, cell: Cell, number: int) -> Bench:
        """Plan the bench of a round, from 1, once for all of its searches."""
        if number > rated.round_number:
            rated.bench = Bench(in_repetition(cell, self._seed, number), self._observer)
            rated.round_number = number
        return rated.bench

    def _start(self, rated: RatedGateway, wanted: Sequence[Quantity], bench: Bench) -> list[Ready]:
        if bench.lab.emulated:
            raise UsageError(
                f"{rated.label}: runs on an emulated machine; its figures show that it works, not how fast it is, and "
                "cannot be compared: use a host with KVM, or measure the gateway alone"
            )
        planned = {quantity: self._planned(bench, quantity) for quantity in self._quantities}
        # One configuration for all searches, because it does not change between them.
        demand = max((each.demand for each in planned.values()), key=lambda demand: demand.after_seconds)
        demand = replace(demand, sharing=self._sharing)
        for quantity in wanted:
            with named(rated.label, bench.recipe.name):
                rated.ready[quantity] = bench.ready(
                    replace(planned[quantity], demand=demand), self._keepers[rated.label]
                )
        return [rated.ready[quantity] for quantity in wanted]

    @contextmanager
    def _up(self, rated: RatedGateway, quantity: Quantity, number: int) -> Iterator[None]:
        """Keep the gateway running within the block; if only one can run at a time, start it for this search alone."""
        if self._at_once:
            yield
            return
        labs = rated.labs[quantity]
        try:
            with making_again(number):
                labs.begin(number + 1)
            yield
        except NotMadeAgainError:
            # The rounds before it count, and some gateways have a search of this one already.
            for each in self._all:
                for searched in each.searched.values():
                    searched.cut_back(number)
            raise
        finally:
            labs.leave()

    def _searched_in_time(self, rated: RatedGateway, quantity: Quantity, number: int) -> str:
        """Search once, unless the time is over; BrokenError in the first round, without which there is no ratio."""
        self._is_cut = self._budget.left == 0
        if self._is_cut:
            rated.searched[quantity].add_void()
            why = ""
        else:
            with self._up(rated, quantity, number):
                why = self._search(rated, quantity)
        if not self._is_cut:
            return why
        if not number:
            self._refuse_first_round()
        # The comparison ends with this round, and the search is none that the gateway made void.
        return ""

    def _refuse_first_round(self) -> None:
        """Raise the error for a first round that the time ended, with the time that all rounds may need."""
        searches = [each.rounds for rated in self._all for each in rated.searched.values()]
        # The last one was cut short.
        done, least = sum(map(len, searches)) - 1, self.least_rounds(self._goal.alpha)
        given = self._goal.most_seconds
        # Each search that is left may take all of its own time, and one more for the rate of phase 1.
        longest = self._planned(self._all[0].bench, "new").settings.most_seconds or given
        left = (len(searches) - done) * (1 if "new" in self._quantities else 2)
        enough = math.ceil((given + left * longest) * least)
        fewer = ["compare fewer gateways"] if len(self._all) > _FEWEST else []
        fewer += ["choose fewer --quantities"] if len(self._quantities) > 1 else []
        more = [f"use --most-seconds {enough} or more"] if enough <= MOST_SECONDS else []
        advice = ", or ".join(more + fewer) or "no --most-seconds is surely enough: choose fewer connections"
        raise BrokenError(
            f"compare: {given:g} s ended in the first round, after {done} of {with_noun(len(searches), 'searches')}; a "
            f"confidence interval needs {least} rounds: {advice}"
        )

    def _search(self, rated: RatedGateway, quantity: Quantity) -> str:
        """Search once; return the reason why the search is void, or an empty text."""
        ready, searched = rated.ready[quantity], rated.searched[quantity]
        # Both metrics search for a rate.
        settings = cast("SearchSettings", ready.planned.settings)
        try:
            if quantity != "new":
                if "new" not in rated.found:
                    rated.found["new"] = self._establishing(rated, quantity)
                rate = rated.found["new"].value * _SURELY
                settings = replace(settings, connection_rate=rate)  # type: ignore[call-arg] # has it
            procedure = ready.planned.procedure
            before = rated.found.get(quantity)
            known = None if before is None else before.value
            search = self._once(procedure, ready, settings, known)
        except TimeUpError as error:
            # What the search before needed is a rate of another kind.
            own = quantity == "new" or "new" in rated.found
            # Of a search that the comparison's own time cut short nothing is known: lower rates were not tried.
            searched.add_void(error.failed if own and not self._is_cut else math.inf)
            return "; ".join([str(error), *self._earlier_losses(rated, quantity)])
        if search.value:
            rated.found[quantity] = search
            if quantity not in rated.receivers:
                rated.receivers[quantity] = receiver_seconds(ready.measurer)
        return searched.add(procedure, settings, self._parameters(rated, quantity), search)

    def _once(
        self, procedure: Procedure[Any], ready: Ready, settings: TrialSettings, known: float | None
    ) -> Measurement:
        """Search once, for the time of a search, or for that of the comparison where less of it is left."""
        own, left = settings.most_seconds, self._budget.left
        is_last = left is not None and (own is None or left < own)
        budget = TimeBudget(left if is_last else own, self._budget.clock)
        try:
            search = procedure.once(ready.measurer, settings, known, self._observer.event, budget)
        except TimeUpError:
            self._is_cut = is_last
            raise
        # Trials that only confirm what is known may lack the time.
        self._is_cut = is_last and search.limited_by == TIME
        return search

    def _parameters(self, rated: RatedGateway, quantity: Quantity) -> Parameters:
        parameters = parameters_of(rated.bench, rated.ready[quantity], self._machine)
        return with_receiver(parameters, rated.receivers.get(quantity))

    def _establishing(self, rated: RatedGateway, quantity: Quantity) -> Measurement:
        """Return the search for the connection rate, the limit of phase 1, if the comparison does not include it."""
        ready = rated.ready[quantity]
        planned = self._planned(rated.bench, "new")
        search = self._once(planned.procedure, ready, planned.settings, None)
        if not search.value:
            raise BrokenError(
                f"compare: {rated.label}: no connection rate passed; {self._alone[_searched(rated.label, 'new')]}"
            )
        return search

    def _estimate(self, rated: RatedGateway, quantity: Quantity, goal: ComparisonGoal, alpha: float) -> RatioEstimate:
        baseline, other, control = (each.searched[quantity] for each in (self._all[0], rated, self._all[-1]))
        ratio = ratio_of(baseline, other, alpha)
        margin = 1.0
        if other is not control:
            margin = self._margin(ratio, ratio_of(baseline, control, alpha), ratio_of(control, other, alpha), goal)
        limits = (*baseline.limits, *other.limits)
        subject = Subject(rated.label, quantity, other.nanoseconds, None, len(pairs(baseline, other)), limits)
        failures = "; ".join(each.failures for each in (baseline, other) if each.failures)
        return estimate_of(subject, ratio, margin, goal, failures)

    @staticmethod
    def _margin(
        ratio: MedianEstimate | None,
        itself: MedianEstimate | None,
        to_control: MedianEstimate | None,
        goal: ComparisonGoal,
    ) -> float:
        """Return the factor that differences must exceed: as of `margin_of`, of the control's ratio `itself`.

        Where that is open at both ends, nothing is known of the noise, but a gateway that differs alike from either
        copy of the baseline differs.
        """
        if itself is not None and is_open(itself.lower, itself.upper) and ratio is not None and to_control is not None:
            of_baseline, of_control = ((each.lower, each.upper) for each in (ratio, to_control))
            if is_alike(of_baseline, of_control, goal.resolve, goal.fail_above):
                return 1.0
        return margin_of(itself)

    def _earlier_losses(self, rated: RatedGateway, quantity: Quantity) -> Iterator[str]:
        """Yield the losses of the earlier searches whose rates decide how long the first trial takes."""
        for each in dict.fromkeys(("new", quantity)):
            if each in rated.found:
                unit = self._planned(rated.bench, each).procedure.unit
                of_frames = "" if each == "new" else f" {sending(each)}"
                lost = losses(rated.found[each].searched, f"{unit}{of_frames}")
                if lost:
                    yield f"in the search before, {lost}"

    def _planned(self, bench: Bench, quantity: Quantity) -> Planned:
        settings = dict(self._search_settings)
        if quantity != "new":
            return bench.plan("throughput", {**settings, "directions": quantity})
        if waits(bench.lab.placement, bench.own_processes):
            # As short as in a trial of the throughput, because the time for N connections is not known beforehand.
            settings["frame_timeout_seconds"] = LEAST_WAIT_SECONDS
        return bench.plan("connection-rate", settings)


def _searched(label: str, quantity: Quantity) -> str:
    """What messages call the searches for a rate of a gateway."""
    return f"{label} ({quantity})"
