# SPDX-License-Identifier: Apache-2.0
"""Run a cell: make a bench, and measure one repetition of each of the cell's measurements that lack one.

A cell run only hands out lines for the journal, so it may be made in this process or on another machine.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from natgauge.agreement.generated import StreamCounts
from natgauge.campaigns.cells import CellMeasurement, PlannedCell, lacks_rate
from natgauge.campaigns.evidence import EVIDENCE
from natgauge.campaigns.journal import AppendLine
from natgauge.campaigns.journal_lines import RepetitionLine
from natgauge.campaigns.state import CampaignState
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host.settings import OccupiedError
from natgauge.inputs.question import Cell, Question
from natgauge.measurements.conditions import with_neighbours
from natgauge.measurements.prepared import MakeBench, MeasuringBench, Prepared
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.measure.phase1 import CONNECTION_RATE
from natgauge.procedures.kit.result.results import Attempt, MeasurementResult
from natgauge.procedures.kit.search import permanent_loss
from natgauge.records.parameters import Parameters, shown
from natgauge.records.store import Memory
from natgauge.trial.protocols import Observer
from natgauge.trial.question import command
from natgauge.trial.renewal import in_repetition
from natgauge.trials import Trial

#: Limits of a connection rate at which the device works; a rate that time limited is only a bound.
_KNOWN_LIMITS: Final = frozenset({"device", "tester"})
#: The parameter with the device's version.
_VERSION: Final = "version"
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
        worker: name, cores and likeness of the worker that this is; None = the
            campaign has no workers.
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
        """Measure on a new bench.

        Returns:
            Reason why the device did not start or forward; empty = it did.
        """
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
        """Measure one repetition; a failure is journaled with its cause.

        Returns:
            Reason why the device did not start or forward; empty = it did.
        """
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
        now = ready.parameters.get(_VERSION)
        own = {self.point.name, *self.alike}
        for (cell, _), known in self.state.measurements.items():
            for earlier in known.ended if cell in own else ():
                was = earlier.parameters.get(_VERSION)
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
                curable = not any(note.word in permanent_loss.WORDS for note in found.notes)
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
