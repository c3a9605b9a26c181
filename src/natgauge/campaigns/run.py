# SPDX-License-Identifier: Apache-2.0
"""A campaign under way: rounds in which each cell is run once, with one repetition of each of its measurements.

Each round has its own order of the cells, so that an hour in which the host is slow affects all devices. The journal
alone says what is left to do, so a campaign may be run in one session or in many.
"""

from __future__ import annotations

import fnmatch
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from natgauge.campaigns.cell_run import CellRun, is_open, pending
from natgauge.campaigns.cells import CellMeasurement, PlannedCell
from natgauge.campaigns.estimate import Once, repetitions
from natgauge.campaigns.evidence import STORED, EvidenceFile
from natgauge.campaigns.journal import Journal, JournalLine, text_of
from natgauge.campaigns.result import write_result
from natgauge.campaigns.state import CampaignState
from natgauge.durations import duration, likely
from natgauge.errors import UsageError
from natgauge.measurements.prepared import MakeBench
from natgauge.procedures.kit.repetitions import in_rounds
from natgauge.records.store import SUMMARY, result_name
from natgauge.trial.observer import Observer, Silent


def most_rounds(points: Sequence[PlannedCell]) -> int:
    """The largest number of repetitions of any measurement."""
    return max((measurement.most_repetitions for point in points for measurement in point.measurements), default=0)


class CellRunner(Protocol):
    """Makes all cell runs of a session."""

    def __call__(self, session: Session, points: Sequence[PlannedCell]) -> None:
        """Run cells until these lack no repetition.

        Raises:
            HostError: a host cannot measure, or the journal cannot be written; the campaign can be resumed.
            NatgaugeError: a lab cannot be made.
        """


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs cells on this machine, one after the other."""

    make_bench: MakeBench
    facts: Mapping[str, object]

    def __call__(self, session: Session, points: Sequence[PlannedCell]) -> None:
        """Run all rounds in order."""
        turns = {point.name: _Turn(self, session, point) for point in points}
        in_rounds(most_rounds(points), lambda number: [turns[each.name] for each in session.order(points, number)])


@dataclass(frozen=True, slots=True)
class _Turn:
    """A cell whose turn comes in each round."""

    runner: LocalRunner
    session: Session
    point: PlannedCell

    def lacks(self, number: int) -> bool:
        return bool(pending(self.session.state, self.point, number))

    def measure(self, number: int) -> None:
        session = self.session
        session.visit(self.point, number)
        run = CellRun(
            point=self.point,
            round_number=number,
            state=session.state,
            append_line=session.append_line,
            make_bench=self.runner.make_bench,
            facts=self.runner.facts,
            observer=session.observer,
        )
        run.run()
        session.finish_all(self.point, renewed=True)


@dataclass(slots=True)
class Session:
    """One run of natgauge on a campaign.

    Attributes:
        seed: seed of the order of the cells.
        only: names or patterns of the cells of this session; empty = all.
    """

    folder: Path
    points: Sequence[PlannedCell]
    seed: int
    journal: Journal
    state: CampaignState
    runner: CellRunner
    observer: Observer = field(default_factory=Silent)
    only: Sequence[str] = ()
    _began: float = field(default_factory=time.monotonic)
    _before: float | None = None
    _estimates: dict[str, dict[str, Once]] = field(default_factory=dict)

    def run(self) -> None:
        """Measure until nothing is left."""
        points = self._chosen()
        for point in points:
            self.finish_all(point)
        self.runner(self, points)
        # A device that broke in one cell ends the measurements of its other cells.
        for point in points:
            self.finish_all(point)

    def check(self) -> None:
        """Refuse to go on where evidence is missing; nothing is measured or written then."""
        for (cell, measurement), known in self.state.measurements.items():
            if not known.folder:
                EvidenceFile(self.folder, result_name(cell, measurement)).check(known.stored)

    def order(self, points: Sequence[PlannedCell], round_number: int) -> list[PlannedCell]:
        """The cells in the order of a round; it follows from the seed."""
        order = sorted(points, key=lambda point: point.name)
        random.Random(f"{self.seed} {round_number}").shuffle(order)  # noqa: S311 - an order, nothing secret
        return order

    def visit(self, point: PlannedCell, number: int, worker: str = "") -> None:
        """Note that the turn of a cell has come; `worker` that measures it, empty = this process does."""
        where: dict[str, Any] = {"cell": point.name, "round": number, **({"worker": worker} if worker else {})}
        self.append_line("visit", **where)
        who = f"{worker}: " if worker else ""
        self.observer.stage(f"{who}cell {point.name}, round {number}: {self.left()}")

    def append_line(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """Append a line to the journal, its evidence to that of the measurement, and update the state."""
        line, evidence = self.state.line_of(event, fields)
        self.append([line], evidence, sync=sync)

    def append(self, lines: Sequence[JournalLine], evidence: bytes = b"", *, sync: bool = True) -> None:
        """Append lines of one measurement to the journal, after the evidence that they count, and update the state."""
        for line in lines if evidence else ():
            if STORED in line:
                known = self.state.measurement(line["cell"], line["measurement"]).stored
                EvidenceFile(self.folder, result_name(line["cell"], line["measurement"])).append(evidence, known)
        self.journal.append([text_of(line) for line in lines], sync=sync)
        for line in lines:
            self.state.take(line)

    def _chosen(self) -> Sequence[PlannedCell]:
        for pattern in self.only:
            if not any(fnmatch.fnmatchcase(point.name, pattern) for point in self.points):
                names = ", ".join(point.name for point in self.points)
                raise UsageError(f"--only: no cell is called {pattern!r}; choose of {names}")
        if not self.only:
            return self.points
        return [cell for cell in self.points if any(fnmatch.fnmatchcase(cell.name, pattern) for pattern in self.only)]

    def finish_all(self, point: PlannedCell, *, renewed: bool = False) -> None:
        """Write the results of a cell's measurements that have a repetition.

        `renewed`: the cell was run, so that results from before are replaced.
        """
        for measurement in point.measurements:
            self._finish(point, measurement, renewed=renewed)

    def _finish(self, point: PlannedCell, measurement: CellMeasurement, *, renewed: bool) -> None:
        """Write the result of a measurement, also before its last repetition."""
        known = self.state.measurement(point.name, measurement.name)
        if known.folder or not known.ended:
            return
        evidence = EvidenceFile(self.folder, result_name(point.name, measurement.name))
        if is_open(self.state, point, measurement):
            if renewed or not (evidence.making / SUMMARY).exists():
                write_result(evidence, point, measurement, known, None)
            return
        cause = ""
        if not known.is_done(measurement.repeat, measurement.most_repetitions):
            cause = self.state.broken(point.name, point.device, measurement.name)
        written = write_result(evidence, point, measurement, known, cause)
        self.append_line("result", cell=point.name, measurement=measurement.name, folder=written, cause=cause)

    def left(self) -> str:
        """Return a text: finished repetitions of this session's cells, and the remaining time at this pace."""
        total = done = 0
        left = most_left = behind = 0.0
        for point in self._chosen():
            for measurement in point.measurements:
                ended = len(self.state.measurement(point.name, measurement.name).ended)
                most = measurement.most_repetitions if is_open(self.state, point, measurement) else ended
                done += ended
                each = self._estimated(point, measurement)
                total += most
                left += (most - ended) * each.seconds
                most_left += (most - ended) * each.most_seconds if most > ended else 0.0
                behind += ended * each.seconds
        text = f"{done} of {total} repetitions done"
        self._before = behind if self._before is None else self._before
        if ended_estimate := behind - self._before:
            text += f", about {duration((time.monotonic() - self._began) / ended_estimate * left)} left"
        elif left:
            text += f", likely {likely(left, most_left)} left"
        return text

    def _estimated(self, point: PlannedCell, measurement: CellMeasurement) -> Once:
        """Return the estimate of one repetition."""
        if point.name not in self._estimates:
            self._estimates[point.name] = repetitions(point)
        return self._estimates[point.name][measurement.name]
