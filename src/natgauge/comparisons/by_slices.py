# SPDX-License-Identifier: Apache-2.0
"""Comparison in short slices that alternate on one core, for gateways that run in the sender's context."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from natgauge.comparisons.method import Findings, estimates_of, making_again, named, sharing
from natgauge.comparisons.request import ComparedGateway, CompareOptions, ComparisonGoal
from natgauge.errors import UsageError
from natgauge.host import machine
from natgauge.host.machine import check_cpus, idlest_core, usable_cpus
from natgauge.inputs.question import Cell
from natgauge.measurements.record import gateway_parameters
from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios, RoundSums, Seat, Seating, VoidRounds, disturbance_notes
from natgauge.paired.slices import RoundPlan, blocks_of_round
from natgauge.procedures.kit.runner import TimeBudget
from natgauge.records.comparison import BaselineCost, RatioEstimate, SliceCounts
from natgauge.records.store import Store
from natgauge.statistics.rounds import LEAST_ROUNDS
from natgauge.statistics.summary import finite
from natgauge.tester.cable import CableLab
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.controls import Observer, Unread
from natgauge.trial.rounds import NO_SEARCH, TimedFrames, TimedGateway, forwarding_of, over_cable, perform
from natgauge.words import Quantity

#: Most contestants of one round of the engine.
MOST: Final = 16


@dataclass(slots=True)
class RunningGateway:
    """A gateway of a running comparison; `ready` is its started device, None before the `with` block."""

    label: str
    bench: Bench
    frames: tuple[TimedFrames, ...]
    ready: Ready | None = None

    @property
    def started(self) -> Ready:
        """The gateway, started."""
        if self.ready is None:
            raise RuntimeError(f"{self.label} has not been started")
        return self.ready


def _forwarding(frames: TimedFrames) -> str:
    return f"plain forwarding (linux-{frames.family})"


def _name(what: str) -> str:
    """Return a lab name that no other process uses."""
    return f"compare-{os.getpid()}-{what}"


class BySlices:
    """Compares slices; see `natgauge.comparisons.method`.

    In a round the A/A control follows the gateways, the baseline first.
    """

    first_analysis = LEAST_ROUNDS

    def __init__(
        self,
        gateways: Sequence[ComparedGateway],
        quantities: Sequence[Quantity],
        options: CompareOptions,
        observer: Observer,
    ) -> None:
        """Plan every bench; no lab is made."""
        self._seed, self._slice_frames, self._quantities = options.seed or 0, options.slice_frames, quantities
        self._observer = observer
        self._made = ExitStack()
        core = options.core
        self._cpu = idlest_core(usable_cpus()) if core is None else check_cpus((core,), "core", "core")[0]
        self._gateways = [self._planned(gateway, str(number)) for number, gateway in enumerate(gateways)]
        self._control = self._planned(gateways[0].control(), "control")
        seats = [
            Seat(gateway.label, gateway.frames, choice.recipe.kind == "routing")
            for choice, gateway in zip(gateways, self._gateways, strict=True)
        ]
        self._seating = Seating([*seats, Seat(self._control.label, self._control.frames)], _forwarding)
        self._devices = [*self._gateways, self._control]
        self._cables: dict[TimedFrames, CableLab] = {}
        for number, (frames, position) in enumerate(self._seating.forwarding.items()):
            if position == len(self._devices):
                cell = forwarding_of(frames, self._place(f"plain{number}"))
                self._devices.append(self._on(_forwarding(frames), cell))
            self._cables[frames] = CableLab(_name(f"cable{number}"))
        if (number := len(self._devices) + len(self._cables)) > MOST:
            raise UsageError(
                f"compare: {len(self._gateways)} gateways, with the A/A control, plain forwarding and cables {number} "
                f"in all; one round has at most {MOST}; compare fewer gateways"
            )
        self.stage = f"comparing {', '.join(gateway.label for gateway in self._gateways)} on core {self._cpu}"
        self._fewest = min(device.bench.traffic.connections for device in self._devices)
        self._blocks = blocks_of_round(quantities, self._fewest, options.slice_frames)
        alone = {gateway.label: gateway.alone("both", "shared") for gateway in (*gateways, gateways[0].control())}
        advice = "only gateways that forward every frame can be compared: see what it does with"
        voids = VoidRounds("compare", "round", lambda place: f'{advice} "{alone[place]}"')
        self._ratios = PairedRatios(self._seating.places, quantities)
        self._sums = RoundSums(voids, self._seating, self._ratios)

    def __enter__(self) -> Self:
        """Make all labs and start all gateways, for the first round."""
        shared_by = sharing(gateway.bench.recipe for gateway in self._devices)
        with ExitStack() as made:
            for cable in self._cables.values():
                made.enter_context(cable)
            for gateway in self._devices:
                made.enter_context(gateway.bench)
                planned = gateway.bench.plan("throughput", {})
                demand = replace(planned.demand, sharing=shared_by)
                # The links within a chain learn their neighbours with its first frames, some of which are lost.
                chained = bool(gateway.bench.recipe.chain)
                # In its first lab each gateway is proved to forward: what does not is named with its hop, at once.
                proved = chained or (gateway.ready is None and gateway in self._gateways)
                with named(gateway.label, gateway.bench.recipe.name):
                    gateway.ready = gateway.bench.ready(replace(planned, demand=demand), Unread(), prove=proved)
                if gateway.bench.processes:
                    raise UsageError(f"{gateway.bench.reasons_not_timed()[0]}; add --by rates")
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # the same arguments

    def _planned(self, gateway: ComparedGateway, lab: str) -> RunningGateway:
        return self._on(gateway.label, gateway.cell(self._place(lab)))

    def _place(self, lab: str) -> dict[str, object]:
        return {"lab_name": _name(lab), "placement": "shared", "cores": (self._cpu,), "seed": self._seed}

    def _on(self, label: str, cell: Cell) -> RunningGateway:
        bench = Bench(cell, self._observer, rates=NO_SEARCH)
        # Refuse an impossible gateway before any lab is made.
        bench.plan("throughput", {})
        return RunningGateway(label, bench, bench.timed_frames)

    @property
    def notes(self) -> Sequence[Note]:
        """Notes on other traffic, on void rounds, and on slices that something interrupted."""
        others, interruptions = disturbance_notes([self._sums])
        return [*others, *self._sums.voids.notes, *interruptions]

    def conditions(self) -> Mapping[str, object]:
        """Return all choices, for the results folder."""
        return {
            "gateways": {
                gateway.label: {
                    "recipe": gateway.bench.recipe.origin,
                    "frames": [frames._asdict() for frames in gateway.frames],
                }
                for gateway in self._gateways
            },
            "core": self._cpu,
            "blocks_of_a_round": self._blocks,
        }

    def devices(self) -> Mapping[str, object]:
        """Return the configuration of each gateway, by its label."""
        return {device.label: device.started.device for device in self._devices}

    def round(self, store: Store, number: int, budget: TimeBudget) -> None:
        """Send slices through every gateway, in labs made for this round; one takes seconds, so none is cut short."""
        del budget
        if number:
            # Made again, so that memory layouts differ between rounds and the interval covers them.
            with making_again(number):
                self.__exit__(None, None, None)
                self.__enter__()
        plan = RoundPlan(self._fewest, self._blocks, frames=self._slice_frames, seed=self._seed + number)
        devices = [
            TimedGateway(device.label, device.started.measurer, device.bench.traffic.connections)
            for device in self._devices
        ]
        cables = [over_cable(frames, lab, self._cpu) for frames, lab in self._cables.items()]
        self._sums.add(perform(plan, self._cpu, devices, cables, store))

    def least_rounds(self, _alpha: float) -> int:
        """Return the rounds that Student's interval needs, at any level."""
        return LEAST_ROUNDS

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline."""
        return estimates_of(self._ratios, goal, alpha)

    def findings(self) -> Findings:
        """Return counts of slices, the baseline's costs, and those of plain forwarding."""
        facts = machine.facts()
        return Findings(
            by="slices",
            parameters={
                gateway.label: gateway_parameters(gateway.bench, gateway.started.device, facts)
                for gateway in [*self._gateways, self._control]
            },
            baseline_costs=tuple(self._baseline(quantity) for quantity in self._quantities),
            forwarding_nanoseconds={quantity: self._ratios.forwarding(quantity) for quantity in self._quantities},
            slices=SliceCounts(
                core=self._cpu,
                frames=self._slice_frames,
                slices=self._sums.slices,
                interrupted=self._sums.interrupted,
                waited=self._sums.waited,
            ),
        )

    def _baseline(self, quantity: Quantity) -> BaselineCost:
        baseline = self._ratios.places[0]
        return BaselineCost(
            quantity=quantity,
            nanoseconds=self._ratios.nanoseconds(baseline, quantity),
            ratio_to_forwarding=finite(self._ratios.ratio_to_forwarding(baseline, quantity)),
            tester_nanoseconds=self._ratios.tester(quantity),
        )
