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
from natgauge.paired.slices import LEAD_FRAMES, HotSpot, RoundPlan, TimedRound
from natgauge.tester.cable_lab import CableLab
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.rounds import TimedFrames, TimedGateway, over_cable, perform


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

    def round(self, measurer: LabMeasurer, plan: RoundPlan) -> TimedRound:
        """Perform one round of slices through this measurer's device, and record it."""
        devices = [TimedGateway("device", measurer, plan.connections)]
        if plan.settle_seconds:
            devices[0].empty()
            measurer.sleep(plan.settle_seconds)
        cables = []
        if not plan.alone:
            self._make_references()
            for frames, (forwarding, cable) in zip(self._frames, self._references, strict=True):
                devices.append(TimedGateway("plain forwarding", forwarding, plan.connections))
                cables.append(over_cable(frames, cable, self._cpu, plan.connections))
        sampling = Sampling(self._cpu) if plan.sampled else None
        with sampling or nullcontext():
            done = perform(plan, self._cpu, devices, cables, measurer.recorder)
        if sampling is None:
            return done
        return replace(done, hot_spots=hot_spots(sampling.stacks, _established_seconds(done, plan.frames)))

    def _make_references(self) -> None:
        """Make plain forwarding and a cable for the frames of each address family, once."""
        for frames in self._frames[len(self._references) :]:
            cable = self._made.enter_context(CableLab(_name(f"cable-{frames.family}")))
            self._references.append((self._start_forwarding(frames, _name(f"plain-{frames.family}")), cable))


def _established_seconds(done: TimedRound, frames: int) -> float | None:
    """Return the seconds of slices over open connections, leads included; None where all slices opened connections."""
    established = [sum(work.nanoseconds) for work in done.work if work.quantity != "new"]
    # Two slices of each place.
    return sum(established) / 1e9 * 2 * (LEAD_FRAMES + frames) if established else None


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
