# SPDX-License-Identifier: Apache-2.0
"""What runs on a worker: it looks at a plan, and visits cells; every line of the journal goes home as it is made.

A visit asks home first how the cell stands, so one that the scheduler has done again after a worker died begins with
all that came home, and home knows which of two it listens to.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from distributed import Queue, WorkerPlugin, get_client, get_worker
from distributed import Worker as DaskWorker

from natgauge.bench.bench import check_host
from natgauge.bench.question import Cell
from natgauge.bench.watch import Silent, Watch
from natgauge.campaigns.bench_protocol import CampaignBench, LabBench, MakeBench
from natgauge.campaigns.cell_run import CellRun
from natgauge.campaigns.cells import PlannedCell, PlannedOrFaults, each
from natgauge.campaigns.journal import line_of
from natgauge.campaigns.plan import Plan
from natgauge.campaigns.spread.resources import Offer, Resources, likeness, needs
from natgauge.campaigns.state import CampaignState, MeasurementState
from natgauge.duts.recipe import digest
from natgauge.errors import HostError, UsageError
from natgauge.host import machine
from natgauge.procedures.kit.events import Event

#: Home is gone when it takes nothing for so long, and is seen to have ended after so short a time.
PATIENCE_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 2.0
#: The scheduler's own word comes no later than so many seconds after that, or it is lost and asked for again.
_WORD_SECONDS: Final = 10.0
_PLUGIN: Final = "natgauge"

#: Kind, cell, number of the attempt, number of the message, and what it says.
Message = tuple[str, str, str, int, Any]


class OwnCores(WorkerPlugin):
    """Makes a worker of Dask's one of natgauge's: on its own cores, with its own labs."""

    name = _PLUGIN

    def __init__(self, offer: Offer, make_bench: MakeBench | None = None) -> None:
        """Take what it resources.

        Args:
            offer: as its scheduler was told.
            make_bench: makes benches; None = those in labs.
        """
        self.offer = offer
        self.busy = False
        self._stands = make_bench

    def setup(self, worker: DaskWorker) -> None:
        """Keep to its cores: threads and programs that are started from now on inherit them."""
        del worker
        # Ctrl-C reaches all processes of a terminal; whoever started this one decides what becomes of it.
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        for thread in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), self.offer.cores)

    def stand(self, cell: Cell, watch: Watch) -> CampaignBench:
        """A bench for a cell, in a lab of its own."""
        if self._stands is not None:
            return self._stands(cell, watch)
        return LabBench(machine.facts, self.offer.lab_of(cell), watch)

    def check(self) -> None:
        """See that this host can measure.

        Raises:
            HostError: it cannot.
        """
        if self._stands is None:
            check_host()


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerView:
    """What a worker says of a plan.

    Attributes:
        name: of the worker.
        facts: of its machine.
        tried: each cell, or why it cannot be measured there.
        needs: by name of cell.
        wrong: why nothing can be measured there; empty = something can.
    """

    name: str
    facts: Mapping[str, Any]
    tried: Sequence[PlannedOrFaults]
    needs: Mapping[str, Resources]
    wrong: str = ""


def look(plan: Plan, where: str, *, host_name: bool, dask_worker: DaskWorker) -> WorkerView:
    """Plan every cell on the cores of this worker; nothing is touched.

    Raises:
        PlanError: there are too many cells.
    """
    worker = _worker(dask_worker)
    facts = machine.facts(host_name=host_name)
    try:
        worker.check()
    except HostError as error:
        return WorkerView(name=worker.offer.name, facts=facts, tried=(), needs={}, wrong=str(error))
    tried = tuple(each(plan, where))
    found = {name: needs(plan, one) for name, one in tried if isinstance(one, PlannedCell)}
    return WorkerView(name=worker.offer.name, facts=facts, tried=tried, needs=found)


def is_busy(*, dask_worker: DaskWorker) -> bool:
    """Whether this worker visits a cell."""
    return _worker(dask_worker).busy


def _worker(worker: Any) -> OwnCores:
    found = worker.plugins[_PLUGIN]
    assert isinstance(found, OwnCores)  # noqa: S101 - nobody else has this name
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A visit that home wants.

    Attributes:
        plan: the cell's, with the seed.
        cell: its name.
        recipe: SHA-256 of the recipe as home knows it.
        round_number: from 1.
        queue: name of the one that home listens to.
        host_name: whether the host's name is told.
    """

    plan: Plan
    cell: str
    recipe: str
    round_number: int
    queue: str
    host_name: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCall:
    """How a cell stands, as home answers a visit that begins.

    Attributes:
        courses: of its measurements, by cell and measurement.
        broken: why its device cannot be measured; empty = it can.
        beside: so many other workers are on the same machine.
    """

    measurements: dict[tuple[str, str], MeasurementState]
    broken: str
    beside: int


def visit(task: Task) -> None:
    """Visit a cell.

    Raises:
        HostError: this host cannot do it, or home is gone.
        UsageError: the cell cannot be measured here, or its recipe is another one here.
        NatgaugeError: a lab cannot be made.
    """
    worker = _worker(get_worker())
    worker.busy = True
    try:
        _visit(task, worker)
    finally:
        worker.busy = False


def _visit(task: Task, worker: OwnCores) -> None:
    home = _Home(task)
    answer = home.begin(worker.offer)
    if answer is None:
        return
    worker.check()
    facts = machine.facts(host_name=task.host_name)
    offer = worker.offer
    point = _point(task)
    state = CampaignState(measurements=answer.measurements)
    if answer.broken:
        state.broken_devices[point.device] = answer.broken

    def note(event: str, *, sync: bool = True, **fields: object) -> None:
        del sync
        line = line_of(event, fields)
        state.take(json.loads(line))
        home.send("line", line)

    CellRun(
        point=point,
        round_number=task.round_number,
        state=state,
        note=note,
        make_bench=worker.stand,
        facts=facts,
        watch=_Shown(home),
        worker={
            "name": offer.name,
            "cores": list(offer.cores),
            "like": likeness(facts, len(offer.cores)),
            "beside": answer.beside,
        },
    ).run()
    home.send("end", "")


def _point(task: Task) -> PlannedCell:
    """The cell, planned on the cores of this worker.

    Raises:
        UsageError: it cannot be measured here, or its recipe is another one here.
    """
    ((_, found),) = each(task.plan, only=task.cell)
    if not isinstance(found, PlannedCell):
        raise UsageError(found[0])
    if digest(found.recipe) != task.recipe:
        raise UsageError(f"the recipe {found.device} is another one than where the campaign was begun; copy that one")
    return found


class _Home:
    """The way home. Each message is taken by the scheduler before the next one is made, and home takes them in turn.

    Attributes:
        attempt: unlike all others.
        sent: messages so far.
    """

    def __init__(self, task: Task) -> None:
        self.attempt = uuid.uuid4().hex
        self.sent = 0
        self._task = task
        self._client = get_client()
        self._queue = Queue(task.queue, client=self._client, maxsize=1)
        # It is home's: with home's own hold on it the scheduler forgets it, and whoever puts something in is told so.
        self._queue.close()

    def begin(self, offer: Offer) -> RecordedCall | None:
        """Ask how the cell stands; None = nobody wants this visit any more."""
        reply = Queue(f"{self._task.queue}-{self.attempt}", client=self._client)
        try:
            self._put("begin", 0, offer.name)
            said = reply.get(timeout=PATIENCE_SECONDS, callback_timeout=PATIENCE_SECONDS + _WORD_SECONDS)
        except TimeoutError:
            raise _gone() from None
        finally:
            reply.close()
        found = pickle.loads(said) if said else None  # noqa: S301 - who may talk to the scheduler may run anything here
        assert found is None or isinstance(found, RecordedCall)  # noqa: S101 - home sends nothing else
        return found

    def send(self, kind: str, content: str | bytes) -> None:
        """One more message.

        Raises:
            HostError: home is gone.
        """
        self.sent += 1
        self._put(kind, self.sent, content)

    def _put(self, kind: str, number: int, content: str | bytes) -> None:
        message: Message = (kind, self._task.cell, self.attempt, number, content)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            try:
                self._queue.put(message, timeout=_ASK_SECONDS, callback_timeout=_ASK_SECONDS + _WORD_SECONDS)
            except TimeoutError:
                continue
            except KeyError:
                break
            return
        raise _gone()


def _gone() -> HostError:
    return HostError("whoever wanted this visit is gone; it is given up")


class _Shown(Silent):
    """A `Watch` whose watcher is at home; where the present trial is would be too much to tell."""

    def __init__(self, home: _Home) -> None:
        self._home = home

    def stage(self, text: str) -> None:
        """Told at home."""
        self._home.send("stage", text)

    def event(self, event: Event) -> None:
        """What came of a trial is told at home."""
        if event.outcome is not None:
            self._home.send("event", pickle.dumps(event))
