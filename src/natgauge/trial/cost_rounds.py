# SPDX-License-Identifier: Apache-2.0
"""Rounds that time a device's frames next to plain forwarding and cables, which are made for the first round."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Final

from natgauge.host.sampling import Sampling, Stack
from natgauge.labs.common.cable import CableLab
from natgauge.paired.slices import CostBlock, CostPlan, CostRound, HotSpot
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.rounds import Round, RoundPlan, TimedFrames, over_cable, perform, work_of_blocks
from natgauge.trial.timed_gateway import TimedGateway
from natgauge.words import Quantity


class CostRounds:
    """Rounds of a device, plain forwarding and cables; the references have labs of their own on the device's core."""

    def __init__(
        self,
        frames: Sequence[TimedFrames],
        cpu: int,
        start_forwarding: Callable[[TimedFrames, str], LabMeasurer],
        made: ExitStack,
    ) -> None:
        """Plan the rounds; the labs are made for the first round."""
        self._frames = frames
        self._cpu = cpu
        self._start_forwarding = start_forwarding
        self._made = made
        self._references: list[tuple[LabMeasurer, CableLab]] = []

    def round(self, measurer: LabMeasurer, plan: CostPlan) -> CostRound:
        """Perform one round of slices through this measurer's device, and record it."""
        own = TimedGateway("device", measurer, plan.connections)
        devices = [own]
        if plan.settle_seconds:
            own.empty()
            measurer.sleep(plan.settle_seconds)
        cables = []
        if not plan.alone:
            self._make_references()
            for frames, (forwarding, cable) in zip(self._frames, self._references, strict=True):
                devices.append(TimedGateway("plain forwarding", forwarding, plan.connections))
                cables.append(over_cable(frames, cable, self._cpu, plan.connections))
        sampling = Sampling(self._cpu) if plan.sampled else None
        with sampling or nullcontext():
            done = perform(RoundPlan(self._cpu, plan.frames, plan.blocks, plan.seed), devices, cables)
        cost_round = _cost_round(done, plan)
        if sampling is not None:
            cost_round = replace(cost_round, hot_spots=hot_spots(sampling.stacks, _established_seconds(done)))
        measurer.recorder.add_round(done.as_kept())
        return cost_round

    def _make_references(self) -> None:
        """Make plain forwarding and a cable for the frames of each address family, once."""
        for frames in self._frames[len(self._references) :]:
            cable = self._made.enter_context(CableLab(_name(f"cable-{frames.family}")))
            self._references.append((self._start_forwarding(frames, _name(f"plain-{frames.family}")), cable))


def _cost_round(done: Round, plan: CostPlan) -> CostRound:
    fault = "; ".join(
        f"{done.request.contestants[position].name}: {fault}" for position, fault in sorted(done.faults.items())
    )
    blocks = [_cost_block(*work) for work in work_of_blocks(done.result.blocks, plan.frames)]
    return CostRound(
        blocks=() if fault else tuple(blocks),
        fault=fault,
        slices=sum(len(block.ns) for block in done.result.blocks),
        interrupted=sum(block.interrupted for block in done.result.blocks),
        other_traffic=done.other_traffic,
    )


def _cost_block(quantity: Quantity, took: Sequence[float]) -> CostBlock:
    """Return a block: the device's time is first, then those of plain forwarding, then as many of cables."""
    device, *references = took
    half = len(references) // 2
    return CostBlock(quantity, device, tuple(references[:half]), tuple(references[half:]))


def _established_seconds(done: Round) -> float | None:
    """Return the seconds of slices over open connections, leads included; None where all slices opened connections."""
    slices = done.request.slices
    established = [sum(block.ns) for block in done.result.blocks if block.quantity != "new"]
    return sum(established) / 1e9 * (slices.lead + slices.frames) / slices.frames if established else None


def _name(what: str) -> str:
    """Return a lab's name that no other process uses."""
    return f"cost-{os.getpid()}-{what}"


#: This function is on the stack of all processing of a frame by the device, and of no work of the tester.
RECEIVES: Final = "netif_receive_skb"
#: Number of reported functions.
MOST: Final = 20
#: With fewer samples even the most frequent function would be chance.
LEAST_SAMPLES: Final = 200


def hot_spots(stacks: Sequence[Stack], seconds: float | None = None) -> tuple[HotSpot, ...]:
    """Return the functions with most samples of the device's work, most first; none where samples are too few.

    Args:
        stacks: stacks of the device's core, in the order of time.
        seconds: only this last part of the device's work counts; None = all.
    """
    own = [stack for stack in stacks if any(RECEIVES in function for function in stack.functions)]
    if own and seconds is not None:
        own = [stack for stack in own if stack.seconds >= own[-1].seconds - seconds]
    if len(own) < LEAST_SAMPLES:
        return ()
    samples = Counter(stack.functions[0] for stack in own)
    return tuple(HotSpot(function, number / len(own)) for function, number in samples.most_common(MOST))
