# SPDX-License-Identifier: Apache-2.0
"""The campaign's side: asks a Dask scheduler for its workers, and has them measure the repetitions as futures.

Every request to the scheduler has a time limit, so a scheduler that hangs ends the campaign with an error.

Dask chooses the worker of a repetition by resources and priority, and has it measured again elsewhere when the worker
dies. The coordinator appends the journal lines that a repetition returns. A repetition that did not return, because its
worker died or the session ended, has left nothing in the journal: its time is lost, and nothing counts twice.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as Ended
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import dask
from distributed import Client, Future, KilledWorker, Security

from natgauge.campaigns.cells import MOST_CELLS, CellMeasurement, PlannedCell, points
from natgauge.campaigns.journal import JournalLine, adapter_of
from natgauge.campaigns.plan import Plan
from natgauge.campaigns.run import Session, most_rounds, pending
from natgauge.errors import HostError, NatgaugeError, in_a_line
from natgauge.host.machine import as_if
from natgauge.measurements.record import with_neighbours
from natgauge.procedures.kit.phases import CONNECTION_RATE
from natgauge.procedures.kit.runner import Event
from natgauge.records.parameters import Parameters
from natgauge.spread.worker import (
    TOPIC,
    Made,
    Message,
    RepetitionTask,
    Resources,
    WorkerMachine,
    core_counts,
    is_ours,
    lacking,
    like,
    likeness,
    look,
    measure,
    named_cores,
    needs,
    satisfied,
    version_of,
    workers_on,
)
from natgauge.version import exact_version

_CONNECT_SECONDS: Final = 5.0
#: A scheduler that takes longer to answer is gone.
ANSWER_SECONDS: Final = 60.0
#: Packages that must be of one version on all sides.
_SAME_VERSION: Final = ("natgauge", "dask", "distributed", "python")

T = TypeVar("T")


@contextmanager
def connected(text: str, scheduler: str | Any, security: Security) -> Iterator[Client]:
    """A client of a scheduler."""
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False, name="natgauge", security=security)
    except (OSError, ValueError, TypeError) as error:
        raise HostError(f"workers: no Dask scheduler answers at {text} ({in_a_line(error)})") from None
    try:
        yield client
    finally:
        with suppress(OSError):
            client.close(timeout=_CONNECT_SECONDS)


class Workers:
    """The workers of natgauge at a scheduler.

    Attributes, empty until cells are planned:
        machines: facts of the workers' machines, without duplicates.
        needs: resources of each cell, by the cell's name.
        counts: numbers of cores of each cell.
    """

    def __init__(self, client: Client, text: str, *, host_name: bool) -> None:
        """Refuse workers that cannot take part."""
        self.client = client
        self.text = text
        self.host_name = host_name
        self.machines: list[Mapping[str, Any]] = []
        self.needs: dict[str, Resources] = {}
        self.counts: dict[str, dict[str, int]] = {}
        self._refuse_versions()

    def unreachable(self, error: BaseException) -> HostError:
        """The error for a scheduler that is gone."""
        return HostError(
            f"workers: the scheduler at {self.text} is gone ({type(error).__name__}); all that came home is kept: "
            "start it again, then go on with --resume"
        )

    def submit(
        self, key: str, task: RepetitionTask, wanted: Resources, priority: int, then: Callable[[Ended[Made]], None]
    ) -> Future[Made]:
        """Have a repetition measured.

        Args:
            then: is called in another thread, when the repetition's lines are here or cannot be had.
        """
        future = self.client.submit(measure, task, key=key, pure=False, resources=wanted, priority=priority)
        # A worker may die with the lines: then Dask has them made again, and this goes on waiting.
        gathered: Any = self.client.gather(future, asynchronous=True)
        loop: Any = self.client.loop
        asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop).add_done_callback(then)
        return future

    def _ask(self, request: Callable[[], Awaitable[T]]) -> T:
        """Run one of the client's coroutines in the client's loop, for `ANSWER_SECONDS` at most."""

        async def answer() -> T:
            return await request()

        try:
            response: T = self.client.sync(answer, callback_timeout=ANSWER_SECONDS)
        except OSError as error:
            raise self.unreachable(error) from error
        return response

    def _every(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's information on each worker, by address; workers of other programs are left out."""
        scheduler: Any = self.client.scheduler
        every = self._ask(lambda: scheduler.identity(n_workers=-1))["workers"]
        return {address: worker for address, worker in every.items() if is_ours(worker["resources"])}

    def offers(self) -> list[Resources]:
        """Resources of each worker that is there now."""
        return [worker["resources"] for worker in self._every().values()]

    def _refuse_versions(self) -> None:
        workers = self._every()
        if not workers:
            raise HostError(
                f"workers: none is at {self.text}; start one on each machine that is to measure: natgauge worker "
                f"{self.text}, with the certificates of the scheduler"
            )
        versions: Any = self.client.get_versions
        answers = self._ask(versions)
        here = {**answers["client"]["packages"], "natgauge": exact_version()}
        sides = {"the scheduler": {**answers["scheduler"]["packages"], "natgauge": exact_version()}}
        for address, worker in workers.items():
            packages = answers["workers"].get(address, answers["client"])["packages"]
            sides[f"worker {worker['name']}"] = {**packages, "natgauge": version_of(worker["resources"])}
        for who, packages in sides.items():
            for package in _SAME_VERSION:
                mine, its = _version(package, here), _version(package, packages)
                if mine != its:
                    raise HostError(
                        f"workers: {who} at {self.text} has {package} {its}, here is {mine}: they would not "
                        "understand each other; install the same version there, and start it again"
                    )

    def plan_cells(self, plan: Plan, where: str) -> tuple[PlannedCell, ...]:
        """Every cell of the plan, planned for the cores of all workers together; nothing is touched."""
        places = self._places()
        # Loads and times move; machines that are alike are one.
        self.machines = [*{likeness(place.facts, 0): place.facts for place in reversed(places)}.values()][::-1]
        kept = frozenset[tuple[str, str]]().union(*(place.kept for place in places))
        offered = self.offers()
        with as_if(named_cores(offered)):
            cells = points(plan, where)
            self.needs = {cell.name: needs(plan, cell, kept) for cell in cells}
        self.counts = {cell.name: core_counts(plan, cell) for cell in cells}
        for cell in cells:
            self.refuse_lacking(cell, self.needs[cell.name], offered)
        return cells

    def _places(self) -> list[WorkerMachine]:
        """Return the machine of each worker; a worker that dies meanwhile is left out."""
        workers = self._every()
        run: Any = self.client.run
        options = {"host_name": self.host_name, "workers": list(workers), "on_error": "return"}
        found = self._ask(lambda: run(look, **options))
        for address, place in found.items():
            if isinstance(place, HostError):
                raise HostError(f"workers: {workers[address]['name']} at {self.text} cannot measure: {place}")
            if isinstance(place, Exception) and not isinstance(place, OSError):
                raise place
        if places := [place for place in found.values() if isinstance(place, WorkerMachine)]:
            return places
        raise HostError(f"workers: all at {self.text} died while they were looked at; start them, and try again")

    def refuse_lacking(self, cell: PlannedCell, wanted: Resources, offered: list[Resources]) -> None:
        """Refuse a cell for which no worker offers enough."""
        if lacks := self.lacking(cell, wanted, offered):
            raise HostError(f"workers: {lacks}")

    def lacking(self, cell: PlannedCell, wanted: Resources, offered: list[Resources]) -> str:
        """Return what a cell needs and none of the workers has, at least one; empty = one of them has all of it."""
        if any(satisfied(wanted, worker_offer) for worker_offer in offered):
            return ""
        return (
            f"cell {cell.name}: {lacking(wanted, offered)} (at {self.text}); start one that has, "
            "see: natgauge worker --help"
        )


def _version(package: str, packages: Mapping[str, Any]) -> str:
    """Return a package's version; for Python only two numbers, which decide whether the other side can unpickle."""
    version = str(packages.get(package))
    return ".".join(version.split(".")[:2]) if package == "python" else version


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
            raise type(error)(f"worker {run.worker}: {error}") from error
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
