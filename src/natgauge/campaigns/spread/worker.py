# SPDX-License-Identifier: Apache-2.0
"""Functions that Dask runs on a worker: plan the cells there, and measure one cell.

The task of a cell run returns its journal lines, also where an error ends it early. While it runs, the worker logs its
progress as Dask events.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypedDict

from distributed import Reschedule, Status, WorkerPlugin, get_worker
from distributed import Worker as DaskWorker

from natgauge.campaigns.bench_protocol import CampaignBench, LabBench, MakeBench
from natgauge.campaigns.cell_run import CellRun
from natgauge.campaigns.cells import PlannedCell, PlannedOrFaults, each
from natgauge.campaigns.journal import entry_of, text_of
from natgauge.campaigns.plan import Plan
from natgauge.campaigns.spread.resources import Offer, Resources, likeness, machine_digest, needs
from natgauge.campaigns.state import CampaignState, MeasurementState
from natgauge.errors import NatgaugeError, UsageError
from natgauge.gateways.recipe import digest
from natgauge.host import machine
from natgauge.inputs.question import Cell
from natgauge.procedures.kit.events import Event
from natgauge.records.store import plain
from natgauge.trial.bench import check_host
from natgauge.trial.observer import Observer, Silent

#: Dask topic of all progress messages. One for all campaigns: a scheduler keeps 1,000 messages of each topic for ever.
TOPIC: Final = "natgauge"
_PLUGIN: Final = "natgauge"


class RunProgress(TypedDict):
    """A message from a cell run that is under way.

    `content` is empty for `begin`, a journal line for `trial`, a sentence for `stage`, and a plain `Event` for `event`.
    `name` is the worker's; Dask adds the worker's address to each message, as `worker`.
    """

    run: str
    name: str
    kind: Literal["begin", "trial", "stage", "event"]
    content: Any


class NatgaugeWorker(WorkerPlugin):
    """Makes a Dask worker one of natgauge's: on its own cores, with its own labs."""

    name = _PLUGIN

    def __init__(self, offer: Offer, make_bench: MakeBench | None = None) -> None:
        """Store the offer.

        Args:
            make_bench: makes benches; None = benches in labs.
        """
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

    def bench(self, cell: Cell, observer: Observer) -> CampaignBench:
        """Make a bench for a cell, in a lab that only this worker uses."""
        if self._make_bench is not None:
            return self._make_bench(cell, observer)
        return LabBench(machine.facts, self.offer.lab_of(cell), observer)

    def check(self) -> None:
        """Refuse a host that cannot measure."""
        if self._make_bench is None:
            check_host()


def _plugin(worker: DaskWorker) -> NatgaugeWorker:
    plugin = worker.plugins[_PLUGIN]
    assert isinstance(plugin, NatgaugeWorker)  # noqa: S101 - no other plugin has this name
    return plugin


class PlanView(NamedTuple):
    """A plan as one worker sees it: facts of its machine, each cell or its faults, and the needs of each cell."""

    facts: Mapping[str, Any]
    tried: Sequence[PlannedOrFaults]
    needs: Mapping[str, Resources]


def view_plan(plan: Plan, where: str, *, host_name: bool, dask_worker: DaskWorker) -> PlanView:
    """Plan every cell on the cores of this worker; nothing is touched."""
    _plugin(dask_worker).check()
    tried = tuple(each(plan, where))
    cell_needs = {name: needs(plan, cell) for name, cell in tried if isinstance(cell, PlannedCell)}
    return PlanView(machine.facts(host_name=host_name), tried, cell_needs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CellTask:
    """A cell run for a worker.

    Attributes:
        recipe: SHA-256 of the recipe that the campaign began with.
        round_number: from 1.
    """

    plan: Plan
    cell: str
    recipe: str
    round_number: int
    measurements: dict[tuple[str, str], MeasurementState]
    workers_on: Mapping[str, int]
    host_name: bool


class EndedRun(NamedTuple):
    """A cell run that has ended.

    Attributes:
        lines: lines of the journal, in order; after an error those up to the last whole repetition.
        error: that ended the run early: this host cannot measure, or a lab cannot be made; None = it ended by itself.
    """

    lines: list[str]
    error: NatgaugeError | None = None


def _whole(lines: Sequence[str]) -> list[str]:
    """The lines without those of a last repetition that has not ended."""
    events = [json.loads(line)["event"] for line in lines]
    begun = max((at for at, event in enumerate(events) if event == "repetition"), default=len(events))
    cut = begun if "repetition-ended" not in events[begun:] and "broken" not in events[begun:] else len(events)
    return list(lines[:cut])


def run_cell(task: CellTask) -> EndedRun:
    """Measure a cell once.

    Returns:
        The journal lines of the repetitions. Lines about trials that begin are sent as progress only.
    """
    run = _Run(get_worker())
    run.send("begin", "")
    plugin, offer = run.plugin, run.plugin.offer
    plugin.check()
    ((_, point),) = each(task.plan, only=task.cell)
    if not isinstance(point, PlannedCell):
        raise UsageError(point[0])
    if digest(point.recipe) != task.recipe:
        raise UsageError(f"the recipe {point.device} is another one than where the campaign was begun; copy that one")
    facts = machine.facts(host_name=task.host_name)
    state, lines = CampaignState(measurements=task.measurements), list[str]()

    def append(event: str, *, sync: bool = True, **fields: object) -> None:
        del sync
        run.check_wanted()
        entry = entry_of(event, fields)
        line = text_of(entry)
        state.take(entry)
        if event == "trial":
            run.send("trial", line)
        else:
            lines.append(line)

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
    )
    try:
        cell_run.run()
    except NatgaugeError as error:
        # A result that Dask has from a task that raised is its error alone.
        return EndedRun(_whole(lines), error)
    return EndedRun(lines)


class _Run(Silent):
    """The Dask task that the present thread runs, and its `Observer`: progress inside of a trial is not sent."""

    def __init__(self, worker: DaskWorker) -> None:
        self.plugin = _plugin(worker)
        self._worker = worker
        self._key = worker.get_current_task()

    def send(self, kind: Literal["begin", "trial", "stage", "event"], content: object) -> None:
        """Log a progress message. Dask drops it where the scheduler is gone."""
        message = RunProgress(run=str(self._key), name=self.plugin.offer.name, kind=kind, content=content)
        self._worker.log_event(TOPIC, message)

    def stage(self, text: str) -> None:
        """Send the text."""
        self.send("stage", text)

    def event(self, event: Event) -> None:
        """Send an ended trial, without its delays: these may be 100,000 numbers, and nobody shows them."""
        if event.outcome is not None:
            self.send("event", plain(replace(event, outcome=replace(event.outcome, delays={}))))

    def check_wanted(self) -> None:
        """End a run whose result would be dropped, so that its lab is undone.

        Dask cannot interrupt a thread. It cancels the task when the campaign has released it or has ended, and closes
        the worker when the worker or its scheduler is to end.
        """
        task = self._worker.state.tasks.get(self._key)
        if self._worker.status != Status.running or task is None or task.state != "executing":
            raise Reschedule
