# SPDX-License-Identifier: Apache-2.0
"""natgauge beside the other generators: one core each, alternating order, several short repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import peers, tester
from benchmarks.place import Place
from benchmarks.required import Settings
from benchmarks.tester import Load
from natgauge.errors import NatgaugeError

#: One direction, as the others send one.
OURS = Load(both=False)


@dataclass(slots=True)
class Row:
    """One contender in one place: frames/s delivered per repetition, or why there are none."""

    place: str
    name: str
    note: str
    values: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def median(self) -> float | None:
        """Middle of the repetitions; None when nothing was measured."""
        return statistics.median(self.values) if self.values else None


def in_place(place: Place, settings: Settings, sink: Path) -> list[Row]:
    """Measure every contender in `place`; the order turns round with each repetition."""
    load = tester.for_seconds(place, OURS, settings.cpu, settings.seconds)
    ours = Row(place.name, "natgauge", f"N = {OURS.connections:,}, every frame different, received, judged, remembered")
    contenders: list[tuple[Row, Callable[[], float]]] = [(ours, lambda: tester.run(place, load, settings.cpu).rate)]
    rows = [ours]
    for peer in peers.PEERS:
        row = Row(place.name, peer.name, peer.note)
        rows.append(row)
        if place.forwards and not peer.routable:
            row.problem = "its frames cannot pass a router"
        else:
            contenders.append((row, _peer(peer, place, settings, sink)))
    for repetition in range(settings.repetitions):
        for row, measure in contenders if repetition % 2 == 0 else reversed(contenders):
            _measure(row, measure)
    return rows


def _peer(peer: peers.Peer, place: Place, settings: Settings, sink: Path) -> Callable[[], float]:
    return lambda: peers.delivered_rate(peer, place, settings.cpu, settings.seconds, sink)


def _measure(row: Row, measure: Callable[[], float]) -> None:
    if row.problem:
        return
    try:
        row.values.append(measure())
    except (peers.PeerError, NatgaugeError) as error:
        row.problem = str(error)
        row.values.clear()
        return
    print(f"  {row.place:12} {row.name:30} {row.values[-1]:14,.0f} frames/s", flush=True)


def ratios(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """How many times as many frames natgauge delivered, by place and contender."""
    ours = {row.place: row.median for row in rows if row.name == "natgauge"}
    found = {}
    for row in rows:
        own, other = ours.get(row.place), row.median
        if own and other and row.name != "natgauge":
            found[row.place, row.name] = own / other
    return found
