# SPDX-License-Identifier: Apache-2.0
"""What stands beside a device when its frames are timed: plain forwarding and a cable, made when first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from natgauge.bench.hot_spots import hot_spots
from natgauge.bench.rounds import (
    NO_SEARCH,
    RATE,
    Asked,
    Frames,
    Round,
    Visited,
    forwarding_of,
    over_cable,
    perform,
    work,
)
from natgauge.bench.watch import Unread
from natgauge.duts.recipe import Recipe
from natgauge.host.sampling import Sampling
from natgauge.labs.cable import CableLab
from natgauge.labs.contract import Lab
from natgauge.measurer import TrialPlan
from natgauge.slices import CostBlock, CostPlan, CostRound

if TYPE_CHECKING:
    from natgauge.bench.bench import Bench
    from natgauge.bench.lab_measurer import LabMeasurer
    from natgauge.trials import TrialRequest

#: Plans a bench of a cell: `Bench` itself, which imports this module.
Planner = Callable[..., "Bench"]


class Beside(Protocol):
    """What `LabMeasurer` asks."""

    def round(self, measurer: LabMeasurer, plan: CostPlan) -> CostRound:
        """Perform one round of slices through this measurer's device, and keep it."""


def unable(recipe: Recipe, lab: Lab) -> str:
    """Why the frames of such a device cannot be timed there; empty = they can."""
    if lab.placement != "shared":
        return (
            f"placement {lab.placement}: the device works beside the sender there, so its frames cannot be timed; use "
            "--placement shared"
        )
    if recipe.own_processes:
        return (
            f"{recipe.name}: works in processes of its own, not in the sender's context, so its frames cannot be "
            "timed; its rate can be measured: connection-rate, throughput"
        )
    if recipe.initiator_family != recipe.responder_family:
        return (
            f"{recipe.name}: goes from {recipe.initiator_family} to {recipe.responder_family}; there is no cable of "
            "two families to take the tester's own work from"
        )
    if len(lab.sender_cpus) != 1:
        return f"cores {','.join(map(str, lab.sender_cpus))}: costs are those of one core; name one"
    return ""


@dataclass(slots=True)
class _Timed:
    """A device as a round visits it."""

    label: str
    measurer: LabMeasurer
    connections: int

    def request(self) -> TrialRequest:
        self.measurer.number += 1
        return self.measurer.request(TrialPlan(self.connections, RATE))

    def empty(self) -> None:
        device = self.measurer.device
        if device is not None and device.empties:
            self.measurer.asking(device.empty)

    def count(self) -> int | None:
        device = self.measurer.device
        return None if device is None else self.measurer.asking(device.count)

    @property
    def udp_timeout(self) -> int | None:
        return self.measurer.settings.udp_timeout


class BesideOnCore:
    """Plain forwarding of the same frames and a cable, each in a lab of its own on the device's core."""

    def __init__(self, frames: Frames, cpu: int, plan_bench: Planner, made: ExitStack) -> None:
        """Plan nothing yet.

        Args:
            frames: that are sent through the device.
            cpu: where all work.
            plan_bench: plans the bench of plain forwarding.
            made: undoes what is made.
        """
        self._frames = frames
        self._cpu = cpu
        self._plan_bench = plan_bench
        self._made = made
        self._cable: CableLab | None = None
        self._forwarding: LabMeasurer | None = None

    def round(self, measurer: LabMeasurer, plan: CostPlan) -> CostRound:
        """Perform one round of slices through this measurer's device, and keep it.

        Raises:
            NatgaugeError: it could not be run.
        """
        own = _Timed("device", measurer, plan.connections)
        devices: list[Visited] = [own]
        if plan.settle_seconds:
            own.empty()
            measurer.sleep(plan.settle_seconds)
        cables = []
        if not plan.alone:
            forwarding, cable = self._standing()
            devices.append(_Timed("plain forwarding", forwarding, plan.connections))
            cables.append(over_cable(self._frames, cable, self._cpu, plan.connections))
        sampling = Sampling(self._cpu) if plan.sampled else None
        with sampling or nullcontext():
            done = perform(Asked(self._cpu, plan.frames, plan.blocks, plan.seed), devices, cables)
        told = _told(done, plan)
        if sampling is not None:
            told = replace(told, hot_spots=hot_spots(sampling.stacks, _standing_seconds(done)))
        measurer.recorder.add_round(done.as_kept())
        return told

    def _standing(self) -> tuple[LabMeasurer, CableLab]:
        if self._cable is None or self._forwarding is None:
            self._cable = self._made.enter_context(CableLab(_name("cable")))
            place = {"lab_name": _name("plain"), "placement": "shared", "cores": str(self._cpu)}
            bench = self._made.enter_context(self._plan_bench(forwarding_of(self._frames, place), rates=NO_SEARCH))
            ready = bench.ready(bench.plan("throughput", {}), Unread(), prove=False)
            self._forwarding = ready.measurer
        return self._forwarding, self._cable


def _told(done: Round, plan: CostPlan) -> CostRound:
    fault = "; ".join(
        f"{done.request.contestants[position].name}: {said}" for position, said in sorted(done.faults.items())
    )
    blocks = []
    for block in done.result.blocks:
        took = [nanoseconds / (2 * plan.frames) for nanoseconds in work(block)]
        blocks.append(CostBlock(block.quantity, *took))
    return CostRound(
        blocks=() if fault else tuple(blocks),
        fault=fault,
        slices=sum(len(block.ns) for block in done.result.blocks),
        interrupted=sum(block.interrupted for block in done.result.blocks),
    )


def _standing_seconds(done: Round) -> float | None:
    """Of the slices over standing connections, with their leads; None where there were none: all was opening."""
    slices = done.request.slices
    standing = [sum(block.ns) for block in done.result.blocks if block.quantity != "new"]
    return sum(standing) / 1e9 * (slices.lead + slices.frames) / slices.frames if standing else None


def _name(what: str) -> str:
    """Every process has labs of its own."""
    return f"cost-{os.getpid()}-{what}"
