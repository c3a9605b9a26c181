# SPDX-License-Identifier: Apache-2.0
"""A comparison from its question to its answer: rounds until all is decided or the time is over."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Unpack

from natgauge.bench.bench import check_host
from natgauge.bench.watch import Silent, Watch
from natgauge.comparisons import asked
from natgauge.comparisons.asked import CompareOptions
from natgauge.comparisons.by_rates import ByRates
from natgauge.comparisons.by_slices import BySlices
from natgauge.comparisons.figures import is_decided
from natgauge.comparisons.lengths import length_notes
from natgauge.comparisons.way import Findings, NotMadeAgainError, Way
from natgauge.errors import UsageError
from natgauge.host import machine
from natgauge.host.settings import reliance_kept
from natgauge.inputs.input import inputs_of
from natgauge.inputs.keywords import CompareKeywords
from natgauge.notes import Note
from natgauge.paired.slices import read_quantities
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate, Role
from natgauge.records.parameters import Parameters
from natgauge.records.store import RESULTS, Store
from natgauge.statistics.interim import alpha_spent, rounds_before

#: Exit statuses of the command line beside 0.
ABOVE: Final = 10
UNDECIDED: Final = 11

Look = Callable[[float, int, Sequence[RatioEstimate]], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison's answer.

    Attributes:
        result: its record, which `--json` prints.
        folder: the results folder.
    """

    result: ComparisonRecord
    folder: Path

    @property
    def exit_status(self) -> int:
        """0 = decided, and nothing above --fail-above; 10 = something is above; 11 = undecided."""
        if self.result.above:
            return ABOVE
        return 0 if self.result.decided else UNDECIDED


def compare(
    *duts: str | Path,
    results: str | Path = RESULTS,
    observe: Watch | None = None,
    look: Look | None = None,
    **choices: Unpack[CompareKeywords],
) -> Compared:
    """Compare gateways that are up at once, by slices or by rates; everything made on the way is undone.

    Args:
        duts: names of gateways or paths of recipes, the first one is the baseline; settings of its own may follow a
            name: "nftables-nat44:connections=1000000".
        results: folder in which the results folder is made.
        observe: is told which part of the work begins.
        look: is told seconds, rounds and figures whenever these are looked at.
        choices: the options of `natgauge compare`, with "_" for "-": resolve="1%", fail_above="3%",
            connections=10_000 ... What is left out, or None, is chosen by natgauge.

    Raises:
        UsageError: the question is wrong; by rates also, the connections are too few for an answer, or a gateway runs
            on an emulated machine.
        HostError: this host cannot do it.
        BrokenError: something broke on the way, or a gateway does not forward all frames.
        FaultError: a fault of natgauge; its traceback lies in the results folder.
    """
    given: dict[str, object] = {name: value for name, value in choices.items() if value is not None}
    own = {one.name: one.take(given.pop(one.name)) for one in inputs_of(CompareOptions) if one.name in given}
    known = asked.settings()
    if unknown := next((name for name in given if name not in known), None):
        raise UsageError(f"compare: option {unknown!r} is unknown; see natgauge compare --help")
    shared = {name: known[name].take(value) for name, value in given.items()}
    comparison = ComparisonRun([str(dut) for dut in duts], CompareOptions(**own), shared, observe or Silent(), look)
    return comparison.run(Path(results))


class ComparisonRun:
    """One comparison; `run` once."""

    def __init__(
        self,
        names: Sequence[str],
        options: CompareOptions,
        shared: Mapping[str, object],
        watch: Watch,
        look: Look | None,
    ) -> None:
        """Plan all; nothing is made.

        Raises:
            UsageError: the first thing that is wrong.
        """
        seed = secrets.randbits(63) if options.seed is None else options.seed
        gateways = asked.read(names, shared, unlike=options.unlike)
        options = asked.filled(options, gateways)
        self.goal = asked.goal_of(options)
        self.options = replace(options, seed=seed)
        self.quantities = read_quantities(str(options.quantities))
        self._recipe = gateways[0].recipe.name
        self._devices = {one.label: one.recipe.length for one in gateways}
        self._watch, self._look = watch, look
        self._ended_by: NotMadeAgainError | None = None
        kind = BySlices if options.by == "slices" else ByRates
        self.way: Way = kind(gateways, self.quantities, self.options, watch)

    def run(self, results: Path) -> Compared:
        """Make all, measure, undo all.

        Raises:
            NatgaugeError: as `compare`.
        """
        check_host()
        store = Store.create(results, "compare", self._recipe)
        with store.evidence():
            with reliance_kept(), self.way:
                store.write_plan({**asdict(self.options), **self.way.conditions()})
                store.write_environment({"machine": machine.facts(), "devices": self.way.devices()})
                seconds, rounds, figures = self._rounds(store)
                parameters = self.way.parameters()
            return self._answer(store, seconds, rounds, figures, parameters)

    def _rounds(self, store: Store) -> tuple[float, int, list[RatioEstimate]]:
        """Rounds until all is decided, the time is over, or labs cannot be made again, which `_ended_by` keeps."""
        self._watch.stage(self.way.stage)
        began, rounds, look, longest = time.monotonic(), 0, 1, 0.0
        while True:
            before = time.monotonic()
            try:
                self.way.round(store, rounds)
                rounds += 1
            except NotMadeAgainError as error:
                # What the rounds so far tell is worth more than the error.
                self._ended_by = error
            now = time.monotonic()
            longest = max(longest, now - before)
            last = self._ended_by is not None or now - began + longest > self.goal.most_seconds
            if rounds < rounds_before(look, self.way.first_look) and not last:
                continue
            figures = self.way.estimates(self.goal, alpha_spent(look, self.goal.alpha, last=last))
            look += 1
            if self._look is not None:
                self._look(now - began, rounds, figures)
            if last or all(is_decided(figure, self.goal) for figure in figures[: -len(self.quantities)]):
                return now - began, rounds, figures

    def _answer(
        self,
        store: Store,
        seconds: float,
        rounds: int,
        estimates: Sequence[RatioEstimate],
        parameters: Mapping[str, Parameters],
    ) -> Compared:
        ours, control = estimates[: -len(self.quantities)], estimates[-len(self.quantities) :]
        found = self.way.findings()
        result = ComparisonRecord(
            by=found.by,
            gateways=tuple(self._gateways(parameters, found)),
            estimates=tuple(ours),
            control=tuple(control),
            baseline_costs=found.baseline_costs,
            forwarding_nanoseconds=found.forwarding_nanoseconds,
            decided=all(is_decided(one, self.goal) for one in ours),
            above=None if self.goal.fail_above is None else any(one.above for one in ours),
            resolve=self.goal.resolve,
            fail_above=self.goal.fail_above,
            seconds=round(seconds, 1),
            rounds=rounds,
            seed=self.options.seed or 0,
            slices=found.slices,
            notes=(
                *self.way.notes,
                *length_notes(self._devices, found.forwarding_nanoseconds),
                *self._end_notes(seconds, rounds, ours),
            ),
            results=str(store.folder),
        )
        store.write_comparison(result.document())
        return Compared(result, store.folder)

    def _gateways(self, parameters: Mapping[str, Parameters], found: Findings) -> Iterator[GatewayRecord]:
        """The baseline, the others in their order, and the A/A control, which is a second copy of the baseline."""
        roles: list[Role] = ["baseline", *(["compared"] * (len(parameters) - 2)), "control"]  # type: ignore[list-item]
        baseline = next(iter(parameters))
        for role, (label, known) in zip(roles, parameters.items(), strict=True):
            yield GatewayRecord(
                label=label,
                role=role,
                devices=self._devices[baseline if role == "control" else label],
                parameters=known,
                rates=found.rates.get(label, {}),
                doubts=found.doubts.get(label, {}),
            )

    def _end_notes(self, seconds: float, rounds: int, figures: Sequence[RatioEstimate]) -> Sequence[Note]:
        """Say which error ended the rounds, or how much time an interval takes, where there was too little."""
        if self._ended_by is not None:
            text = f"{rounds} {'round' if rounds == 1 else 'rounds'} were measured, then an error: {self._ended_by}"
            return [Note("ended early", text)]
        least = self.way.least_rounds(self.goal.alpha)
        if rounds >= least or all(figure.low is not None for figure in figures):
            return []
        enough = math.ceil(least * seconds / rounds)
        text = f"{rounds} rounds; a confidence interval takes {least}, so use --most-seconds {enough} or more"
        return [Note("time used up", text)]
