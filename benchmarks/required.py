# SPDX-License-Identifier: Apache-2.0
"""The figures the tester has to reach on one core, each measured, beside what is required of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks import command, tester
from benchmarks.place import Place
from benchmarks.tester import Load


@dataclass(frozen=True, slots=True)
class Figure:
    """One required figure.

    Attributes:
        name: what was measured.
        unit: of all values.
        required: the bound.
        bound: which side of `required` is good.
        values: one per repetition.
        remark: with what parameters.
    """

    name: str
    unit: str
    required: float
    bound: command.Bound
    values: tuple[float, ...]
    remark: str

    @property
    def median(self) -> float:
        """Middle of the repetitions."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound."""
        return command.keeps(self.median, self.bound, self.required)


@dataclass(frozen=True, slots=True)
class Settings:
    """How long and how often: seconds of sending per repetition, repetitions, the sender's CPU."""

    seconds: float
    repetitions: int
    cpu: int


RATES: tuple[tuple[str, bool, float, Load], ...] = (
    ("cable, IPv4, 64 octets", False, 14.88e6, Load()),
    ("cable, IPv6, 84 octets", False, 12.02e6, Load(family="ipv6", size=84)),
    ("cable, IPv4, 64 octets, every frame's delay", False, 7.4e6, Load(delays=True)),
    ("through linux-ipv4 (shared), IPv4, 64 octets", True, 2.5e6, Load()),
)
START_CONNECTIONS = (1_000, 1_000_000, 50_000_000)


def rates(settings: Settings) -> Iterator[Figure]:
    """Highest rates: phase 2 in both directions, so send, receive, state table and all checks take part."""
    for name, forwards, required, load in RATES:
        with Place(forwards=forwards) as place:
            sized = tester.for_seconds(place, load, settings.cpu, settings.seconds)
            runs = [tester.run(place, sized, settings.cpu) for _ in range(settings.repetitions)]
        lost = sum(run.lost for run in runs)
        offered = sum(run.offered for run in runs)
        remark = f"phase 2 both ways, N = {load.connections:,}; {lost:,} of {offered:,} frames lost"
        yield Figure(name, "frames/s", required, "at least", tuple(run.rate for run in runs), remark)


def start(settings: Settings) -> Iterator[Figure]:
    """Process start to first frame, whatever N."""
    for connections in START_CONNECTIONS:
        # A slow phase 1 would tell nothing more: only its first frame is waited for.
        load = Load(connections=connections, frames=0)
        with Place(forwards=False) as place:
            runs = [tester.run(place, load, settings.cpu) for _ in range(min(settings.repetitions, 3))]
        values = tuple(run.result.start_to_first_frame_ns / 1e9 for run in runs)
        remark = "includes making the state table"
        yield Figure(f"process start to first frame, N = {connections:,}", "s", 0.3, "at most", values, remark)


def memory(settings: Settings, connections: int) -> Iterator[Figure]:
    """Octets of state table per connection, every connection of a large space opened and learned."""
    load = Load(connections=connections, frames=0)
    with Place(forwards=False) as place:
        run = tester.run(place, load, settings.cpu)
    table = run.result.state_table
    remark = (
        f"{table.stored:,} of {connections:,} connections stored in {run.seconds:.0f} s at {run.rate:,.0f} frames/s"
    )
    octets = table.octets / connections
    yield Figure(f"state table, IPv4, N = {connections:,}", "octets per connection", 8.0, "at most", (octets,), remark)
    missing = float(connections - table.stored)
    yield Figure(f"connections not stored of {connections:,}", "connections", 0.0, "at most", (missing,), remark)


def loss(settings: Settings, frames: int) -> Iterator[Figure]:
    """Frames lost at 90 % of the tester's own highest rate on the cable, both directions."""
    with Place(forwards=False) as place:
        sized = tester.for_seconds(place, Load(), settings.cpu, settings.seconds)
        highest = statistics.median(tester.run(place, sized, settings.cpu).rate for _ in range(settings.repetitions))
        rate = 0.9 * highest
        run = tester.run(place, replace(Load(), frames=frames // 2, rate=rate), settings.cpu)
    lag = max(stream.worst_lag_ns or 0 for stream in run.streams) / 1e6
    remark = f"{run.offered:,} frames at {rate:,.0f} frames/s (90 % of {highest:,.0f}); worst lag {lag:.1f} ms"
    yield Figure("frames lost at 90 % of its highest rate, cable", "frames", 0.0, "at most", (float(run.lost),), remark)


def sections(settings: Settings, *, full: bool) -> dict[str, Callable[[], Iterator[Figure]]]:
    """The sections by name; `full` takes the large counts (1.6 billion connections, a billion frames)."""
    return {
        "rates": lambda: rates(settings),
        "start": lambda: start(settings),
        "memory": lambda: memory(settings, 1_600_000_000 if full else 50_000_000),
        "loss": lambda: loss(settings, 1_000_000_000 if full else 100_000_000),
    }
