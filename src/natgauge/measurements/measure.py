# SPDX-License-Identifier: Apache-2.0
"""Measure one metric of one gateway: a bench for one procedure, and its result in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from natgauge.host import machine
from natgauge.host.settings import reliance_kept
from natgauge.inputs.question import Question
from natgauge.labs.common import locks
from natgauge.measurements.making import keep, of_repetitions, write_conditions
from natgauge.measurements.prepared import LabBench, Prepared
from natgauge.records.measurement import Result
from natgauge.records.store import RESULTS, Store
from natgauge.setup.setup import check_host
from natgauge.trial.bench import Ready
from natgauge.trial.planned import frames_of_profile, refuse_unlike_metric
from natgauge.trial.protocols import Observer
from natgauge.trial.question import ask, command
from natgauge.trial.renewal import FreshLabs, in_repetition

if TYPE_CHECKING:
    from natgauge.keywords import MeasureKeywords


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

        with locks.kept(), reliance_kept(), FreshLabs(_benches(question, bench, observer), start) as labs:
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


def _benches(question: Question, first: LabBench, observer: Observer | None) -> Callable[[int], LabBench]:
    """Return a function that plans the bench of a repetition: after the first, the same cell with another seed."""

    def plan(number: int) -> LabBench:
        if number == 1:
            return first
        return LabBench(in_repetition(question.cell, first.seed, number), observer, processes=first.processes)

    return plan
