# SPDX-License-Identifier: Apache-2.0
"""Comparison by highest rates, for gateways that slices cannot time: those with processes, or behind a wire.

In each round the highest rate of each gateway and of the A/A control is searched, one after another in random order; a
frame costs 1 / rate. Each round has its own labs and its own seed. All gateways are up during the round; in labs other
than network namespaces, and where a setting of the whole machine differs, each is started for its own searches instead.
The ratio of two such costs in one round excludes the state of the host in that minute, but not changes within it.
Intervals are therefore wider than those of slices. A search ends with two bounds, a rate that passed and a rate that
failed, so each ratio lies between two values. `Searched` has the searches of one gateway: bounds, limits and doubts.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, Self, cast

from natgauge.analysis.ratio_verdicts import is_alike, is_open
from natgauge.comparisons.method import (
    Findings,
    NotMadeAgainError,
    Subject,
    estimate_of,
    making_again,
    margin_of,
    named,
    sharing,
)
from natgauge.comparisons.request import (
    MOST_SECONDS,
    ComparedGateway,
    CompareOptions,
    ComparisonGoal,
    differing_knob,
    goal_of,
)
from natgauge.doubts import doubts, find
from natgauge.errors import BrokenError, UsageError
from natgauge.figure_text import in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.host import machine
from natgauge.inputs.question import Cell
from natgauge.measurements.measure import parameters_of
from natgauge.measurements.record import with_receiver, without_search
from natgauge.metrics.metric import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.paired.ratios import RateBounds, RateRounds, Void, VoidRounds, pairs, ratio_of
from natgauge.procedures.kit import queues, rate_search
from natgauge.procedures.kit.frame_counts import losses
from natgauge.procedures.kit.losses import WORDS as LOSS_WORDS
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.queues import LEAST_WAIT_SECONDS, queues_before
from natgauge.procedures.kit.rate_search import SearchSettings, rounded_up
from natgauge.procedures.kit.results import Measurement, make_result, tolerance_note
from natgauge.procedures.kit.runner import TIME, TimeBudget, TimeUpError
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.comparison import BaselineCost, RatioEstimate, SearchLimit
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.statistics.summary import MedianEstimate, finite, rank_of_end, relative_half_width
from natgauge.trial.bench import Bench, FreshLabs, Ready, in_repetition
from natgauge.trial.controls import Observer, Unread
from natgauge.trial.planned import Planned
from natgauge.trial.rounds import receiver_seconds
from natgauge.words import QUANTITIES, Quantity, SearchLimitedBy, sending


@dataclass(slots=True)
class Searched(RateRounds):
    """The searches for one rate of one gateway, with what they measured; `parameters` is None before the first."""

    measurements: list[Measurement] = field(default_factory=list)
    procedure: Procedure[SearchSettings] | None = None
    parameters: Parameters | None = None

    def add(
        self,
        procedure: Procedure[SearchSettings],
        settings: SearchSettings,
        parameters: Parameters,
        search: Measurement,
    ) -> str:
        """Add a search; return the reason why it is void, or an empty text."""
        self.procedure, self.parameters = procedure, parameters
        words = {doubt.word: doubt.text for doubt in _doubts(procedure, parameters, [search])}
        ended: SearchLimitedBy | Literal[""] = "the time" if search.upper is None else ""
        limit = next((by for word in words if (by := doubts()[word].ended_by)), ended)
        upper = math.inf if limit or search.upper is None else search.upper
        if not search.value:
            self.add_void(upper)
            return next((words[word] for word in LOSS_WORDS if word in words), "no rate passed")
        lower = search.value / (1 + most_too_high(search, settings))
        self.rounds.append(RateBounds(lower, search.value, upper, limit))
        self.measurements.append(search)
        return ""

    def add_void(self, failed: float = math.inf) -> None:
        """Record a void search; `failed` is the lowest rate that the gateway failed, frames/s, infinite = none.

        A gateway that failed costs more in this round than in any other. Without such rounds a ratio would be too low.
        """
        self.rounds.append(None if math.isinf(failed) else RateBounds(0.0, 0.0, failed))

    def cut_back(self, rounds: int) -> None:
        """Forget the searches after this number of rounds."""
        del self.rounds[rounds:]
        # A void search left no measurement.
        del self.measurements[len(self.bounds) :]

    @property
    def failures(self) -> str:
        """The searches in which the gateway passed no rate, as a sentence without its full stop; empty = none."""
        known = [bounds for bounds in self.rounds if bounds is not None]
        failed = len(known) - len(self.bounds)
        return f"{self.label} passed no rate in {failed} of {with_noun(len(known), 'searches')}" if failed else ""

    @property
    def limits(self) -> tuple[SearchLimit, ...]:
        """Limits other than the device that ended searches."""
        of: dict[SearchLimitedBy, list[float]] = {}
        for bounds in self.bounds:
            if bounds.limit:
                of.setdefault(bounds.limit, []).append(bounds.lower)
        return tuple(
            SearchLimit(
                gateway=self.label,
                quantity=self.quantity,
                limited_by=by,
                searches=len(rates),
                of=len(self.bounds),
                at_least=statistics.median(rates),
            )
            for by, rates in of.items()
        )

    @property
    def doubts(self) -> tuple[Note, ...]:
        """Doubts about the searches, by the rules of `measure`; each word once."""
        if not self.measurements or self.procedure is None or self.parameters is None:
            return ()
        notes = _doubts(self.procedure, self.parameters, self.measurements)
        number = len(self.measurements)
        return tuple(_once_each([note for note in notes if not doubts()[note.word].of_single or number == 1], number))


def _doubts(
    procedure: Procedure[SearchSettings], parameters: Parameters, measurements: Sequence[Measurement]
) -> tuple[Note, ...]:
    measured = make_result(procedure.metric, procedure.unit, {}, measurements)
    # A comparison takes ratios within rounds, where a drift cancels out.
    return tuple(doubt for doubt in find(measured, parameters) if not doubts()[doubt.word].of_median)


def _once_each(notes: Sequence[Note], searches: int) -> Iterator[Note]:
    """Yield the first doubt of each word, with the number of searches that have such a doubt."""
    for word in dict.fromkeys(note.word for note in notes):
        alike = [note for note in notes if note.word == word]
        first, number = alike[0], len(alike)
        yield first if number == 1 else replace(first, text=f"{first.text} (so in {number} of {searches} searches)")


def refuse_too_few(baseline: Searched, other: Searched, connections: Mapping[str, int], goal: ComparisonGoal) -> None:
    """Refuse too few connections, with which no number of rounds could decide the comparison.

    Queues and tolerated lag raise a measured rate, and more so in shorter trials. If that effect alone makes half the
    ratio's interval wider than the goal, the connections are refused. Only the first pair of rates is examined. With
    `fail_above` a wide interval may suffice. If the error of the searches alone exceeds the goal, more connections do
    not help.
    """
    both = [pair for pair in pairs(baseline, other) if all(bounds.passed for bounds in pair)]
    if goal.fail_above is not None or len(both) != 1:
        return
    first, second = both[0]
    queued = _half_width(*(replace(each, upper=each.passed) for each in (first, second)))
    searched = _half_width(*(replace(each, lower=each.passed) for each in (first, second)))
    if not queued > goal.resolve > searched:
        return
    side, bounds = max(((baseline, first), (other, second)), key=lambda pair: pair[1].passed / pair[1].lower)
    number = connections[side.label]
    # Half of what the searches leave; the other half is for differences between rounds.
    enough = number * queued / ((goal.resolve - searched) / 2)
    raise UsageError(
        f"connections: {number} of {side.label} are established within {written(number / bounds.passed * 1000)} ms, so "
        f"queues and tolerated lag may have raised its rate by up to {in_percent(bounds.passed / bounds.lower - 1)}, "
        f"and no ratio can be known to {in_percent(goal.resolve)} (--resolve); choose at least {rounded_up(enough):,} "
        "connections",
        at="connections",
    )


def _half_width(first: RateBounds, second: RateBounds) -> float:
    ratio, low, high = first.middle / second.middle, first.lower / second.upper, first.upper / second.lower
    return relative_half_width(ratio, low, high)


def most_too_high(repetition: Measurement, settings: SearchSettings) -> float:
    """The largest share by which the rate may be too high: the device surely does value / (1 + share).

    Frames that wait in queues before the device raise it (`queues`), and so does the lag that is tolerated in `shared`
    placement (`most_late_share`). Where both can happen, both count. Without the figure `TRIAL_SECONDS` nothing passed,
    and the share is 0.
    """
    seconds = repetition.figures.get(TRIAL_SECONDS)
    if seconds is None:
        return 0.0
    settings = settings.as_run()
    share = 0.0
    if queues.queues_before(settings.placement, settings.own_processes) and settings.frame_timeout_seconds is not None:
        share += queues.most_queued_share(settings.frame_timeout_seconds, seconds)
    if settings.placement == "shared":
        share += rate_search.most_late_share(seconds, settings.error)
    return share


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
        searched = {quantity: Searched(gateway.label, quantity) for quantity in self._quantities}
        rated = RatedGateway(gateway.label, bench, searched=searched)
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
            of_all = replace(planned[quantity], demand=demand)
            with named(rated.label, bench.recipe.name):
                rated.ready[quantity] = bench.ready(of_all, self._keepers[rated.label])
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
            search = self._once(procedure, ready, settings, None if before is None else before.value)
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
        parameters = parameters_of(rated.bench, ready, self._machine)
        return searched.add(procedure, settings, with_receiver(parameters, rated.receivers.get(quantity)), search)

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
        if queues_before(bench.lab.placement, bench.own_processes):
            # As short as in a trial of the throughput, because the time for N connections is not known beforehand.
            settings["frame_timeout_seconds"] = LEAST_WAIT_SECONDS
        return bench.plan("connection-rate", settings)


def _searched(label: str, quantity: Quantity) -> str:
    """What messages call the searches for a rate of a gateway."""
    return f"{label} ({quantity})"
