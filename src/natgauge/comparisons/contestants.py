# SPDX-License-Identifier: Apache-2.0
"""All that is up at once: each gateway on a bench of its own, the first one twice, plain forwarding, and cables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from natgauge.bench.bench import Bench, Ready
from natgauge.bench.rounds import NO_SEARCH, TimedFrames, forwarding_of, over_cable
from natgauge.bench.timed_gateway import TimedGateway
from natgauge.bench.watch import Unread, Watch
from natgauge.comparisons.asked import ComparedGateway
from natgauge.errors import UsageError
from natgauge.inputs.question import Cell
from natgauge.labs.common.cable import CableLab
from natgauge.trials import Contestant

#: As many as the engine visits in one round.
MOST: Final = 16


@dataclass(slots=True)
class RunningGateway:
    """A gateway that is up.

    Attributes:
        label: what it is called.
        bench: where it stands.
        frames: what is sent through it.
        ready: its device; None before the `with` block.
    """

    label: str
    bench: Bench
    frames: TimedFrames
    ready: Ready | None = None

    @property
    def started(self) -> Ready:
        """Its device.

        Raises:
            RuntimeError: it is not up.
        """
        if self.ready is None:
            message = f"{self.label} is not up"
            raise RuntimeError(message)
        return self.ready

    @property
    def timed(self) -> TimedGateway:
        """It, as rounds visit it.

        Raises:
            RuntimeError: it is not up.
        """
        return TimedGateway(self.label, self.started.measurer, self.bench.traffic.connections)


class Contestants:
    """All of a comparison. Use it as a context manager.

    Attributes:
        gateways: as they were named, the baseline first.
        twin: the baseline once more.
        forwarding: plain forwarding of each kind of frames, of those that are not gateways here.
        cables: a cable for each kind of frames.
        cpu: where all work.
    """

    def __init__(self, asked: Sequence[ComparedGateway], cpu: int, seed: int, watch: Watch) -> None:
        """Plan all; nothing is made.

        Raises:
            UsageError: the first thing that is wrong with any of them, or they are too many.
        """
        self.cpu = cpu
        self._watch = watch
        self._seed = seed
        self._made = ExitStack()
        self.gateways = [self._standing(one, str(number)) for number, one in enumerate(asked)]
        first = asked[0]
        self.twin = self._standing(ComparedGateway(f"{first.label} (again)", first.recipe, first.choices), "again")
        kinds = dict.fromkeys(one.frames for one in self.gateways)
        self.forwarding = {frames: self._forwarding(frames, asked, number) for number, frames in enumerate(kinds)}
        self.cables = {frames: CableLab(_name(f"cable{number}")) for number, frames in enumerate(kinds)}
        if len(self.devices) + len(self.cables) > MOST:
            raise UsageError(
                f"compare: {len(self.gateways)} gateways, with the first one again, plain forwarding and cables "
                f"{len(self.devices) + len(self.cables)} in all; at most {MOST} can be visited in turn"
            )

    @property
    def devices(self) -> list[RunningGateway]:
        """All but the cables, each once."""
        every = [*self.gateways, self.twin, *self.forwarding.values()]
        return list({id(one): one for one in every}.values())

    def __enter__(self) -> Self:
        """Make all labs and start all gateways.

        Raises:
            NatgaugeError: as `Bench`.
        """
        shared_by = sharing(one.bench for one in self.devices)
        try:
            for cable in self.cables.values():
                self._made.enter_context(cable)
            for one in self.devices:
                self._made.enter_context(one.bench)
                planned = one.bench.plan("throughput", {})
                facts = replace(planned.facts, sharing=shared_by)
                # The links within a chain learn their neighbours with its first frames, some of which are lost.
                chained = bool(one.bench.recipe.chain)
                one.ready = one.bench.ready(replace(planned, facts=facts), Unread(), prove=chained)
        except BaseException:
            self._made.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def cable_contestants(self) -> list[Contestant]:
        """Of the next round, after all devices."""
        return [over_cable(frames, lab, self.cpu) for frames, lab in self.cables.items()]

    def cable_of(self, one: RunningGateway) -> int:
        """Position of its cable in a round."""
        return len(self.devices) + list(self.cables).index(one.frames)

    def _standing(self, asked: ComparedGateway, lab: str) -> RunningGateway:
        return self._on(asked.label, asked.cell(self._place(lab)))

    def _place(self, lab: str) -> dict[str, object]:
        return {"lab_name": _name(lab), "placement": "shared", "cores": str(self.cpu), "seed": self._seed}

    def _on(self, label: str, cell: Cell) -> RunningGateway:
        bench = Bench(cell, self._watch, rates=NO_SEARCH)
        # What is wrong with its limits is told before any of them is made.
        bench.plan("throughput", {})
        family = bench.around.inside.family
        return RunningGateway(label, bench, TimedFrames(family, bench.octets_on(family), bench.traffic.connections))

    def _forwarding(self, frames: TimedFrames, asked: Sequence[ComparedGateway], number: int) -> RunningGateway:
        for one, standing in zip(asked, self.gateways, strict=True):
            if one.recipe.kind == "routing" and standing.frames == frames:
                return standing
        cell = forwarding_of(frames, self._place(f"plain{number}"))
        return self._on(f"plain forwarding (linux-{frames.family})", cell)


def sharing(benches: Iterable[Bench]) -> int:
    """How many share the buckets of a table of the whole machine, at least 1: each is to have as many as alone."""
    knobs = [bench.recipe.knobs.hash_size for bench in benches]
    return max(1, sum(knob is not None and knob.scope == "machine" for knob in knobs))


def _name(what: str) -> str:
    """Every process has labs of its own."""
    return f"compare-{os.getpid()}-{what}"
