# SPDX-License-Identifier: Apache-2.0
"""Labs of a comparison by slices: gateways, A/A control, plain forwarding and cables, each on its own bench."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from natgauge.agreement.generated import Contestant
from natgauge.comparisons.method import named
from natgauge.comparisons.request import ComparedGateway
from natgauge.errors import UsageError
from natgauge.inputs.question import Cell
from natgauge.paired.ratios import Seat, Seating
from natgauge.tester.cable_lab import CableLab
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.observer import Observer, Unread
from natgauge.trial.rounds import NO_SEARCH, TimedFrames, TimedGateway, forwarding_of, over_cable

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
        seating: their positions in a round; the A/A control's follows those of the gateways.
    """

    def __init__(self, compared: Sequence[ComparedGateway], cpu: int, seed: int, observer: Observer) -> None:
        """Plan every bench; no lab is made."""
        self.cpu = cpu
        self._observer = observer
        self._seed = seed
        self._made = ExitStack()
        self.gateways = [self._planned(gateway, str(number)) for number, gateway in enumerate(compared)]
        self.control = self._planned(compared[0].control(), "control")
        seats = [
            Seat(gateway.label, gateway.frames, choice.recipe.kind == "routing")
            for choice, gateway in zip(compared, self.gateways, strict=True)
        ]
        self.seating = Seating([*seats, Seat(self.control.label, self.control.frames)], _forwarding)
        self.devices = [*self.gateways, self.control]
        self.cables: dict[TimedFrames, CableLab] = {}
        for number, (frames, position) in enumerate(self.seating.forwarding.items()):
            if position == len(self.devices):
                self.devices.append(self._on(_forwarding(frames), forwarding_of(frames, self._place(f"plain{number}"))))
            self.cables[frames] = CableLab(_name(f"cable{number}"))
        if len(self.devices) + len(self.cables) > MOST:
            raise UsageError(
                f"compare: {len(self.gateways)} gateways, with the A/A control, plain forwarding and cables "
                f"{len(self.devices) + len(self.cables)} in all; one round has at most {MOST}"
            )

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
                # In its first lab each gateway is proved to forward: what does not is named with its hop, at once.
                proved = chained or (gateway.ready is None and gateway in self.gateways)
                with named(gateway.label, gateway.bench.recipe.name):
                    gateway.ready = gateway.bench.ready(replace(planned, demand=demand), Unread(), prove=proved)
                if gateway.bench.processes:
                    raise UsageError(f"{gateway.bench.reasons_not_timed()[0]}; add --by rates")
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # the same arguments

    def cable_contestants(self) -> list[Contestant]:
        """Return the cables for the next round; they follow the devices."""
        return [over_cable(frames, lab, self.cpu) for frames, lab in self.cables.items()]

    def _planned(self, gateway: ComparedGateway, lab: str) -> RunningGateway:
        return self._on(gateway.label, gateway.cell(self._place(lab)))

    def _place(self, lab: str) -> dict[str, object]:
        return {"lab_name": _name(lab), "placement": "shared", "cores": (self.cpu,), "seed": self._seed}

    def _on(self, label: str, cell: Cell) -> RunningGateway:
        bench = Bench(cell, self._observer, rates=NO_SEARCH)
        # Refuse an impossible gateway before any lab is made.
        bench.plan("throughput", {})
        return RunningGateway(label, bench, bench.timed_frames)


def _forwarding(frames: TimedFrames) -> str:
    return f"plain forwarding (linux-{frames.family})"


def sharing(benches: Iterable[Bench]) -> int:
    """Return the number of gateways that share a table of the whole machine, at least 1.

    The table gets that many times the buckets, so that each gateway has the buckets that it has alone.
    """
    knobs = [bench.recipe.knobs.hash_size for bench in benches]
    return max(1, sum(knob is not None and knob.scope == "machine" for knob in knobs))


def _name(what: str) -> str:
    """Return a lab name that no other process uses."""
    return f"compare-{os.getpid()}-{what}"
