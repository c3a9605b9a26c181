# SPDX-License-Identifier: Apache-2.0
"""A campaign under way: rounds in which each cell is run once, with one repetition of each of its measurements.

Each round has its own order of the cells, so that an hour in which the host is slow affects all devices. The journal
alone says what is left to do, so a campaign may be run in one session or in many. A measurement whose repetitions have
ended, one by one, becomes a result in its folder.
"""

from __future__ import annotations

import fnmatch
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from natgauge.campaigns.cell_run import CellRun, is_open, pending
from natgauge.campaigns.cells import CellMeasurement, PlannedCell
from natgauge.campaigns.estimate import Once, repetitions
from natgauge.campaigns.evidence import NO_EVIDENCE, STORED, EvidenceFile, EvidenceLines
from natgauge.campaigns.journal import Journal, JournalLine, text_of
from natgauge.campaigns.state import CampaignState, MeasurementState
from natgauge.durations import duration, likely
from natgauge.errors import EndedBySignal, NatgaugeError, UsageError
from natgauge.figure_text import with_noun
from natgauge.measurements.making import keep, of_repetitions, write_conditions
from natgauge.measurements.prepared import MakeBench
from natgauge.metrics import declared
from natgauge.notes import Note
from natgauge.procedures.kit.repetitions import in_rounds
from natgauge.procedures.kit.result.results import MeasurementResult, make_result
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.procedures.kit.time_budget import TIME
from natgauge.records.store import SUMMARY, Store, result_name
from natgauge.system_errors import unwritable
from natgauge.trial.protocols import Observer, Silent
from natgauge.words import NO_DEVICE


def most_rounds(points: Sequence[PlannedCell]) -> int:
    """The largest number of repetitions of any measurement."""
    return max((measurement.most_repetitions for point in points for measurement in point.measurements), default=0)


#: Makes cell runs of a session until these cells lack no repetition.
CellRunner = Callable[["Session", Sequence[PlannedCell]], None]


def run_here(
    make_bench: MakeBench, facts: Mapping[str, object], session: Session, points: Sequence[PlannedCell]
) -> None:
    """Run cells on this machine, one after the other, all rounds in order."""
    turns = {point.name: _Turn(make_bench, facts, session, point) for point in points}
    in_rounds(most_rounds(points), lambda number: [turns[each.name] for each in session.order(points, number)])


@dataclass(frozen=True, slots=True)
class _Turn:
    make_bench: MakeBench
    facts: Mapping[str, object]
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
            make_bench=self.make_bench,
            facts=self.facts,
            observer=session.observer,
            alike={each.name for each in session.points if each.one_device == self.point.one_device},
        )
        ended_by: EndedBySignal | NatgaugeError | None = None
        try:
            run.run()
        except (EndedBySignal, NatgaugeError) as error:
            ended_by = error
        # Repetitions that have ended are reported, also where this turn has not ended; what ended it is said.
        with suppress(NatgaugeError) if ended_by else nullcontext():
            session.finish_all(self.point, renewed=True)
        if ended_by is not None:
            raise ended_by


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
        # A killed session may have left repetitions of any cell without a result.
        for point in self.points:
            self.finish_all(point)
        self.runner(self, points)
        # A device that broke in one cell ends the measurements of its other cells.
        for point in points:
            self.finish_all(point)

    def retry(self) -> None:
        """Note that what broke in this session's cells is tried again, and that their devices are not broken."""
        chosen = self._chosen()
        devices: dict[str, list[str]] = {point.device: [] for point in chosen}
        for point in self.points:
            if point.device in devices:
                devices[point.device].append(point.name)
        self.append_line("retried", cells=[point.name for point in chosen], devices=devices)

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
        self.observer.stage(f"{self._nothing()}{who}cell {point.name}, round {number}: {self.left()}")

    def _nothing(self) -> str:
        """Return the beginning of a line where measurements have been 0 in all their repetitions so far; else empty."""
        ended = {
            f"{measurement.metric} of {point.name}": [
                (each.result.summary.median, each.result.limited_by in NO_DEVICE)
                for each in self.state.measurement(point.name, measurement.name).ended
            ]
            for point in self._chosen()
            for measurement in point.measurements
            if declared(measurement.metric).better == "higher"
        }
        names = [name for name, values in ended.items() if values and not any(map(any, values))]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"0 in every repetition so far: {names[0]}{more}; " if names else ""

    def append_line(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """Append a line to the journal, its evidence to that of the measurement, and update the state."""
        line, evidence = self.state.line_of(event, fields)
        self.append([line], evidence, sync=sync)

    def append(self, lines: Sequence[JournalLine], evidence: EvidenceLines = NO_EVIDENCE, *, sync: bool = True) -> None:
        """Append lines of one measurement to the journal, after the evidence that they count, and update the state."""
        for line in lines if any(evidence) else ():
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
            cause = self.state.broken.cause(point.name, point.device, measurement.name)
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
        text = f"{done} of {with_noun(total, 'repetitions')} done"
        self._before = behind if self._before is None else self._before
        if ended_estimate := behind - self._before:
            text += f", about {duration((time.monotonic() - self._began) / ended_estimate * left)} left"
        elif left:
            text += f", likely {likely(left, most_left)} left"
        return text

    def _estimated(self, point: PlannedCell, measurement: CellMeasurement) -> Once:
        if point.name not in self._estimates:
            self._estimates[point.name] = repetitions(point)
        return self._estimates[point.name][measurement.name]


def write_result(
    evidence: EvidenceFile,
    point: PlannedCell,
    measurement: CellMeasurement,
    known: MeasurementState,
    cause: str | None,
) -> str:
    """Write the results folder of a measurement with at least one repetition; an incomplete one is replaced.

    Args:
        cause: reason why there are fewer repetitions than requested; empty = there are not; None = others follow, and
            the folder that is still being made becomes one, for reports before the end.
    """
    has_ended = cause is not None
    first, number, most = known.ended[0], len(known.ended), measurement.most_repetitions
    notes = (
        [Note("ended early", f"broken after {number} of {with_noun(most, 'repetitions')}: {cause}")] if cause else []
    )
    if not has_ended:
        notes = [Note("incomplete", f"{number} of {with_noun(most, 'repetitions')} so far", value=most)]
    given: dict[str, Any] = {"repeat": 1, **{str(name): value for name, value in first.given.items()}}
    single = replace(measurement.planned.settings, **given)
    results = [repetition.result for repetition in known.ended]
    measured = join(results, measurement.planned.settings, single, notes)
    try:
        store = Store(evidence.settle(known.stored))
        counting = [known.ended[at] for at in counted(results)]
        own_part = {name: value for repetition in known.ended for name, value in repetition.own_part.items()}
        parameters = [each.parameters for each in counting]
        # Every cell run makes a new lab, unless the lab is kept.
        conduct = {
            "labs": 1 if any(each.get("lab_stays") for each in parameters) else len(parameters),
            "seeds": [each.get("seed") for each in parameters],
            "begun": [each.began for each in counting],
        }
        every = of_repetitions(parameters, measurement.metric, conduct, own_part)
        run = every.model_copy(update={"settings": {**every.settings, "repeat": measurement.repeat}})
        write_conditions(store, run, point.recipe, first.machine, first.device)
        keep(measured, run, store, evidence.result if has_ended else evidence.making, measurement.published)
        if has_ended:
            evidence.publish()
    except OSError as error:
        raise unwritable(evidence.result, error, what="results", remedy="see that its folder can be written") from error
    return evidence.name


def counted(singles: Sequence[MeasurementResult]) -> list[int]:
    """Return the indices of the repetitions that count: those that time did not end, or else the first one."""
    return [at for at, result in enumerate(singles) if result.limited_by != TIME] or [0]


def join(
    singles: Sequence[MeasurementResult], settings: TrialSettings, single: TrialSettings, notes: Sequence[Note] = ()
) -> MeasurementResult:
    """Put repetitions together that were measured one by one.

    One that its time cut off counts only where there is no other, for its value is no more than a bound. Each of the
    singles has one repetition, measured with the settings `single`; they are in the order of their measurement.
    """
    kept = [singles[at] for at in counted(singles)]
    notes = list(notes)
    if len(kept) < len(singles) and kept[0].limited_by != TIME:
        cut = len(singles) - len(kept)
        notes.append(
            Note("time used up", f"{cut} of {len(singles)} repetitions left out, which their time cut off", cut)
        )
    # What one repetition says of the number of repetitions holds for none of them any more.
    own = set(single.notes())
    shared = [
        note for result in kept for note in result.notes if note not in own and note not in result.repetition_notes
    ]
    parameters: dict[str, Any] = {**kept[0].parameters, "repeat": settings.repeat}
    measurements = [measurement for result in kept for measurement in result.measurements]
    notes += [*settings.notes(), *shared]
    joined = make_result(kept[0].metric, kept[0].unit, parameters, measurements, notes)
    return replace(joined, first=tuple(inner for result in kept for inner in result.first))
