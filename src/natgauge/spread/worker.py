# SPDX-License-Identifier: Apache-2.0
"""Functions that Dask runs on a worker: look at its machine, and measure one repetition of a cell.

The task of a repetition returns its lines. While it runs, the worker logs its progress as Dask events.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypedDict

from distributed import Reschedule, Status, WorkerPlugin, get_worker
from distributed import Worker as DaskWorker

from natgauge.campaigns.cell_run import CellRun, slim
from natgauge.campaigns.cells import PlannedCell
from natgauge.campaigns.evidence import EvidenceLines
from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.state import CampaignState, MeasurementState
from natgauge.errors import UsageError
from natgauge.gateways.recipe import digest, load
from natgauge.host import machine
from natgauge.host.settings import waits_told
from natgauge.inputs.question import Cell
from natgauge.measurements.prepared import LabBench, MakeBench, MeasuringBench
from natgauge.procedures.kit.events import Event
from natgauge.records.store import plain
from natgauge.setup.setup import check_host
from natgauge.spread.resources import Offer, likeness, machine_digest
from natgauge.trial.protocols import Observer, Silent

#: Dask topic of all progress messages. One for all campaigns: a scheduler keeps 1,000 messages of each topic for ever.
TOPIC: Final = "natgauge"
_PLUGIN: Final = "natgauge"


class Message(TypedDict):
    """A message from a repetition that is under way.

    `content` is the digest of the worker's machine for `begin`, a journal line for `trial`, a sentence for `stage`, and
    a plain `Event` for `event`. `run` is the key of the task, `name` the worker's.
    """

    run: str
    name: str
    kind: Literal["begin", "trial", "stage", "event"]
    content: Any


class NatgaugeWorker(WorkerPlugin):
    """Makes a Dask worker one of natgauge's: on its own cores, with its own labs."""

    name = _PLUGIN

    def __init__(self, offer: Offer, make_bench: MakeBench | None = None) -> None:
        """Store the offer."""
        self.offer = offer
        self._make_bench = make_bench

    def setup(self, worker: DaskWorker) -> None:
        """Bind the process to its cores: threads and programs that it starts later inherit them."""
        del worker
        # Ctrl-C reaches all processes of a terminal. The process that started this one decides what becomes of it.
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        for thread in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), self.offer.cores)

    def bench(self, cell: Cell, observer: Observer) -> MeasuringBench:
        """Make a bench for a cell, in a lab that only this worker uses."""
        if self._make_bench is not None:
            return self._make_bench(cell, observer)
        return LabBench(self.offer.lab_of(cell), observer)

    def check(self) -> None:
        """Refuse a host that cannot measure."""
        if self._make_bench is None:
            check_host()


def _plugin(worker: DaskWorker) -> NatgaugeWorker:
    plugin = worker.plugins[_PLUGIN]
    assert isinstance(plugin, NatgaugeWorker)  # noqa: S101 - no other plugin has this name
    return plugin


class WorkerMachine(NamedTuple):
    """The machine of a worker: its facts, and the worker's labs that are kept up there."""

    facts: Mapping[str, Any]
    kept: frozenset[tuple[str, str]]


def look(*, host_name: bool, dask_worker: DaskWorker) -> WorkerMachine:
    """Look at this worker's machine, which must be able to measure."""
    plugin = _plugin(dask_worker)
    plugin.check()
    return WorkerMachine(machine.facts(host_name=host_name), plugin.offer.kept_labs())


@dataclass(frozen=True, kw_only=True, slots=True)
class RepetitionTask:
    """A repetition for a worker; `counts`: the plan's numbers of cores, for which the worker takes its own."""

    point: PlannedCell
    measurement: str
    counts: Mapping[str, int]
    round_number: int
    known: dict[tuple[str, str], MeasurementState]
    workers_on: Mapping[str, int]
    host_name: bool


class Made(NamedTuple):
    """Lines of a repetition: those of the journal, and those of the files with its evidence."""

    lines: list[JournalLine]
    evidence: EvidenceLines


def measure(task: RepetitionTask) -> Made:
    """Measure a repetition in a lab of its own. Lines about trials that begin are sent as progress only."""
    run = _Run(get_worker())
    run.send("begin", machine_digest())
    plugin, offer = run.plugin, run.plugin.offer
    plugin.check()
    point = replace(task.point, cell=offer.on_own_cores(task.point.cell, task.counts))
    if digest(load(point.cell.gateway).carrying(point.cell.traffic.transport)) != digest(point.recipe):
        raise UsageError(f"the recipe {point.device} is another one than where the campaign was begun; copy that one")
    facts = machine.facts(host_name=task.host_name)
    state, lines, evidence = CampaignState(measurements=task.known), list[JournalLine](), list[EvidenceLines]()

    def append(event: str, *, sync: bool = True, **fields: Any) -> None:
        del sync
        run.check_wanted()
        entry, recorded = state.line_of(event, fields)
        evidence.append(recorded)
        state.take(entry)
        if event == "trial":
            run.send("trial", entry)
        else:
            lines.append(entry)

    cell_run = CellRun(
        point=point,
        round_number=task.round_number,
        state=state,
        append_line=append,
        make_bench=plugin.bench,
        facts=facts,
        observer=run,
        worker={
            "name": offer.name,
            "cores": list(offer.cores),
            "like": likeness(facts, len(offer.cores)),
            "beside": max(task.workers_on.get(machine_digest(), 1) - 1, 0),
        },
        only=task.measurement,
    )
    with waits_told(run.stage, run.check_wanted):
        cell_run.run()
    trials, rounds = (each.trials for each in evidence), (each.rounds for each in evidence)
    return Made(lines, EvidenceLines(b"".join(trials), b"".join(rounds)))


class _Run(Silent):
    """The Dask task that the present thread runs, and its `Observer`: progress inside of a trial is not sent."""

    def __init__(self, worker: DaskWorker) -> None:
        self.plugin = _plugin(worker)
        self._worker = worker
        self._key = worker.get_current_task()

    def send(self, kind: Literal["begin", "trial", "stage", "event"], content: object) -> None:
        """Log a progress message. Dask drops it where the scheduler is gone."""
        message = Message(run=str(self._key), name=self.plugin.offer.name, kind=kind, content=content)
        self._worker.log_event(TOPIC, message)

    def stage(self, text: str) -> None:
        self.send("stage", text)

    def event(self, event: Event) -> None:
        """Send an ended trial, without its delays: these may be 100,000 numbers, and nobody shows them."""
        if event.outcome is not None:
            self.send("event", plain(replace(event, outcome=slim(event.outcome))))

    def check_wanted(self) -> None:
        """End a run whose result would be dropped, so that its lab is undone.

        Dask cannot interrupt a thread. It cancels the task when the campaign has released it or has ended, and closes
        the worker when the worker or its scheduler is to end.
        """
        task = self._worker.state.tasks.get(self._key)
        if self._worker.status != Status.running or task is None or task.state != "executing":
            raise Reschedule
