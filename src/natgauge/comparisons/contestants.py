# SPDX-License-Identifier: Apache-2.0
"""Labs of a comparison by slices: gateways, A/A control, plain forwarding and cables, each on its own bench."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from natgauge.agreement import Contestant
from natgauge.comparisons.method import named
from natgauge.comparisons.request import ComparedGateway
from natgauge.errors import UsageError
from natgauge.inputs.question import Cell
from natgauge.labs.common.cable import CableLab
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.observer import Observer, Unread
from natgauge.trial.rounds import NO_SEARCH, TimedFrames, forwarding_of, over_cable
from natgauge.trial.timed_gateway import TimedGateway

#: Most contestants of one round of the engine.
MOST: Final = 16


@dataclass(slots=True)
class RunningGateway:
    """A gateway of a running comparison.

    Attributes:
        ready: its started device; None before the `with` block.
    """

    label: str
    bench: Bench
    frames: tuple[TimedFrames, ...]
    ready: Ready | None = None

    @property
    def started(self) -> Ready:
        """The gateway, started."""
        if self.ready is None:
            message = f"{self.label} has not been started"
            raise RuntimeError(message)
        return self.ready

    @property
    def timed(self) -> TimedGateway:
        """The gateway as a round measures it."""
        return TimedGateway(self.label, self.started.measurer, self.bench.traffic.connections)


class Contestants:
    """All contestants of a comparison by slices. Use it as a context manager.

    Attributes:
        gateways: the compared gateways in order, the baseline first.
        forwarding: plain forwarding of each kind of frames; a compared gateway if that only routes.
    """

    def __init__(self, compared: Sequence[ComparedGateway], cpu: int, seed: int, observer: Observer) -> None:
        """Plan every bench; no lab is made."""
        self.cpu = cpu
        self._observer = observer
        self._seed = seed
        self._made = ExitStack()
        self.gateways = [self._planned(gateway, str(number)) for number, gateway in enumerate(compared)]
        self.control = self._planned(compared[0].control(), "control")
        kinds = dict.fromkeys(frames for gateway in self.gateways for frames in gateway.frames)
        self.forwarding = {frames: self._forwarding(frames, compared, number) for number, frames in enumerate(kinds)}
        self.cables = {frames: CableLab(_name(f"cable{number}")) for number, frames in enumerate(kinds)}
        if len(self.devices) + len(self.cables) > MOST:
            raise UsageError(
                f"compare: {len(self.gateways)} gateways, with the A/A control, plain forwarding and cables "
                f"{len(self.devices) + len(self.cables)} in all; one round has at most {MOST}"
            )

    @property
    def devices(self) -> list[RunningGateway]:
        """All contestants but the cables, each once."""
        every = [*self.gateways, self.control, *self.forwarding.values()]
        return list({id(gateway): gateway for gateway in every}.values())

    def __enter__(self) -> Self:
        """Make all labs and start all gateways."""
        shared_by = sharing(gateway.bench for gateway in self.devices)
        with ExitStack() as made:
            for cable in self.cables.values():
                made.enter_context(cable)
            for gateway in self.devices:
                made.enter_context(gateway.bench)
                planned = gateway.bench.plan("throughput", {})
                demand = replace(planned.demand, sharing=shared_by)
                # The links within a chain learn their neighbours with its first frames, some of which are lost.
                chained = bool(gateway.bench.recipe.chain)
                with named(gateway.label, gateway.bench.recipe.name):
                    gateway.ready = gateway.bench.ready(replace(planned, demand=demand), Unread(), prove=chained)
                if gateway.bench.processes:
                    raise UsageError(f"{gateway.bench.reasons_not_timed()[0]}; add --by rates")
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # the same arguments

    def cable_contestants(self) -> list[Contestant]:
        """Return the cables for the next round; they follow the devices."""
        return [over_cable(frames, lab, self.cpu) for frames, lab in self.cables.items()]

    def cables_of(self, gateway: RunningGateway) -> tuple[int, ...]:
        """Return the positions of the gateway's cables in a round, one for each address family."""
        return tuple(len(self.devices) + list(self.cables).index(frames) for frames in gateway.frames)

    def _planned(self, gateway: ComparedGateway, lab: str) -> RunningGateway:
        return self._on(gateway.label, gateway.cell(self._place(lab)))

    def _place(self, lab: str) -> dict[str, object]:
        return {"lab_name": _name(lab), "placement": "shared", "cores": (self.cpu,), "seed": self._seed}

    def _on(self, label: str, cell: Cell) -> RunningGateway:
        bench = Bench(cell, self._observer, rates=NO_SEARCH)
        # Refuse an impossible gateway before any lab is made.
        bench.plan("throughput", {})
        return RunningGateway(label, bench, bench.timed_frames)

    def _forwarding(self, frames: TimedFrames, compared: Sequence[ComparedGateway], number: int) -> RunningGateway:
        for choice, gateway in zip(compared, self.gateways, strict=True):
            if choice.recipe.kind == "routing" and gateway.frames == (frames,):
                return gateway
        cell = forwarding_of(frames, self._place(f"plain{number}"))
        return self._on(f"plain forwarding (linux-{frames.family})", cell)


def sharing(benches: Iterable[Bench]) -> int:
    """Return the number of gateways that share a table of the whole machine, at least 1.

    The table gets that many times the buckets, so that each gateway has the buckets that it has alone.
    """
    knobs = [bench.recipe.knobs.hash_size for bench in benches]
    return max(1, sum(knob is not None and knob.scope == "machine" for knob in knobs))


def _name(what: str) -> str:
    """Return a lab name that no other process uses."""
    return f"compare-{os.getpid()}-{what}"
