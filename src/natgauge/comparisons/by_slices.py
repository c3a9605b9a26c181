# SPDX-License-Identifier: Apache-2.0
"""Comparison in short slices that alternate on one core, for gateways that run in the sender's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from natgauge.comparisons.contestants import Contestants
from natgauge.comparisons.estimates import estimates_of
from natgauge.comparisons.method import Findings, making_again
from natgauge.comparisons.request import ComparedGateway, CompareOptions, ComparisonGoal
from natgauge.host import machine
from natgauge.host.cpus import check_cpus, idlest_core, usable_cpus
from natgauge.measurements.conditions import gateway_parameters
from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios
from natgauge.paired.rounds import RoundSums, VoidRounds, disturbance_notes
from natgauge.paired.slices import RoundPlan, blocks_of_round
from natgauge.records.comparison import BaselineCost, RatioEstimate, SliceCounts
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.statistics.interval import finite
from natgauge.statistics.rounds import LEAST_ROUNDS
from natgauge.trial.observer import Observer
from natgauge.trial.rounds import perform
from natgauge.words import Quantity


class BySlices:
    """Compares slices; see `ComparisonMethod`."""

    first_analysis = LEAST_ROUNDS

    def __init__(
        self,
        gateways: Sequence[ComparedGateway],
        quantities: Sequence[Quantity],
        options: CompareOptions,
        observer: Observer,
    ) -> None:
        """Plan every gateway; no lab is made."""
        self._seed, self._slice_frames, self._quantities = options.seed or 0, options.slice_frames, quantities
        cpu = idlest_core(usable_cpus()) if options.core is None else check_cpus((options.core,), "core", "core")[0]
        self.all = Contestants(gateways, cpu, self._seed, observer)
        self.labels = [gateway.label for gateway in self.all.gateways]
        self.stage = f"comparing {', '.join(self.labels)} on core {cpu}"
        fewest = min(device.bench.traffic.connections for device in self.all.devices)
        self._blocks = blocks_of_round(quantities, fewest, options.slice_frames)
        voids = VoidRounds(
            "compare",
            "round",
            "only gateways that forward every frame can be compared: see what it does with "
            '"natgauge measure throughput"',
        )
        self._fewest = fewest
        self._ratios = PairedRatios(self.all.seating.places, quantities)
        self._sums = RoundSums(voids, self.all.seating, self._ratios)

    def __enter__(self) -> Self:
        """Make all labs and start all gateways, for the first round."""
        self.all.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.all.__exit__(*exception)

    def _renew(self) -> None:
        """Make all labs again, so that memory layouts differ between rounds and the interval covers them."""
        self.all.__exit__(None, None, None)
        self.all.__enter__()

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
                for gateway in self.all.gateways
            },
            "core": self.all.cpu,
            "blocks_of_a_round": self._blocks,
        }

    def devices(self) -> Mapping[str, object]:
        """Return the configuration of each gateway, by its label."""
        return {device.label: device.started.device for device in self.all.devices}

    def round(self, store: Store, number: int) -> None:
        """Send slices through every gateway, in labs made for this round."""
        if number:
            with making_again(number):
                self._renew()
        plan = RoundPlan(self._fewest, self._blocks, frames=self._slice_frames, seed=self._seed + number)
        devices = [device.timed for device in self.all.devices]
        self._sums.add(perform(plan, self.all.cpu, devices, self.all.cable_contestants(), store))

    def least_rounds(self, _alpha: float) -> int:
        """Return the rounds that Student's interval needs, at any level."""
        return LEAST_ROUNDS

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline."""
        return estimates_of(self._ratios, goal, alpha)

    def parameters(self) -> Mapping[str, Parameters]:
        """Return all that was set for each gateway, by its label."""
        facts = machine.facts()
        return {
            gateway.label: gateway_parameters(gateway.bench, gateway.started.device, facts)
            for gateway in [*self.all.gateways, self.all.control]
        }

    def findings(self) -> Findings:
        """Return counts of slices, the baseline's costs, and those of plain forwarding."""
        return Findings(
            by="slices",
            baseline_costs=tuple(self._baseline(quantity) for quantity in self._quantities),
            forwarding_nanoseconds={quantity: self._ratios.forwarding(quantity) for quantity in self._quantities},
            slices=SliceCounts(
                core=self.all.cpu,
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
