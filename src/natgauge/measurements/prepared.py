# SPDX-License-Identifier: Apache-2.0
"""A measurement that is ready to run, with the conditions of its figures: on a bench in a lab, or on one of tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

from natgauge.ethernet import SEGMENT_OCTETS
from natgauge.host import machine
from natgauge.inputs.question import Cell, Question
from natgauge.measurements.conditions import RECEIVER_SECONDS, SERVER_ALONE, Conditions, chain_of, record
from natgauge.measurer import Measurer
from natgauge.records.parameters import Parameters
from natgauge.setup.setup import place_parameters
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned
from natgauge.trial.protocols import Observer
from natgauge.trial.question import command
from natgauge.trial.receiver_time import receiver_seconds
from natgauge.trial.server import rate_alone

#: Measures the tester's own part after the trials of a repetition. The argument has the names of the figures that
#: earlier repetitions know. Returns the other figures, as far as they apply and can be measured: `RECEIVER_SECONDS` and
#: `SERVER_ALONE`.
OwnPart = Callable[[Collection[str]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A measurement that is ready to run.

    Attributes:
        device: version and settings of the device; None = natgauge does not start the device.
        own_part: measures the time that the tester's receivers take of the device's cores, and a real server alone.
    """

    measurer: Measurer
    parameters: Parameters
    device: Mapping[str, Any] | None
    own_part: OwnPart
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
    """Measure the tester's own part after the trials of a repetition, as far as it applies, without what is `known`."""
    own_part: dict[str, float | None] = {}
    if RECEIVER_SECONDS not in known:
        own_part[RECEIVER_SECONDS] = receiver_seconds(ready.measurer)
    if SERVER_ALONE not in known:
        own_part[SERVER_ALONE] = rate_alone(ready.measurer, ready.planned, bench.address_plan.outside.family)
    return {name: value for name, value in own_part.items() if value is not None}


def _server(ready: Ready) -> dict[str, object]:
    server = ready.measurer.server
    return {} if server is None else {"server_version": server.version, "server_cpus": server.cpus}
