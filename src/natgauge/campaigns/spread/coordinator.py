# SPDX-License-Identifier: Apache-2.0
"""Runs a campaign's cell runs as Dask futures, and appends the journal lines that they return.

Dask chooses the worker of a cell run by resources and priority, and repeats the run elsewhere when the worker dies. A
run that an error ended returns its whole repetitions with the error. A run that did not return, because its worker died
or the session ended, has left nothing in the journal: its time is lost, and nothing counts twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from queue import Empty, SimpleQueue
from typing import Final

import dask
from distributed import Future, KilledWorker
from pydantic import TypeAdapter

from natgauge.campaigns.cell_run import pending
from natgauge.campaigns.cells import MOST_CELLS, PlannedCell
from natgauge.campaigns.run import Session, most_rounds
from natgauge.campaigns.spread.resources import Resources, like, likeness, workers_on
from natgauge.campaigns.spread.worker import TOPIC, CellTask, EndedRun, RunProgress, run_cell
from natgauge.campaigns.spread.workers import Workers, of_worker
from natgauge.gateways.recipe import digest
from natgauge.procedures.kit.events import Event

#: Interval between two looks at which workers are there.
POLL_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Run:
    """A cell run that Dask has.

    Attributes:
        round_number: from 1.
        worker: name of the one that began it last; empty = none yet.
        patience: longest wait for the transfer of the lines when the run has ended, s. No message is handled meanwhile.
    """

    key: str
    point: PlannedCell
    round_number: int
    future: Future[EndedRun]
    starts: int = 0
    worker: str = ""
    patience: float = POLL_SECONDS


class Coordinator:
    """Has all cell runs made by workers: a `natgauge.campaigns.run.CellRunner`."""

    def __init__(self, workers: Workers, revive: Callable[[], None] | None = None) -> None:
        """Take the workers.

        Args:
            revive: restarts workers that have ended for good; None = they are started elsewhere.
        """
        self.workers = workers
        self._revive = revive
        self._offered = workers.offers()
        self._number = len(self._offered)
        self._places: dict[int, dict[str, int]] = {}
        self._runs: dict[str, _Run] = {}
        self._inbox: SimpleQueue[RunProgress | str] = SimpleQueue()
        self._checked_at = time.monotonic()
        # As often as Dask itself tries a task on workers that die.
        self._most_starts = 1 + int(dask.config.get("distributed.scheduler.allowed-failures"))

    def __call__(self, session: Session, points: Sequence[PlannedCell]) -> None:
        """Have every cell run made that is left."""
        self._offered = self.workers.offers()
        for point in points:
            if self._offered and _next_round(session, point):
                self.workers.refuse_lacking(point, self._wanted(session, point), self._offered)
        self.workers.client.subscribe_topic(TOPIC, lambda event: self._inbox.put(event[1]))
        try:
            for point in points:
                self._submit(session, points, point)
            while self._runs:
                self._take_message(session, points)
                self._check_workers(session)
        finally:
            # Dask then cancels what is left: a worker ends its cell run at the next line of the journal.
            for run in self._runs.values():
                run.future.release()
            self._runs.clear()

    def _wanted(self, session: Session, point: PlannedCell) -> Resources:
        """Resources of a cell run. All repetitions of one result are measured on machines that are alike."""
        wanted = self.workers.needs[point.name]
        for measurement in point.measurements:
            for first in session.state.measurement(point.name, measurement.name).ended[:1]:
                worker, machine = first.begun.get("worker"), first.begun["machine"]
                alike = likeness(machine, len(machine["cpus_online"])) if worker is None else worker["like"]
                return {**wanted, **like(alike)}
        return wanted

    def _submit(self, session: Session, points: Sequence[PlannedCell], point: PlannedCell, starts: int = 0) -> None:
        """Submit the next cell run of a cell; earlier rounds first, each in its own order."""
        number = _next_round(session, point)
        if number is None:
            return
        if number not in self._places:
            order = session.order(points, number)
            self._places[number] = {cell.name: place for place, cell in enumerate(order)}
        known = session.state.measurements
        task = CellTask(
            plan=self.workers.plan,
            cell=point.name,
            recipe=digest(point.recipe),
            round_number=number,
            measurements={of: state for of, state in known.items() if of[0] == point.name},
            workers_on=workers_on(self._offered),
            host_name=self.workers.host_name,
        )
        key = f"natgauge-{uuid.uuid4().hex}"
        future = self.workers.client.submit(
            run_cell,
            task,
            key=key,
            pure=False,
            resources=self._wanted(session, point),
            priority=-(number * MOST_CELLS + self._places[number][point.name]),
        )
        self._runs[key] = _Run(key, point, number, future, starts)
        self._await_end(self._runs[key])

    def _await_end(self, run: _Run) -> None:
        run.future.add_done_callback(lambda _future: self._inbox.put(run.key))

    def _take_message(self, session: Session, points: Sequence[PlannedCell]) -> None:
        """Handle a progress message, or the end of a cell run; wait for it, but not for long."""
        with suppress(Empty):
            message = self._inbox.get(timeout=POLL_SECONDS)
            run = self._runs.get(message if isinstance(message, str) else message["run"])
            if run is None:
                # Of another campaign, or of a run that was cancelled.
                return
            if isinstance(message, str):
                self._end(session, points, run)
            else:
                _show(session, run, message)

    def _check_workers(self, session: Session) -> None:
        """Restart workers that have ended for good, and say so where there is none."""
        if time.monotonic() - self._checked_at < POLL_SECONDS:
            return
        self._offered = self.workers.offers()
        self._checked_at = time.monotonic()
        # A worker that is killed while it starts is given up by its nanny.
        if self._revive is not None and len(self._offered) < self._number:
            self._revive()
        if not self._offered:
            session.observer.stage(f"no worker is at {self.workers.text}; waiting for one")

    def _end(self, session: Session, points: Sequence[PlannedCell], run: _Run) -> None:
        """Append the lines of a cell run that has ended, and submit the next run of its cell."""
        try:
            ended = self.workers.result(run.future, run.worker, run.patience)
        except TimeoutError:
            # The worker died with its result, and Dask makes the run again; its end comes as that of any run. A result
            # that is only large and comes over a slow network gets more time.
            run.patience *= 2
            self._await_end(run)
            return
        except KilledWorker as error:
            # Dask counts runs that waited for a dead worker, too; only those that a worker has begun are the cell's.
            starts, worker = run.starts + (not run.worker), run.worker or error.last_worker.name
            if starts >= self._most_starts:
                cause = f"the worker died in {starts} tries, the last one was {worker}"
                session.append_line("broken", scope="cell", device=run.point.device, cell=run.point.name, cause=cause)
        else:
            starts = 0
            _append(session, ended.lines)
            if ended.error is not None:
                raise of_worker(ended.error, run.worker) from ended.error
        del self._runs[run.key]
        session.finish_all(run.point)
        self._submit(session, points, run.point, starts)
        self._drop_broken(session)

    def _drop_broken(self, session: Session) -> None:
        """Cancel runs that no worker has begun, of devices that broke in another cell."""
        for key, run in list(self._runs.items()):
            if not run.worker and not pending(session.state, run.point, run.round_number):
                run.future.release()
                del self._runs[key]


def _next_round(session: Session, point: PlannedCell) -> int | None:
    """The first round in which a cell lacks a repetition; None = nothing is left."""
    rounds = range(1, most_rounds([point]) + 1)
    return next((number for number in rounds if pending(session.state, point, number)), None)


def _show(session: Session, run: _Run, message: RunProgress) -> None:
    """Hand a progress message to the observer; the journal has the trial that is running, for `natgauge status`."""
    cell, worker, content = run.point.name, message["name"], message["content"]
    if message["kind"] == "begin":
        run.starts, run.worker = run.starts + 1, worker
        session.append_line("visit", cell=cell, round=run.round_number, worker=worker)
        session.observer.stage(f"{worker}: cell {cell}, round {run.round_number}: {session.left()}")
    elif message["kind"] == "trial":
        _append(session, [content])
    elif message["kind"] == "stage":
        session.observer.stage(f"{worker}: {content}")
    else:
        event = _event().validate_python(content)
        session.observer.event(replace(event, metric=f"{cell} {event.metric}"))


def _append(session: Session, lines: Sequence[str]) -> None:
    """Append lines with the time at which they were made; the disk has them all before anything follows from them."""
    for number, line in enumerate(lines, start=1):
        fields = json.loads(line)
        event = fields.pop("event")
        del fields["schema"]
        session.append_line(event, sync=number == len(lines) and event != "trial", **fields)


@cache
def _event() -> TypeAdapter[Event]:
    return TypeAdapter(Event)
