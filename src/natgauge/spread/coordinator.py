# SPDX-License-Identifier: Apache-2.0
"""Has the repetitions of a campaign measured as Dask futures, and appends the journal lines that they return.

Dask chooses the worker of a repetition by resources and priority, and has it measured again elsewhere when the worker
dies. A repetition that did not return, because its worker died or the session ended, has left nothing in the journal:
its time is lost, and nothing counts twice.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as Ended
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, Final

import dask
from distributed import Future, KilledWorker

from natgauge.campaigns.cell_run import pending
from natgauge.campaigns.cells import MOST_CELLS, CellMeasurement, PlannedCell
from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.journal_lines import adapter_of
from natgauge.campaigns.run import Session, most_rounds
from natgauge.errors import NatgaugeError
from natgauge.measurements.conditions import with_neighbours
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.measure.phase1 import CONNECTION_RATE
from natgauge.records.parameters import Parameters
from natgauge.spread.resources import Resources, like, likeness, workers_on
from natgauge.spread.worker import TOPIC, Made, Message, RepetitionTask
from natgauge.spread.workers import Workers, of_worker

#: Interval between two looks at which workers are there.
POLL_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Run:
    """A repetition that Dask has.

    Attributes:
        worker: name of the one that began it last; empty = none yet.
        machine: digest of that one's machine; empty = not known.
        beside: the most other workers that were seen on that machine since it began.
    """

    point: PlannedCell
    round_number: int
    starts: int
    wanted: Resources
    future: Future[Made]
    worker: str = ""
    machine: str = ""
    beside: int = 0

    def look(self, workers: Mapping[str, int]) -> None:
        """Count the other workers on its machine, by the workers of each machine: some join while it is measured."""
        self.beside = max(self.beside, workers.get(self.machine, 1) - 1)


class Coordinator:
    """Has all repetitions of a session measured by workers."""

    def __init__(self, workers: Workers, session: Session, points: Sequence[PlannedCell]) -> None:
        self._workers = workers
        self._session = session
        self._points = points
        self._offered = workers.offers()
        self._places: dict[int, dict[str, int]] = {}
        self._runs: dict[str, _Run] = {}
        self._inbox: SimpleQueue[tuple[str, Message | Ended[Made]]] = SimpleQueue()
        self._checked_at = time.monotonic()
        # As often as Dask itself tries a task on workers that die.
        self._most_starts = 1 + int(dask.config.get("distributed.scheduler.allowed-failures"))

    def run(self) -> None:
        """Go on until nothing is left."""
        for point in self._points:
            if self._offered and self._next(point):
                self._workers.refuse_lacking(point, self._wanted(point), self._offered)
        self._workers.client.subscribe_topic(TOPIC, lambda event: self._inbox.put((event[1]["run"], event[1])))
        try:
            for point in self._points:
                self._submit(point)
            while self._runs:
                self._take_message()
                self._check_workers()
        finally:
            # Dask then cancels what is left: a worker ends its repetition at the next line of the journal.
            for run in self._runs.values():
                run.future.release()

    def _next(self, point: PlannedCell) -> tuple[int, CellMeasurement] | None:
        """The first round in which a cell lacks a repetition, and of which measurement; None = nothing is left."""
        rounds = range(1, most_rounds([point]) + 1)
        lacking = ((number, each) for number in rounds for each in pending(self._session.state, point, number))
        return next(lacking, None)

    def _wanted(self, point: PlannedCell) -> Resources:
        """Resources of a cell. All repetitions of one result are measured on machines that are alike."""
        wanted = self._workers.needs[point.name]
        for measurement in point.measurements:
            for first in self._session.state.measurement(point.name, measurement.name).ended[:1]:
                worker, machine = first.worker, first.machine
                alike = likeness(machine, len(machine["cpus_online"])) if worker is None else worker.like
                return {**wanted, **like(alike)}
        return wanted

    def _submit(self, point: PlannedCell, starts: int = 0) -> None:
        """Submit the next repetition of a cell; earlier rounds come first, each in its own order."""
        following = self._next(point)
        if following is None:
            return
        number, measurement = following
        if number not in self._places:
            order = self._session.order(self._points, number)
            self._places[number] = {cell.name: place for place, cell in enumerate(order)}
        # Phase 1 is paced by the connection rate of this round.
        needed = {each.name for each in point.measurements if each.metric == CONNECTION_RATE} | {measurement.name}
        task = RepetitionTask(
            point=point,
            measurement=measurement.name,
            counts=self._workers.counts[point.name],
            round_number=number,
            known={(point.name, name): self._session.state.measurement(point.name, name) for name in needed},
            workers_on=workers_on(self._offered),
            host_name=self._workers.host_name,
        )
        key, priority = f"natgauge-{uuid.uuid4().hex}", -(number * MOST_CELLS + self._places[number][point.name])
        wanted = self._wanted(point)
        future = self._workers.submit(key, task, wanted, priority, lambda ended: self._inbox.put((key, ended)))
        self._runs[key] = _Run(point, number, starts, wanted, future)

    def _take_message(self) -> None:
        """Handle a progress message, or the end of a repetition; wait for it, but not for long."""
        with suppress(Empty):
            key, message = self._inbox.get(timeout=POLL_SECONDS)
            run = self._runs.get(key)
            if run is None:
                # Of another campaign, or of a repetition that was cancelled.
                return
            if isinstance(message, Ended):
                del self._runs[key]
                self._end(run, message.result)
            else:
                self._show(run, message)

    def _check_workers(self) -> None:
        if time.monotonic() - self._checked_at < POLL_SECONDS:
            return
        self._offered = self._workers.offers()
        self._checked_at = time.monotonic()
        if not self._offered:
            self._session.observer.stage(f"no worker is at {self._workers.text}; waiting for one")
            return
        workers = workers_on(self._offered)
        for run in self._runs.values():
            run.look(workers)
        # A cell that is measured has a worker with all it needs, unless that worker is gone.
        each = (self._workers.lacking(run.point, run.wanted, self._offered) for run in self._runs.values())
        if lacking := [*filter(None, each)]:
            others = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            self._session.observer.stage(f"waiting for a worker: {lacking[0]}{others}")

    def _end(self, run: _Run, result: Callable[[], Made]) -> None:
        """Append the lines of a repetition that has ended, and submit the next one of its cell."""
        starts, cell = 0, run.point.name
        try:
            made = result()
        except NatgaugeError as error:
            raise of_worker(error, run.worker) from error
        except (CancelledError, OSError) as error:
            # What was cancelled here is not in `_runs`; the client cancels all when it loses its connection. Where the
            # lines of a repetition do not come home in time, Dask says so by a TimeoutError, which is an OSError.
            raise self._workers.unreachable(error) from error
        except KilledWorker as error:
            # Dask counts tasks that waited for a dead worker, too; only those that a worker has begun are the cell's.
            starts, worker = run.starts + (not run.worker), run.worker or error.last_worker.name
            if starts >= self._most_starts:
                cause = f"the worker died in {starts} tries, the last one was {worker}"
                self._session.append_line("broken", scope="cell", device=run.point.device, cell=cell, cause=cause)
        else:
            self._session.append([_beside(line, run.beside) for line in made.lines], made.evidence)
        self._session.finish_all(run.point, renewed=True)
        self._submit(run.point, starts)
        self._drop_broken()

    def _drop_broken(self) -> None:
        """Cancel repetitions that no worker has begun, of devices that broke in another cell."""
        for key, run in list(self._runs.items()):
            if not run.worker and not pending(self._session.state, run.point, run.round_number):
                del self._runs[key]
                run.future.release()

    def _show(self, run: _Run, message: Message) -> None:
        """Hand a progress message to the observer; the journal has the trial that is running, for `natgauge status`."""
        cell, worker, content, session = run.point.name, message["name"], message["content"], self._session
        if message["kind"] == "begin":
            run.starts, run.worker, run.machine, run.beside = run.starts + 1, worker, content, 0
            run.look(workers_on(self._offered))
            session.visit(run.point, run.round_number, worker)
        elif message["kind"] == "trial":
            session.append([content], sync=False)
        elif message["kind"] == "stage":
            session.observer.stage(f"{worker}: {content}")
        else:
            event = adapter_of(Event).validate_python(content)
            session.observer.event(replace(event, metric=f"{cell} {event.metric}"))


def _beside(line: JournalLine, others: int) -> JournalLine:
    """Return a line with the most other workers that its machine had; the worker knows those of its submission."""
    worker: Any = line.get("worker")
    if line["event"] != "repetition" or worker["beside"] >= others:
        return line
    counted = {**worker, "beside": others}
    parameters = with_neighbours(Parameters.model_validate(line["parameters"]), counted)
    return {**line, "worker": counted, "parameters": parameters.model_dump(mode="json")}
