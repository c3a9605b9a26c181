# SPDX-License-Identifier: Apache-2.0
"""Run a comparison: rounds until every ratio is decided or the time is used up."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from natgauge.analysis.ratio_verdicts import doubts_of_answer, is_decided, is_narrow
from natgauge.analysis.unit_frames import log_work
from natgauge.comparisons.by_rates import ByRates
from natgauge.comparisons.by_slices import BySlices
from natgauge.comparisons.method import Findings, NotMadeAgainError
from natgauge.comparisons.request import (
    CompareOptions,
    gateway_inputs,
    goal_of,
    read_gateways,
    traffic_of_rules,
    with_usual_options,
)
from natgauge.errors import UsageError
from natgauge.figure_text import duration, nanoseconds, with_noun
from natgauge.gateways.rule_sets import unmatched
from natgauge.host import machine
from natgauge.host.settings import reliance_kept
from natgauge.inputs.input import inputs_of
from natgauge.labs.common import locks
from natgauge.notes import Note
from natgauge.paired.slices import read_quantities
from natgauge.procedures.kit.runner import TimeBudget
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate, Role
from natgauge.records.parameters import Parameters
from natgauge.records.store import RESULTS, Store
from natgauge.setup.setup import check_host
from natgauge.statistics.rounds import alpha_spent, rounds_before
from natgauge.trial.controls import Observer, Silent
from natgauge.words import Quantity

if TYPE_CHECKING:
    from natgauge.keywords import CompareKeywords

#: Exit statuses of the command line in addition to 0.
ABOVE: Final = 10
UNDECIDED: Final = 11
#: Names without a match that are recorded: a list of what is blocked may have 10,000.
_MOST_UNMATCHED: Final = 20

#: Receives the seconds and rounds so far, and the estimates.
InterimReport = Callable[[float, int, Sequence[RatioEstimate]], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome of a comparison.

    Attributes:
        result: the record that `--json` prints.
        folder: the results folder.
    """

    result: ComparisonRecord
    folder: Path

    @property
    def exit_status(self) -> int:
        """0 = decided, no gateway above --fail-above; 10 = a gateway is above; 11 = undecided, or in doubt."""
        if doubts_of_answer(self.result):
            return UNDECIDED
        return ABOVE if self.result.above else 0 if self.result.decided else UNDECIDED


def compare(
    *gateways: str | Path,
    results: str | Path = RESULTS,
    observe: Observer | None = None,
    on_interim: InterimReport | None = None,
    **choices: Unpack[CompareKeywords],
) -> Compared:
    """Compare gateways by slices or by rates; labs and settings are undone afterwards.

    By slices all gateways run at the same time. By rates they are measured one after another in each round.

    Args:
        gateways: names of gateways or paths of recipes, the baseline first; settings may follow a name:
            "nftables-nat44:connections=1000000".
        results: folder in which the results folder is made.
        observe: receives the name of each part of the work when it begins.
        on_interim: called after each interim analysis with the seconds and rounds so far and the estimates.
        choices: the options of `natgauge compare`, with "_" for "-": resolve="1%", fail_above="3%",
            connections=10_000 ... natgauge chooses what is omitted or None.

    Raises:
        UsageError: an option is wrong; by rates also: the connections are too few for an answer, or a gateway runs on
            an emulated machine.
        HostError: this host cannot run the comparison.
        BrokenError: engine, lab or gateway failed, or a gateway does not forward all frames.
        FaultError: a bug in natgauge; its traceback is in the results folder.
    """
    given: dict[str, object] = {name: value for name, value in choices.items() if value is not None}
    own = {
        input_.name: input_.take(given.pop(input_.name)) for input_ in inputs_of(CompareOptions) if input_.name in given
    }
    known = gateway_inputs()
    if unknown := next((name for name in given if name not in known), None):
        raise UsageError(f"compare: option {unknown!r} is unknown; see natgauge compare --help")
    shared = {name: known[name].take(value) for name, value in given.items()}
    comparison = ComparisonRun(
        [str(gateway) for gateway in gateways], CompareOptions(**own), shared, observe or Silent(), on_interim
    )
    return comparison.run(Path(results))


class ComparisonRun:
    """One comparison; call `run` only once."""

    def __init__(
        self,
        names: Sequence[str],
        options: CompareOptions,
        shared: Mapping[str, object],
        observer: Observer,
        on_interim: InterimReport | None,
    ) -> None:
        """Plan every gateway; no lab is made."""
        seed = secrets.randbits(63) if options.seed is None else options.seed
        gateways = read_gateways(names, shared, unlike=options.unlike, labels=options.labels)
        options = with_usual_options(options, gateways)
        self.goal = goal_of(options)
        self.options = replace(options, seed=seed)
        self.quantities = read_quantities(str(options.quantities))
        self._recipe = gateways[0].recipe.name
        unlike = traffic_of_rules(gateways)
        self._settings_notes = [] if unlike is None else [Note("settings", unlike)]
        self._devices = {gateway.label: gateway.recipe.length for gateway in gateways}
        self._unmatched = {gateway.label: unmatched(gateway.recipe) for gateway in gateways}
        self._observer, self._on_interim = observer, on_interim
        self._ended_by: NotMadeAgainError | None = None
        #: Seconds of the longest round, where a further one would not have fitted into the time; 0 = it would.
        self._unfit_seconds = 0.0
        self._began = 0.0
        kind: type[BySlices | ByRates] = BySlices if options.by == "slices" else ByRates
        self.method = kind(gateways, self.quantities, self.options, observer)

    def run(self, results: Path) -> Compared:
        """Make the labs, compare, undo everything."""
        check_host()
        store = Store.create(results, "compare", self._recipe)
        with store.evidence():
            with locks.kept(), reliance_kept(), self.method:
                self._began = round(time.time(), 3)
                store.write_plan({**asdict(self.options), **self.method.conditions()})
                store.write_environment({"machine": machine.facts(), "devices": self.method.devices()})
                seconds, rounds, estimates = self._rounds(store)
                findings = self.method.findings()
            return self._answer(store, seconds, rounds, estimates, findings)

    def _rounds(self, store: Store) -> tuple[float, int, list[RatioEstimate]]:
        """Run rounds until all is decided, the time is used up, or labs cannot be made again (see `_ended_by`)."""
        self._observer.stage(f"{self.method.stage}, for {duration(self.goal.most_seconds)} or less")
        budget = TimeBudget(self.goal.most_seconds, time.monotonic)
        began, rounds, analysis, longest = time.monotonic(), 0, 1, 0.0
        while True:
            before = time.monotonic()
            try:
                self.method.round(store, rounds, budget)
                rounds += 1
            except NotMadeAgainError as error:
                # The rounds so far are worth more than the error.
                self._ended_by = error
            now = time.monotonic()
            longest = max(longest, now - before)
            self._unfit_seconds = longest if now - began + longest > self.goal.most_seconds else 0.0
            last = self._ended_by is not None or self._unfit_seconds > 0
            if rounds < rounds_before(analysis, self.method.first_analysis) and not last:
                continue
            estimates = self.method.estimates(self.goal, alpha_spent(analysis, self.goal.alpha, last=last))
            analysis += 1
            if self._on_interim is not None:
                self._on_interim(now - began, rounds, estimates)
            ours, (resolve, fail_above) = estimates[: -len(self.quantities)], (self.goal.resolve, self.goal.fail_above)
            if last or all(is_narrow(estimate, resolve, fail_above) for estimate in ours):
                return now - began, rounds, estimates

    def _answer(
        self, store: Store, seconds: float, rounds: int, estimates: Sequence[RatioEstimate], findings: Findings
    ) -> Compared:
        ours, control = estimates[: -len(self.quantities)], estimates[-len(self.quantities) :]
        result = ComparisonRecord(
            by=findings.by,
            gateways=tuple(self._gateways(findings)),
            estimates=tuple(ours),
            control=tuple(control),
            baseline_costs=findings.baseline_costs,
            forwarding_nanoseconds=findings.forwarding_nanoseconds,
            decided=all(is_decided(estimate, self.goal.fail_above) for estimate in ours),
            above=None if self.goal.fail_above is None else any(estimate.above for estimate in ours),
            resolve=self.goal.resolve,
            fail_above=self.goal.fail_above,
            seconds=round(seconds, 1),
            rounds=rounds,
            seed=self.options.seed or 0,
            slices=findings.slices,
            notes=(
                *self.method.notes,
                *self._settings_notes,
                *length_notes(self._devices, findings.forwarding_nanoseconds),
                *log_notes(findings.parameters),
                *self._end_notes(seconds, rounds, ours),
            ),
            results=str(store.folder),
            began=self._began,
            commit=self.options.commit,
        )
        store.write_comparison(result.document())
        return Compared(result, store.folder)

    def _gateways(self, findings: Findings) -> Iterator[GatewayRecord]:
        """Yield the records of the baseline, the compared gateways in order, and the A/A control."""
        parameters = findings.parameters
        roles: list[Role] = ["baseline", *(["compared"] * (len(parameters) - 2)), "control"]  # type: ignore[list-item]
        baseline = next(iter(parameters))
        for role, (label, known) in zip(roles, parameters.items(), strict=True):
            named = baseline if role == "control" else label
            yield GatewayRecord(
                label=label,
                role=role,
                devices=self._devices[named],
                parameters=known,
                rates=findings.rates.get(label, {}),
                doubts=findings.doubts.get(label, {}),
                unmatched=tuple(self._unmatched[named][:_MOST_UNMATCHED]),
                unmatched_more=max(0, len(self._unmatched[named]) - _MOST_UNMATCHED),
            )

    def _end_notes(self, seconds: float, rounds: int, estimates: Sequence[RatioEstimate]) -> Sequence[Note]:
        """Return a note on the error that ended the rounds, or on the time that intervals or verdicts need."""
        measured = with_noun(rounds, "rounds")
        if self._ended_by is not None:
            text = f"{measured} {'was' if rounds == 1 else 'were'} measured, then an error: {self._ended_by}"
            return [Note("ended early", text)]
        least = self.method.least_rounds(self.goal.alpha)
        if rounds < least and any(estimate.low is None for estimate in estimates):
            enough = math.ceil(least * seconds / rounds)
            text = f"{measured}; a confidence interval needs {least}; use --most-seconds {enough} or more"
            return [Note("time used up", text)]
        is_open = any(not is_decided(one, self.goal.fail_above) and not one.limits for one in estimates)
        if self._unfit_seconds and is_open and not any(one.above for one in estimates):
            text = (
                f"{measured} took {duration(seconds)} and left the answer open; one more, of up to "
                f"{duration(self._unfit_seconds)}, would not have fitted into {duration(self.goal.most_seconds)}; give "
                "more: --most-seconds"
            )
            return [Note("time used up", text)]
        return []


def log_notes(parameters: Mapping[str, Parameters]) -> list[Note]:
    """A note for each gateway whose log is written on cores that its cost leaves out; the last one is the control."""
    texts = ((label, log_work(known)) for label, known in [*parameters.items()][:-1])
    return [Note("device", f"{label}: {text}") for label, text in texts if text is not None]


def length_notes(devices: Mapping[str, int], hop: Mapping[Quantity, float | None]) -> list[Note]:
    """A note where gateways have several devices: what the hops between them cost.

    Args:
        hop: cost of one more device that only forwards, by quantity, ns a frame; empty = not measured.
    """
    lengths = {*devices.values()}
    if lengths == {1}:
        return []
    numbers = ", ".join(f"{label} {number}" for label, number in devices.items())
    known = ", ".join(f"{quantity} {nanoseconds(ns)}" for quantity, ns in hop.items() if ns is not None)
    cost = f"plain forwarding takes {known} a frame here" if known else "its cost was not measured here"
    if len(lengths) == 1:
        (length,) = lengths
        text = f"every figure is of {length} devices in a row: each of them is a hop ({cost}), for all gateways alike"
        return [Note("device", text)]
    what = f"the chains have unequal numbers of devices ({numbers})"
    text = f"{what}: each further device adds a hop ({cost}); a difference of that size says nothing of the gateways"
    return [Note("device", text)]
