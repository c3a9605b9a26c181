# SPDX-License-Identifier: Apache-2.0
"""The contract of a storm: one kind of disturbance, made many times, after each of which the same must hold."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from natgauge.host.machine import usable_cpus

#: Faults that are shown; a fault that every disturbance finds would fill the screen.
_SHOWN: Final = 20


def nothing_missing() -> str:
    """A storm that needs nothing that this machine may lack."""
    return ""


def cores_missing() -> str:
    """Why a storm that needs two cores cannot be made; empty = it can."""
    return "" if len(usable_cpus()) > 1 else "it needs two cores"


@dataclass(frozen=True, slots=True)
class Storm:
    """One kind of disturbance.

    Attributes:
        name: as the command line has it.
        started: what is started.
        disturbed: what is done to it.
        holds: what must hold afterwards.
        unit: what is counted, in the plural.
        full: number of disturbances of a full storm, as before a release.
        soak: number of disturbances in `make soak`.
        make: makes the disturbances, and writes what it finds into the tally.
        missing: returns why the storm cannot be made on this machine; empty = it can.
    """

    name: str
    started: str
    disturbed: str
    holds: str
    unit: str
    full: int
    soak: int
    make: Callable[[Tally], None]
    missing: Callable[[], str] = nothing_missing


@dataclass(slots=True)
class Tally:
    """Counts and faults of one storm.

    Attributes:
        most: number of disturbances to make.
        chance: of each random choice.
        folder: an empty folder for the storm's files.
        until: moment of the monotonic clock after which no disturbance begins.
        count: number of disturbances so far.
        seen: number of disturbances by what was disturbed, or how it ended.
        said: last lines of disturbed runs without their digits, and how often each was said.
        notes: further figures, one sentence each.
        faults: what must not be, one sentence each.
    """

    most: int
    chance: Random
    folder: Path
    until: float = float("inf")
    count: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether there are disturbances left to make."""
        return self.count < self.most and time.monotonic() < self.until

    def saw(self, what: str, number: int = 1) -> None:
        """Count a disturbance, or several of the same kind."""
        self.count += number
        self.seen[what] += number

    def blame(self, faults: Iterable[str]) -> None:
        """Keep faults, each with the number of the disturbance that showed it."""
        self.faults += [f"{self.count}: {fault}" for fault in faults]

    def lines(self, storm: Storm, seconds: float) -> Iterator[str]:
        """What was found, for a reader."""
        yield f"{storm.name}: {self.count:,} {storm.unit} in {seconds:.0f} s; must hold: {storm.holds}"
        for what, number in self.seen.most_common():
            yield f"  {number:>7,}  {what}"
        yield from (f"  {number:>7,}  said: {line}" for line, number in self.said.most_common())
        yield from (f"  {note}" for note in self.notes)
        yield from (f"! {fault}" for fault in self.faults[:_SHOWN])
        if len(self.faults) > _SHOWN:
            yield f"! and {len(self.faults) - _SHOWN} more"

    def row(self, storm: Storm, seconds: float, seed: int) -> str:
        """A row of the table of a results page."""
        seen = ", ".join(f"{number:,} {what}" for what, number in self.seen.most_common())
        found = f"{len(self.faults)} faults" if self.faults else "nothing"
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"| {storm.name} | {storm.started}; {storm.disturbed} | {self.count:,} {storm.unit} | {storm.holds} "
            f"| {found} | {seen}{notes} | {seconds:.0f} s | {seed} | {os.getloadavg()[0]:.1f} |"
        )
