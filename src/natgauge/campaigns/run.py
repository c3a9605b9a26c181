# SPDX-License-Identifier: Apache-2.0
"""A campaign under way: rounds of visits to all cells, each with one repetition of each of the cell's measurements.

In each round every cell is visited once, in an order of its own, so that an hour in which the host is slow falls on all
devices. What is left to do is known from the journal alone; so it makes no difference whether a campaign is run in one
session or in many.
"""

from __future__ import annotations

import fnmatch
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from natgauge.bench.bench import Planned
from natgauge.bench.watch import Silent, Watch
from natgauge.campaigns.answers import StaleError
from natgauge.campaigns.cells import Asked, Point, accepts
from natgauge.campaigns.course import Ended, Running, write_result
from natgauge.campaigns.journal import Journal
from natgauge.campaigns.stand import Set, Stand, Stands
from natgauge.campaigns.state import Repetition, State
from natgauge.campaigns.store import Memory
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.procedures.kit.incurable import INCURABLE
from natgauge.procedures.kit.phase1 import CONNECTION_RATE

#: A connection rate that these limited is one that the device does; what is limited by time is a bound only.
_KNOWN_LIMITS: Final = frozenset({"device", "tester"})


@dataclass(slots=True)
class Session:
    """One run of natgauge on a campaign.

    Attributes:
        folder: of the campaign.
        points: its cells.
        seed: of the order of the cells.
        journal: open.
        state: as the journal tells, kept up to date.
        stands: makes benches.
        facts: of this machine.
        watch: is told what happens.
        only: names or patterns of the cells that this session visits; empty = all.
    """

    folder: Path
    points: Sequence[Point]
    seed: int
    journal: Journal
    state: State
    stands: Stands
    facts: Mapping[str, object]
    watch: Watch = field(default_factory=Silent)
    only: Sequence[str] = ()
    _began: float = field(default_factory=time.monotonic)
    _ended: int = 0

    def run(self) -> None:
        """Go on until nothing is left to do.

        Raises:
            UsageError: no cell has such a name.
            HostError: this host cannot do it, or the journal cannot be written; the campaign can be gone on with.
            NatgaugeError: a lab cannot be made.
        """
        points = self._chosen()
        for point in points:
            self._finish_all(point)
        most = max((asked.most_repetitions for point in points for asked in point.asked), default=0)
        for round_number in range(1, most + 1):
            order = sorted(points, key=lambda point: point.name)
            random.Random(f"{self.seed} {round_number}").shuffle(order)  # noqa: S311 - an order, nothing secret
            for point in order:
                if pending := self._pending(point, round_number):
                    self._visit(point, pending, round_number)
        # A device that broke has more cells than the one it broke in.
        for point in points:
            self._finish_all(point)

    def note(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """Append a line to the journal, and take it into the state.

        Raises:
            HostError: it cannot be written.
        """
        self.state.take(self.journal.add(event, sync=sync, **fields))

    def _chosen(self) -> Sequence[Point]:
        for pattern in self.only:
            if not any(fnmatch.fnmatchcase(point.name, pattern) for point in self.points):
                names = ", ".join(point.name for point in self.points)
                raise UsageError(f"--only: no cell is called {pattern!r}; choose of {names}")
        if not self.only:
            return self.points
        return [one for one in self.points if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in self.only)]

    def _open(self, point: Point, asked: Asked) -> bool:
        """Whether there is still something to measure."""
        course = self.state.course(point.name, asked.name)
        broken = self.state.broken(point.name, point.device, asked.name)
        return not (broken or course.folder or course.is_done(asked.repeat, asked.most_repetitions))

    def _pending(self, point: Point, round_number: int) -> list[Asked]:
        return [
            asked
            for asked in point.asked
            if self._open(point, asked) and not self._ended_in(point, asked, round_number)
        ]

    def _visit(self, point: Point, pending: Sequence[Asked], round_number: int) -> None:
        self.note("visit", cell=point.name, round=round_number)
        self.watch.stage(f"cell {point.name}, round {round_number}: {self._left()}")
        first = self._on_bench(point, pending, round_number)
        # A moment's disturbance may be all that was wrong; a device that fails on two benches is broken.
        if first and self._on_bench(point, pending, round_number):
            self.note("broken", scope="device", device=point.device, cell=point.name, cause=first)
        self._finish_all(point)

    def _on_bench(self, point: Point, pending: Sequence[Asked], round_number: int) -> str:
        """Measure on a bench made for it; why the device did not come up or forward, or nothing."""
        with self.stands(point.cell, self.watch) as stand:
            for asked in pending:
                if not self._open(point, asked) or self._ended_in(point, asked, round_number):
                    continue
                if cause := self._measure(stand, point, asked, round_number):
                    self.note("device-failed", cell=point.name, measurement=asked.name, cause=cause)
                    return cause
                self._finish(point, asked)
        return ""

    def _ended_in(self, point: Point, asked: Asked, round_number: int) -> bool:
        return len(self.state.course(point.name, asked.name).ended) >= round_number

    def _measure(self, stand: Stand, point: Point, asked: Asked, round_number: int) -> str:
        """One repetition; what breaks is noted with its cause.

        Returns:
            Why the device did not come up or forward; empty = it did.
        """
        where: dict[str, Any] = {"cell": point.name, "measurement": asked.name}
        while True:
            recorder = Memory()
            under_way = self.state.course(point.name, asked.name).under_way
            given = self._given(point, asked, round_number) if under_way is None else under_way.begun["given"]
            try:
                planned = _single(stand, asked, given)
                ready = stand.set(planned, recorder)
            except BrokenError as error:
                return str(error)
            except (HostError, UsageError) as error:
                # What a program or the memory lacks is lacking for all metrics; a limit may be too small for one alone.
                scope = "cell" if isinstance(error, HostError) else "measurement"
                self.note("broken", scope=scope, device=point.device, **where, cause=str(error))
                return ""
            if under_way is None:
                under_way = self._begin(point, asked, given, ready)
            running = Running(
                note=self.note,
                where=where,
                planned=planned,
                ready=ready,
                recorder=recorder,
                watch=self.watch,
                most=asked.most_repetitions,
            )
            try:
                running.run(under_way)
            except StaleError as error:
                self.note("repetition-redone", **where, repetition=under_way.number, cause=str(error))
                self.watch.stage(f"{asked.name}: repetition {under_way.number} is begun anew: {error}")
                self._begin(point, asked, given, ready)
                continue
            except HostError:
                raise
            except (BrokenError, UsageError) as error:
                self.note("broken", scope="measurement", device=point.device, **where, cause=str(error))
            else:
                self._ended += 1
            return ""

    def _begin(self, point: Point, asked: Asked, given: Mapping[str, Any], ready: Set) -> Repetition:
        course = self.state.course(point.name, asked.name)
        self.note(
            "repetition",
            cell=point.name,
            measurement=asked.name,
            repetition=len(course.ended) + 1,
            given=given,
            parameters=ready.parameters.model_dump(mode="json"),
            machine=self.facts,
            device=ready.device,
            highest_rate=ready.measurer.highest_rate,
            abilities=sorted(ability.value for ability in ready.measurer.abilities),
        )
        return course.repetitions[-1]

    def _given(self, point: Point, asked: Asked, round_number: int) -> dict[str, float]:
        """The connection rate of this round, where one was found: a safe phase 1 need not be searched again."""
        if not accepts(asked, "connection_rate"):
            return {}
        for other in point.asked:
            ended = self.state.course(point.name, other.name).ended
            if other.metric == CONNECTION_RATE and len(ended) == round_number:
                measured = ended[-1].measured
                value, limit = measured["summary"]["median"], measured["measurements"][0]["limited_by"]
                curable = not any(note.startswith(INCURABLE) for note in measured["notes"])
                if value > 0 and limit in _KNOWN_LIMITS and curable:
                    return {"connection_rate": value}
        return {}

    def _finish_all(self, point: Point) -> None:
        for asked in point.asked:
            self._finish(point, asked)

    def _finish(self, point: Point, asked: Asked) -> None:
        """Make the result of a measurement that will not go on."""
        course = self.state.course(point.name, asked.name)
        if course.folder or not course.ended or self._open(point, asked):
            return
        cause = ""
        if not course.is_done(asked.repeat, asked.most_repetitions):
            cause = self.state.broken(point.name, point.device, asked.name)
        single = _single(self.stands(point.cell, Silent()), asked, course.ended[0].begun["given"])
        made = write_result(self.folder, point, asked, Ended(single=single, repetitions=course.ended, cause=cause))
        self.note("result", cell=point.name, measurement=asked.name, folder=made, cause=cause)

    def _left(self) -> str:
        """How much is done, and how long the rest takes going by this session."""
        total = done = 0
        for point in self.points:
            for asked in point.asked:
                ended = len(self.state.course(point.name, asked.name).ended)
                done += ended
                total += asked.most_repetitions if self._open(point, asked) else ended
        text = f"{done} of {total} repetitions done"
        if self._ended:
            minutes = (time.monotonic() - self._began) / self._ended * (total - done) / 60
            text += f", about {minutes:.0f} min left"
        return text


def _single(stand: Stand, asked: Asked, given: Mapping[str, Any]) -> Planned:
    return stand.plan(asked.metric, {**asked.settings, **given, "repeat": 1})
