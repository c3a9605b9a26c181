# SPDX-License-Identifier: Apache-2.0
"""A campaign under way: rounds in which each cell is run once, with one repetition of each of its measurements.

A cell run makes a bench, measures, and only hands out lines for the journal, so it may be made in this process or on
another machine. Each round has its own order of the cells, so that an hour in which the host is slow affects all
devices. The journal alone says what is left to do, so a campaign may be run in one session or in many. A measurement
whose repetitions have ended, one by one, becomes a result in its folder.
"""

from __future__ import annotations

import fnmatch
import itertools
import random
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from natgauge.agreement.generated import StreamCounts
from natgauge.campaigns.cells import CellMeasurement, PlannedCell, lacks_rate
from natgauge.campaigns.estimate import Once, repetitions
from natgauge.campaigns.journal import AppendLine, Journal, JournalLine, RepetitionLine, text_of
from natgauge.campaigns.state import (
    EVIDENCE,
    NO_EVIDENCE,
    STORED,
    CampaignState,
    EvidenceFile,
    EvidenceLines,
    MeasurementState,
)
from natgauge.errors import BrokenError, EndedBySignal, HostError, NatgaugeError, UsageError, unwritable
from natgauge.figure_text import duration, likely, with_noun
from natgauge.host.settings import OccupiedError
from natgauge.inputs.question import Cell, Question
from natgauge.measurements.measure import MakeBench, MeasuringBench, Prepared
from natgauge.measurements.record import keep, of_repetitions, with_neighbours, write_conditions
from natgauge.metrics import declared
from natgauge.notes import Note
from natgauge.procedures.kit import losses
from natgauge.procedures.kit.phases import CONNECTION_RATE
from natgauge.procedures.kit.procedure import in_rounds
from natgauge.procedures.kit.results import Attempt, MeasurementResult, make_result
from natgauge.procedures.kit.runner import TIME, Event
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.parameters import Parameters, shown
from natgauge.records.store import SUMMARY, Memory, Store, result_name
from natgauge.trial.bench import in_repetition
from natgauge.trial.controls import Observer, Silent
from natgauge.trial.question import command
from natgauge.trials import Trial
from natgauge.words import NO_DEVICE

#: Limits of a connection rate at which the device works; a rate that time limited is only a bound.
_KNOWN_LIMITS: Final = frozenset({"device", "tester"})
#: The most trials of a repetition that its line of the journal has one by one; no search has as many.
MOST_ATTEMPTS: Final = 1000


def is_open(state: CampaignState, point: PlannedCell, measurement: CellMeasurement) -> bool:
    """Whether there is still something to measure."""
    known = state.measurement(point.name, measurement.name)
    broken = state.broken.cause(point.name, point.device, measurement.name)
    return not (broken or known.folder or known.is_done(measurement.repeat, measurement.most_repetitions))


def pending(state: CampaignState, point: PlannedCell, round_number: int) -> list[CellMeasurement]:
    """The measurements of a cell that lack the repetition of this round."""
    return [
        one
        for one in point.measurements
        if is_open(state, point, one) and len(state.measurement(point.name, one.name).ended) < round_number
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRun:
    """One run of a cell.

    Attributes:
        round_number: from 1.
        state: state of at least this cell, kept up to date by `append_line`.
        worker: name, cores and likeness of the worker that this is; None = the campaign has no workers.
        only: name of the one measurement to run; empty = all.
        alike: names of the campaign's cells of the same device, which is of one version; empty = not known.
    """

    point: PlannedCell
    round_number: int
    state: CampaignState
    append_line: AppendLine
    make_bench: MakeBench
    facts: Mapping[str, object]
    observer: Observer
    worker: Mapping[str, Any] | None = None
    only: str = ""
    alike: Collection[str] = ()

    def run(self) -> None:
        """Measure; a device that fails on one bench gets a second one, and is broken if it fails there, too."""
        first = self._on_bench()
        if first and self._on_bench():
            self.append_line("broken", scope="device", device=self.point.device, cell=self.point.name, cause=first)

    def _on_bench(self) -> str:
        """Measure on a new bench; return why the device did not start or forward, empty = it did."""
        with self.make_bench(self._cell(), self.observer) as bench:
            for measurement in pending(self.state, self.point, self.round_number):
                # A device that broke in one measurement is not measured in those that follow.
                if self.only not in ("", measurement.name) or not is_open(self.state, self.point, measurement):
                    continue
                if cause := self._measure(bench, measurement):
                    self.append_line("device-failed", cell=self.point.name, measurement=measurement.name, cause=cause)
                    return cause
        return ""

    def _cell(self) -> Cell:
        """The cell with the seed of this round."""
        cell = self.point.cell
        return in_repetition(cell, cell.lab.seed, self.round_number)

    def _measure(self, bench: MeasuringBench, measurement: CellMeasurement) -> str:
        """Measure one repetition; a failure is journaled with its cause. Returns as `_on_bench`."""
        number = len(self._ended(measurement)) + 1
        where: dict[str, Any] = {"cell": self.point.name, "measurement": measurement.name, "repetition": number}
        recorder, given = Memory(), self._given(measurement)

        def broke(scope: str, error: NatgaugeError) -> None:
            evidence: dict[str, Any] = {EVIDENCE: recorder} if scope == "measurement" else {}
            cause = self._cause(error)
            self.append_line("broken", scope=scope, device=self.point.device, **where, cause=cause, **evidence)

        try:
            single = {**measurement.planned.chosen, **given, "repeat": 1}
            ready = bench.prepare(bench.plan(measurement.metric, single), recorder)
        except BrokenError as error:
            return self._cause(error)
        except OccupiedError:
            raise
        except (HostError, UsageError) as error:
            # A missing program or too little memory affects all metrics; a limit may be too small for one of them.
            broke("cell" if isinstance(error, HostError) else "measurement", error)
            return ""
        self._refuse_other_version(ready)
        self._refuse_other_file(measurement, ready)
        parameters = with_neighbours(self._as_planned(measurement, ready), self.worker)
        began, since = round(time.time(), 3), time.monotonic()

        def observe(event: Event) -> None:
            if event.outcome is None:
                names = ("metric", "trial", "plan", "load", "bounds", "seconds_left")
                self.append_line("trial", sync=False, **where, **{name: getattr(event, name) for name in names})
            counted = replace(event, repetition=number, repetitions=measurement.most_repetitions)
            self.observer.event(counted if event.metric == measurement.metric else event)

        procedure = ready.planned.procedure
        try:
            # A trial that the user ends is repeated by the session that resumes the campaign.
            measured = procedure.measure(ready.measurer, ready.planned.settings, observe, may_be_cut=False)
        except HostError:
            raise
        except (BrokenError, UsageError) as error:
            broke("measurement", error)
            return ""
        seconds = time.monotonic() - since
        known = {name for repetition in self._ended(measurement) for name in repetition.own_part}
        self.append_line(
            "repetition",
            **{**where, EVIDENCE: recorder},
            given=given,
            parameters=parameters.model_dump(mode="json"),
            machine=self.facts,
            device=ready.device,
            worker=self.worker,
            began=began,
            seconds=seconds,
            measured=_slim(measured),
            own_part=ready.own_part(known),
        )
        return ""

    def _ended(self, measurement: CellMeasurement) -> Sequence[RepetitionLine]:
        return self.state.measurement(self.point.name, measurement.name).ended

    def _refuse_other_version(self, ready: Prepared) -> None:
        """Refuse a device of another version than in earlier repetitions of its cells.

        A cell that has none yet would otherwise need the new version, and the others the old one. Workers may have
        different versions; the result then carries the doubt `mixed`.
        """
        if self.worker is not None:
            return
        now = ready.parameters.get("version")
        own = {self.point.name, *self.alike}
        for (cell, _), known in self.state.measurements.items():
            for earlier in known.ended if cell in own else ():
                was = earlier.parameters.get("version")
                if was != now:
                    raise HostError(
                        f"campaign: {self.point.device} is of version {shown(now)} now, it was {shown(was)} in earlier "
                        "repetitions, which would not be of one device; install that version again, or begin a new "
                        "campaign: --out"
                    )

    def _refuse_other_file(self, measurement: CellMeasurement, ready: Prepared) -> None:
        """Refuse a file, such as a subscriber's profile, with another content than where the campaign was begun."""
        if ready.planned.settings.of_file != measurement.planned.settings.of_file:
            raise UsageError(
                f"campaign: the file that {measurement.name} of cell {self.point.name} names is another one than when "
                "the campaign was begun; restore it, or begin a new campaign: --out"
            )

    def _cause(self, error: Exception) -> str:
        return str(error) if self.worker is None else f"worker {self.worker['name']}: {error}"

    def _as_planned(self, measurement: CellMeasurement, ready: Prepared) -> Parameters:
        """The parameters, with a command that measures all repetitions again.

        It has the options of the plan: neither a rate that this round found nor the name of a worker's own lab.
        """
        settings = {**measurement.planned.chosen, "repeat": measurement.repeat}
        question = Question(metric=measurement.metric, cell=self._cell(), settings=settings)
        place = {**ready.parameters.place, "command": command(question)}
        return ready.parameters.model_copy(update={"place": place})

    def _given(self, measurement: CellMeasurement) -> dict[str, float]:
        """The connection rate found in this round, if any: then no search for a safe phase 1 is needed."""
        if not lacks_rate(measurement):
            return {}
        for other in self.point.measurements:
            ended = self.state.measurement(self.point.name, other.name).ended
            if other.metric == CONNECTION_RATE and len(ended) == self.round_number:
                found = ended[-1].result
                value, limit = found.summary.median, found.measurements[0].limited_by
                curable = not any(note.word in losses.WORDS for note in found.notes)
                if value > 0 and limit in _KNOWN_LIMITS and curable:
                    return {"connection_rate": value}
        return {}


def slim(trial: Trial) -> Trial:
    """Leave out the request and the delays of a trial: its own line has them."""
    result = trial.result
    if result is not None:
        phase1, phase2 = result.phase1, result.phase2
        untimed = {direction.value: _untimed(counts) for direction, counts in trial.phase2.items()}
        update = {"phase1": phase1 and _untimed(phase1), "phase2": phase2 and phase2.model_copy(update=untimed)}
        result = result.model_copy(update=update)
    return replace(trial, request=None, result=result)


def _untimed(counts: StreamCounts) -> StreamCounts:
    return counts.model_copy(update={"delay": None})


def _slim(measured: MeasurementResult) -> MeasurementResult:
    """Slim each trial, also those of the measurements made first, and keep few of very many."""

    def without(attempt: Attempt) -> Attempt:
        return replace(attempt, outcome=slim(attempt.outcome))

    measurements = tuple(
        replace(measurement, attempts=tuple(map(without, _few(measurement.attempts))))
        for measurement in measured.measurements
    )
    return replace(measured, measurements=measurements, first=tuple(map(_slim, measured.first)))


def _few(attempts: Sequence[Attempt]) -> Iterable[Attempt]:
    """Of very many attempts keep those that stand for others, from which the same figures and doubts follow.

    A day has 86,400 periods of a second, and a line of the journal is read as a whole.
    """
    if len(attempts) <= MOST_ATTEMPTS:
        return attempts
    alike: dict[tuple[Hashable, ...], list[Attempt]] = {}
    for attempt in attempts:
        alike.setdefault(_kind(attempt), []).append(attempt)
    return itertools.chain.from_iterable(map(_standing_for, alike.values()))


def _kind(attempt: Attempt) -> tuple[Hashable, ...]:
    """Return all that figures and doubts count of a trial."""
    outcome, readings = attempt.outcome, attempt.outcome.readings
    judged = (outcome.verdict, outcome.disturbed, outcome.excused, outcome.raised_timeout, outcome.begun)
    read = (outcome.other_traffic.is_doubted, bool(readings.core_work), readings.count_in_churn)
    return (attempt.load, attempt.short, attempt.is_aside, *judged, *read)


def _standing_for(alike: Sequence[Attempt]) -> Iterator[Attempt]:
    """Yield the worst of trials that are alike, as doubts name these; the first one stands for the others, too."""
    most_foreign = max(alike, key=lambda attempt: attempt.outcome.other_traffic.share)
    most_asked = max(alike, key=lambda attempt: sum(each.asked or 0 for each in attempt.outcome.phase2.values()))
    apart = most_asked is not most_foreign
    yield replace(most_foreign, times=len(alike) - apart)
    if apart:
        yield most_asked


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
    evidence: EvidenceFile, point: PlannedCell, measurement: CellMeasurement, known: MeasurementState, cause: str | None
) -> str:
    """Write the results folder of a measurement with at least one repetition; an incomplete one is replaced.

    Args:
        cause: reason why there are fewer repetitions than requested; empty = there are not; None = others follow, and
            the folder that is still being made becomes one, for reports before the end.
    """
    has_ended = cause is not None
    first, most = known.ended[0], measurement.most_repetitions
    notes, done = list[Note](), f"{len(known.ended)} of {with_noun(most, 'repetitions')}"
    if not has_ended:
        notes.append(Note("incomplete", f"{done} so far", value=most))
    elif cause:
        notes.append(Note("ended early", f"broken after {done}: {cause}"))
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
        text = f"{cut} of {len(singles)} repetitions left out, which their time cut off"
        notes.append(Note("time used up", text, cut))
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
