# SPDX-License-Identifier: Apache-2.0
"""A comparison from its question to its answer: rounds until all is decided or the time is over."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from natgauge.bench.bench import check_host
from natgauge.bench.rounds import MOST_VOID, Asked, perform
from natgauge.bench.watch import Silent, Watch
from natgauge.campaigns.store import COMPARISON_SCHEMA, RESULTS, Store
from natgauge.comparisons import asked
from natgauge.comparisons.asked import CompareOptions, Goal
from natgauge.comparisons.contestants import Contestants, Standing
from natgauge.comparisons.figures import Figure, Ledger, Place
from natgauge.comparisons.statistics import rounds_of
from natgauge.errors import BrokenError, UsageError
from natgauge.host import machine
from natgauge.host.cpus import check_cpus, idlest_core, usable_cpus
from natgauge.slices import blocks_of_round, read_quantities
from natgauge.trials import compare as run_round
from natgauge.words import Quantity

#: Exit statuses of the command line beside 0.
ABOVE: Final = 10
UNDECIDED: Final = 11

Look = Callable[[float, int, Sequence[Figure]], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison's answer.

    Attributes:
        figures: of each gateway but the first, each quantity.
        twin: the same of the first gateway against itself.
        decided: whether each question is answered.
        above: whether any gateway costs surely more than --fail-above allows.
        document: what `--json` prints.
        folder: the results folder.
    """

    figures: tuple[Figure, ...]
    twin: tuple[Figure, ...]
    decided: bool
    above: bool
    document: Mapping[str, Any]
    folder: Path

    @property
    def exit_status(self) -> int:
        """0 = decided, and nothing above --fail-above; 10 = something is above; 11 = undecided."""
        if self.above:
            return ABOVE
        return 0 if self.decided else UNDECIDED


def compare(
    *duts: str | Path,
    results: str | Path = RESULTS,
    observe: Watch | None = None,
    look: Look | None = None,
    **choices: object,
) -> Compared:
    """Compare gateways that are up at once, in `shared` placement; everything made on the way is undone.

    Args:
        duts: names of gateways or paths of recipes, the first one is the baseline; settings of its own may follow a
            name: "nftables-nat44:connections=1000000".
        results: folder in which the results folder is made.
        observe: is told which part of the work begins.
        look: is told seconds, rounds and figures whenever these are looked at.
        choices: the options of `natgauge compare`, with "_" for "-": resolve="1%", fail_above="3%",
            connections=10_000 ... What is left out, or None, is chosen by natgauge.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot do it.
        BrokenError: something broke on the way, or a gateway does not forward all frames.
        FaultError: a fault of natgauge; its traceback lies in the results folder.
    """
    given = {name: value for name, value in choices.items() if value is not None}
    names = {field.name for field in fields(CompareOptions)}
    options = CompareOptions(**{name: given.pop(name) for name in names & set(given)})  # type: ignore[arg-type] # read below
    if unknown := next((name for name in given if name not in asked.settings()), None):
        raise UsageError(f"compare: option {unknown!r} is unknown; see natgauge compare --help")
    comparison = Comparison([str(dut) for dut in duts], options, given, observe or Silent(), look)
    return comparison.run(Path(results))


class Comparison:
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
        self.goal: Goal = asked.goal_of(options)
        self.quantities = read_quantities(options.quantities)
        self.options = options
        self._seed = secrets.randbits(63) if options.seed is None else options.seed
        gateways = asked.read(names, shared, unlike=options.unlike)
        cpu = idlest_core(usable_cpus()) if options.core is None else check_cpus((options.core,), "core")[0]
        self._watch, self._look = watch, look
        self.all = Contestants(gateways, cpu, self._seed, watch)
        fewest = min(one.frames.connections for one in self.all.devices)
        self.blocks = blocks_of_round(self.quantities, fewest, options.slice_frames)
        self._ledger = Ledger(self._places(), self.quantities, options.slice_frames)
        self._voids: dict[str, int] = {}
        self._notes: list[str] = []
        self._slices = dict.fromkeys(("slices", "interrupted_slices", "waited_slices"), 0)

    def run(self, results: Path) -> Compared:
        """Make all, measure, undo all.

        Raises:
            NatgaugeError: as `compare`.
        """
        check_host()
        store = Store.create(results, "compare", self.all.gateways[0].bench.recipe.name)
        with store.evidence():
            with self.all:
                store.write_plan({**asdict(self.options), **self._conditions()})
                devices = {one.label: one.started.device for one in self.all.devices}
                store.write_environment({"machine": machine.facts(), "devices": devices})
                seconds, rounds, figures = self._rounds(store)
            return self._answer(store, seconds, rounds, figures)

    def _rounds(self, store: Store) -> tuple[float, int, list[Figure]]:
        self._watch.stage(f"comparing {', '.join(one.label for one in self.all.gateways)} on core {self.all.cpu}")
        began, rounds, look, longest = time.monotonic(), 0, 1, 0.0
        while True:
            before = time.monotonic()
            self._round(store, rounds)
            rounds += 1
            now = time.monotonic()
            longest = max(longest, now - before)
            last = now - began + longest > self.options.most_seconds
            if rounds < rounds_of(look) and not last:
                continue
            figures = self._ledger.figures(self.goal, look)
            look += 1
            if self._look is not None:
                self._look(now - began, rounds, figures)
            if last or all(figure.decided(self.goal) for figure in figures[: -len(self.quantities)]):
                return now - began, rounds, figures

    def _round(self, store: Store, number: int) -> None:
        question = Asked(self.all.cpu, self.options.slice_frames, self.blocks, self._seed + number)
        done = perform(question, self.all.devices, self.all.cable_contestants(), run_round)
        for position, fault in done.faults.items():
            self._note_void(position, fault)
        blocks = done.result.blocks
        store.add_round(done.as_kept())
        self._ledger.add(blocks, frozenset(done.faults))
        self._slices["slices"] += sum(len(block.ns) for block in blocks)
        self._slices["interrupted_slices"] += sum(block.interrupted for block in blocks)
        self._slices["waited_slices"] += sum(block.waited for block in blocks)

    def _note_void(self, position: int, fault: str) -> None:
        """Note that a round says nothing of whoever has this position: each frame must have come, and come right."""
        devices = self.all.devices
        label = devices[position].label if position < len(devices) else "cable"
        self._notes.append(f"a round of {label} is void: {fault}")
        self._voids[label] = self._voids.get(label, 0) + 1
        if self._voids[label] >= MOST_VOID:
            raise BrokenError(
                f"compare: {label}: {fault}, in {MOST_VOID} rounds; only gateways that forward every frame can be "
                'compared: see what it does with "natgauge measure throughput"'
            )

    def _places(self) -> list[Place]:
        at = {id(one): position for position, one in enumerate(self.all.devices)}

        def place(one: Standing) -> Place:
            forwarding = self.all.forwarding[one.frames]
            return Place(one.label, at[id(one)], self.all.cable_of(one), at[id(forwarding)])

        return [place(one) for one in [*self.all.gateways, self.all.twin]]

    def _conditions(self) -> dict[str, object]:
        return {
            "gateways": {
                one.label: {"recipe": one.bench.recipe.origin, **one.frames._asdict()} for one in self.all.gateways
            },
            "core": self.all.cpu,
            "seed": self._seed,
            "blocks_of_a_round": self.blocks,
        }

    def _answer(self, store: Store, seconds: float, rounds: int, figures: Sequence[Figure]) -> Compared:
        ours, twin = figures[: -len(self.quantities)], figures[-len(self.quantities) :]
        above = any(figure.above for figure in ours)
        decided = all(figure.decided(self.goal) for figure in ours)
        document = {
            "schema": COMPARISON_SCHEMA,
            "baseline": self.all.gateways[0].label,
            "quantities": [_told(figure) for figure in ours],
            "twin": [_told(figure) for figure in twin],
            "baseline_costs": [self._baseline(quantity) for quantity in self.quantities],
            "decided": decided,
            "above": None if self.goal.fail_above is None else above,
            "resolve": self.goal.resolve,
            "fail_above": self.goal.fail_above,
            "seconds": round(seconds, 1),
            "rounds": rounds,
            "slice_frames": self.options.slice_frames,
            **self._slices,
            "core": self.all.cpu,
            "seed": self._seed,
            "notes": self._notes,
            "evidence": str(store.folder),
        }
        store.write_comparison(document)
        return Compared(tuple(ours), tuple(twin), decided, above, document, store.folder)

    def _baseline(self, quantity: Quantity) -> dict[str, object]:
        nanoseconds, share = self._ledger.baseline(quantity)
        return {
            "quantity": quantity,
            "nanoseconds": nanoseconds,
            "share_of_forwarding": share,
            "tester_nanoseconds": self._ledger.tester(quantity),
        }


def _told(figure: Figure) -> dict[str, object]:
    return {name: value if value != float("inf") else None for name, value in asdict(figure).items()}
