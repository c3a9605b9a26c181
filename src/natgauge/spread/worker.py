# SPDX-License-Identifier: Apache-2.0
"""A worker: what it offers as Dask's resources, and the tasks that Dask runs on it.

Resources in Dask's sense are names with amounts: what a worker offers, and what a cell needs. A worker runs one cell at
a time and has its cores to itself: two workers of one machine never share a core, nor use siblings. Only one worker of
a machine offers what the machine has once, such as the kernel's hash table of connections; so two cells that would
disturb each other there never run at the same time.

The task of a repetition returns its lines. While it runs, the worker logs its progress as Dask events.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypedDict

from distributed import Reschedule, Status, WorkerPlugin, get_worker
from distributed import Worker as DaskWorker

from natgauge.campaigns.cells import PlannedCell
from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.plan import CORE_KEYS, Plan
from natgauge.campaigns.run import CellRun, slim
from natgauge.campaigns.state import CampaignState, EvidenceLines, MeasurementState
from natgauge.errors import UsageError
from natgauge.gateways.recipe import digest, load
from natgauge.host import machine
from natgauge.host.machine import usable_cpus
from natgauge.host.settings import waits_told
from natgauge.inputs.measuring_types import cores_in, format_cores, parse_cores
from natgauge.inputs.question import Cell, LabOptions
from natgauge.labs import kinds
from natgauge.labs.common.locks import Lock, check_name
from natgauge.labs.common.register import kept_settings
from natgauge.measurements.measure import LabBench, MakeBench, MeasuringBench
from natgauge.measurements.record import moving_facts
from natgauge.procedures.kit.runner import Event
from natgauge.records.store import plain
from natgauge.setup.setup import check_host
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Observer, Silent
from natgauge.version import exact_version
from natgauge.words import TESTER

#: Offered by one worker of each machine: settings of the whole machine, ports of a wire, labs that are kept up.
MACHINE_WIDE: Final = "what its machine has once"
CORES: Final = "cores"
_WORKERS: Final = "natgauge "
_LAB, _CORE, _LIKE, _MACHINE = "lab ", "core ", "like ", "machine "
_DIGEST_DIGITS: Final = 12
_LONGEST_NAME: Final = 32

Resources = dict[str, float]


def of_worker() -> str:
    """Return what each worker of this version offers once: so it runs one task at a time."""
    return f"{_WORKERS}{exact_version()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The properties of one worker; `machine_wide`: it is the one that may use what its machine has once."""

    name: str
    cores: tuple[int, ...]
    labs: tuple[str, ...]
    machine_wide: bool

    def resources(self, facts: Mapping[str, Any]) -> Resources:
        """Return the resources for Dask; `facts` are facts of the machine."""
        resources = {of_worker(): 1.0, CORES: float(len(self.cores)), _MACHINE + machine_digest(): 1.0}
        resources |= {f"{_CORE}{core}": 1.0 for core in self.cores}
        resources |= {f"{_LAB}{lab}": 1.0 for lab in self.labs}
        resources[_LIKE + likeness(facts, len(self.cores))] = 1.0
        if self.machine_wide:
            resources[MACHINE_WIDE] = 1.0
        return resources

    def lab_of(self, cell: Cell) -> Cell:
        """The cell in a lab that only this worker uses: another worker of the machine may have a lab of the same name.

        Ports of a wire, and labs kept by `natgauge lab up`, exist once and keep their names.
        """
        options: LabOptions = cell.lab
        if not Bench(cell).lab.virtual or kept_settings(options.lab_name, options.lab) is not None:
            return cell
        return replace(cell, lab=replace(options, lab_name=self.lab_name(options.lab_name)))

    def on_own_cores(self, cell: Cell, counts: Mapping[str, int]) -> Cell:
        """The cell with the last of these cores where its plan has a number of them."""
        options: Any = cell.kind_options
        cores = {name: self.cores[-number:] for name, number in counts.items() if hasattr(options, name)}
        return replace(cell, kind_options=replace(options, **cores)) if cores else cell

    def kept_labs(self) -> frozenset[tuple[str, str]]:
        """Name and kind of each of its labs that `natgauge lab up` keeps here."""
        return frozenset((lab, kind) for lab in self.labs for kind in kinds.kinds() if kept_settings(lab, kind))

    def lab_name(self, name: str) -> str:
        """The name of a lab that this worker makes for a plan's `lab_name`."""
        own = f"-c{self.cores[0]}"
        return name[: _LONGEST_NAME - len(own)].rstrip("-") + own


def likeness(facts: Mapping[str, Any], cores: int) -> str:
    """A digest that is equal for two workers if one result may have repetitions of both."""
    text = json.dumps([moving_facts(facts), cores], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def like(likeness_of: str) -> Resources:
    """The resource of workers of this likeness."""
    return {_LIKE + likeness_of: 1.0}


def machine_digest() -> str:
    """A digest that is unique to this machine and reveals nothing about it."""
    text = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    return hashlib.sha256(text).hexdigest()[:_DIGEST_DIGITS]


def core_counts(plan: Plan, point: PlannedCell) -> dict[str, int]:
    """Return the numbers of cores of a cell; where its plan names cores, there is none."""
    choices = {**plan.lab, **point.values}
    return {name: choices[name] for name in CORE_KEYS if type(choices.get(name)) is int}


def needs(plan: Plan, point: PlannedCell, kept: Collection[tuple[str, str]] = ()) -> Resources:
    """Return the resources that a cell needs; `kept`: name and kind of labs that a worker's machine keeps up."""
    lab = Bench(point.cell).lab
    choices = {**plan.lab, **point.values}
    places = ("cores", "sender_cores", "server_cores")
    lists = {name: cores_in(getattr(point.cell.kind_options, name, None)) for name in places}
    if getattr(point.cell.kind_options, "cores_each", None) is not None:
        lists["cores"] = lab.device_cpus
    least = len({core for cores in lists.values() for core in cores})
    # A set of cores that the plan leaves open takes one core.
    if lab.placement == "isolated":
        least += sum(not lists[name] for name in places[:2])
    elif not any(lists[name] for name in places[:2]):
        least += 1
    asked = any(measurement.planned.settings.far_side != TESTER for measurement in point.measurements)
    # A device that cannot do without a server shares its cores with it where no others are left.
    if asked and not lists["server_cores"] and not point.recipe.asks_server:
        least += 1
    needed: Resources = {of_worker(): 1.0, CORES: float(least), f"{_LAB}{point.cell.lab.lab_name}": 1.0}
    for name, cores in lists.items():
        if isinstance(choices.get(name), str):
            needed |= {f"{_CORE}{core}": 1.0 for core in cores}
    recipes = point.recipe.of_devices(len(lab.devices))
    knobs = [knob for recipe in recipes for knob in recipe.knobs.named().values()]
    global_knobs = any(knob is not None and knob.scope == "machine" for knob in knobs)
    is_kept = (point.cell.lab.lab_name, point.cell.lab.lab) in kept
    if global_knobs or lab.changes_machine or not lab.virtual or is_kept:
        needed[MACHINE_WIDE] = 1.0
    return needed


def satisfied(wanted: Mapping[str, float], offered: Mapping[str, float]) -> bool:
    """Whether one worker offers the wanted resources."""
    return all(offered.get(name, 0.0) >= amount for name, amount in wanted.items())


def _named(kind: str, every: Sequence[Mapping[str, float]]) -> Counter[str]:
    """Return what workers offer of a kind of resource, with the number of workers that do."""
    return Counter(name.removeprefix(kind) for offered in every for name in offered if name.startswith(kind))


def named_cores(every: Sequence[Mapping[str, float]]) -> tuple[int, ...]:
    """Every core that a worker offers, ascending."""
    return tuple(sorted(map(int, _named(_CORE, every))))


def is_ours(offered: Mapping[str, float]) -> bool:
    """Whether a Dask worker belongs to natgauge, in any version."""
    return any(name.startswith(_WORKERS) for name in offered)


def version_of(offered: Mapping[str, float]) -> str:
    """Version of a worker's natgauge."""
    return next(name.removeprefix(_WORKERS) for name in offered if name.startswith(_WORKERS))


def workers_on(every: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """Number of workers on each machine, by `machine_digest`."""
    return _named(_MACHINE, every)


def lacking(wanted: Mapping[str, float], every: Sequence[Mapping[str, float]]) -> str:
    """The first resource of a cell that no worker offers, in words, with what they offer instead."""
    for name, amount in wanted.items():
        if any(offered.get(name, 0.0) >= amount for offered in every):
            continue
        if name.startswith(_LAB):
            labs = ", ".join(sorted(_named(_LAB, every)))
            return f'no worker has lab "{name.removeprefix(_LAB)}", they have {labs}'
        if name == CORES:
            most = max(offered.get(CORES, 0.0) for offered in every)
            return f"it needs {amount:.0f} cores, no worker has more than {most:.0f}"
        if name.startswith(_LIKE):
            return "no worker is like the machine that measured its first repetitions"
        return f"no worker has {name}"
    return f"no worker has all it needs at once: {', '.join(wanted)}"


def core_groups() -> list[tuple[int, ...]]:
    """Return the usable cores in groups that share one physical core each, ascending."""
    usable = usable_cpus()
    return sorted({tuple(cpu for cpu in _siblings(cpu) if cpu in usable) for cpu in usable})


def _siblings(cpu: int) -> tuple[int, ...]:
    """Return the cores of the same physical core; only `cpu` where the kernel does not report them."""
    try:
        return parse_cores(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text())
    except (OSError, UsageError):
        return (cpu,)


@contextmanager
def reserved(name: str, cores: Sequence[int], labs: Sequence[str]) -> Iterator[Offer]:
    """Reserve cores of this machine for a worker until the block ends."""
    for lab in labs:
        check_name(lab)
    with ExitStack() as held:
        for group in core_groups():
            if set(group) & set(cores):
                # The lock cannot be that of a lab, because no lab's name has a dot.
                lock = Lock(f"core.{group[0]}", f"core {format_cores(group)}")
                lock.take()
                held.callback(lock.release)
        machine_lock = Lock("core.machine", MACHINE_WIDE)
        machine_wide = machine_lock.take_soon()
        if machine_wide:
            held.callback(machine_lock.release)
        yield Offer(name=name, cores=tuple(cores), labs=tuple(labs), machine_wide=machine_wide)


def shares(workers: int) -> list[tuple[int, ...]]:
    """Divide the cores of this machine evenly among `workers` workers; the first cores are left over."""
    groups = core_groups()
    each = len(groups) // workers
    if each == 0:
        raise UsageError(
            f"workers: local:{workers} needs {workers} cores, one for each worker; this machine has {len(groups)}: "
            f"write local:{len(groups)}"
        )
    mine = groups[len(groups) - each * workers :]
    return [
        tuple(sorted(core for group in mine[each * number : each * (number + 1)] for core in group))
        for number in range(workers)
    ]


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
