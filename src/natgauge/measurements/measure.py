# SPDX-License-Identifier: Apache-2.0
"""One measurement: one metric of one gateway on a bench of its own, and its result in a folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack

from natgauge.ethernet import SEGMENT_OCTETS
from natgauge.host import machine
from natgauge.host.settings import reliance_kept
from natgauge.inputs.question import Cell, Question
from natgauge.labs.common import locks
from natgauge.measurements.record import (
    RECEIVER_SECONDS,
    SERVER_ALONE,
    Conditions,
    chain_of,
    keep,
    of_repetitions,
    record,
    write_conditions,
)
from natgauge.measurer import Measurer
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.store import RESULTS, Store
from natgauge.setup.setup import check_host, place_parameters
from natgauge.trial.bench import Bench, FreshLabs, Ready, in_repetition
from natgauge.trial.controls import Observer
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned, frames_of_profile, refuse_unlike_metric
from natgauge.trial.question import ask, command
from natgauge.trial.rounds import receiver_seconds
from natgauge.trial.server import rate_alone

if TYPE_CHECKING:
    from natgauge.keywords import MeasureKeywords


@dataclass(frozen=True, slots=True)
class Prepared:
    """A measurement that is ready to run.

    Attributes:
        device: version and settings of the device; None = natgauge does not start the device.
        own_part: measures the tester's own part after the trials of a repetition: `RECEIVER_SECONDS` and
            `SERVER_ALONE`, as far as they apply, can be measured, and are not among the names that it is given.
    """

    measurer: Measurer
    parameters: Parameters
    device: Mapping[str, Any] | None
    own_part: Callable[[Collection[str]], Mapping[str, float]]
    planned: Planned


class MeasuringBench(Protocol):
    """The bench of one cell: a lab, or a simulated gateway of tests. The device is up within the `with` block."""

    def plan(self, metric: str, choices: Mapping[str, object]) -> Planned:
        """Plan a procedure for this bench; nothing is touched."""

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """Start the device, or set it for this procedure, and check that it forwards; errors as of `Bench.ready`."""

    def __enter__(self) -> Self:
        """Create the lab and enter it."""

    def __exit__(self, *exception: object) -> None:
        """Leave the lab and undo it."""


#: Makes the bench of a cell; the observer shows its progress.
MakeBench = Callable[[Cell, Observer], MeasuringBench]


class LabBench(Bench):
    """The bench of a cell in a lab of this machine; see `MeasuringBench`."""

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """Make a procedure ready, with its conditions."""
        return self.prepared(self.ready(planned, recorder))

    def prepared(self, ready: Ready) -> Prepared:
        """Add the conditions of its figures to a procedure that is ready on this bench."""
        return Prepared(
            measurer=ready.measurer,
            parameters=parameters_of(self, ready, machine.facts()),
            device=None if self.device is None else self.device.as_dict(),
            own_part=partial(_own_part, self, ready),
            planned=ready.planned,
        )


def parameters_of(bench: Bench, ready: Ready, facts: Mapping[str, object]) -> Parameters:
    """Return all parameters that decide the figures."""
    lab, addresses, query = bench.lab, bench.address_plan, ready.planned.settings.query
    cell = replace(bench.cell, lab=replace(bench.cell.lab, seed=bench.seed))
    question = Question(metric=ready.planned.procedure.metric, cell=cell, settings=ready.planned.chosen)
    return record(
        Conditions(
            settings=ready.planned.settings,
            recipe=bench.recipe,
            traffic=bench.traffic,
            frame_octets=bench.on_sides(partial(bench.octets_on, query=query)),
            segment_octets=(
                bench.on_sides(partial(addresses.octets, SEGMENT_OCTETS)) if bench.traffic.transport == "tcp" else None
            ),
            lab_kind=bench.cell.lab.lab,
            lab=lab.name,
            chosen={
                "command": command(question),
                **place_parameters(lab),
                **chain_of(lab),
                **_server(ready),
                **({} if lab.devices else bench.cell.device.named()),
                **({"lab_stays": True} if lab.is_reused else {}),
                **ready.planned.settings.facts_of(ready.measurer),
            },
            placement=lab.placement,
            emulated=lab.emulated,
            sender_cpus=lab.sender_cpus,
            device_cores=lab.device_cores,
            grace_seconds=bench.grace_of(ready.planned.settings),
            seed=bench.seed,
            rates=ready.rates,
            machine=facts,
            device=ready.device,
            port_sets=addresses.port_sets,
            own_processes=bench.own_processes,
        )
    )


def _own_part(bench: Bench, ready: Ready, known: Collection[str]) -> dict[str, float]:
    own_part: dict[str, float | None] = {}
    if RECEIVER_SECONDS not in known:
        own_part[RECEIVER_SECONDS] = receiver_seconds(ready.measurer)
    if SERVER_ALONE not in known:
        own_part[SERVER_ALONE] = rate_alone(ready.measurer, ready.planned, bench.address_plan.outside.family)
    return {name: value for name, value in own_part.items() if value is not None}


def _server(ready: Ready) -> dict[str, object]:
    server = ready.measurer.server
    return {} if server is None else {"server_version": server.version, "server_cpus": server.cpus}


def measure(
    metric: str,
    gateway: str | Path,
    *,
    results: str | Path = RESULTS,
    observe: Observer | None = None,
    host_name: bool = False,
    **choices: Unpack[MeasureKeywords],
) -> Result:
    """Measure one metric of one gateway; all changes to the host are undone.

    Args:
        metric: "connection-rate", "throughput" ...
        gateway: name of a gateway's recipe, for example "nftables-nat44", or the path of a recipe file.
        results: folder in which the results folder is made.
        observe: receives the events of the trials.
        host_name: whether the results folder has the host's name.
        choices: the options of `natgauge measure`, with "_" for "-": connections=100_000, placement="isolated",
            error="1%" ... natgauge chooses options that are omitted or None; the result states its choices.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot perform the measurement.
        BrokenError: the lab or the device failed.
        FaultError: a fault of natgauge; its traceback is in the results folder.
    """
    return answer(ask(metric, gateway, {**choices}), observe, results=Path(results), host_name=host_name)


def answer(
    question: Question, observer: Observer | None = None, *, results: Path = RESULTS, host_name: bool = False
) -> Result:
    """Measure what the question asks, and store the result in a new folder below `results`; errors as of `measure`."""
    refuse_unlike_metric(question)
    with frames_of_profile(question):
        bench = LabBench(question.cell, observer)
    planned = bench.plan(question.metric, question.settings)
    check_host()
    store = Store.create(results, question.metric, bench.recipe.name)
    with store.evidence(command(question)):
        every: list[Prepared] = []

        def start(each: LabBench) -> list[Ready]:
            ready = each.ready(planned, store)
            every.append(each.prepared(ready))
            return [ready]

        def bench_of(number: int) -> LabBench:
            if number == 1:
                return bench
            return LabBench(in_repetition(question.cell, bench.seed, number), observer, processes=bench.processes)

        with locks.kept(), reliance_kept(), FreshLabs(bench_of, start) as labs:
            facts = machine.facts(host_name=host_name)
            write_conditions(store, every[0].parameters, bench.recipe, facts, every[0].device)
            # The first bench may have found that the device works in processes, which changes the settings.
            measured = labs.ready[0].run(labs.begin)
            # Where the next lab could not be made, the last one has gone, and the tester's own part is not known.
            own_part = every[-1].own_part(()) if labs.has_lab else {}
            conduct = labs.conduct(len(measured.measurements))
            conditions = [each.parameters for each in every]
            parameters = of_repetitions(conditions, question.metric, conduct, own_part)
        return keep(measured, parameters, store)
