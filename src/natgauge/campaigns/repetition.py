# SPDX-License-Identifier: Apache-2.0
"""Run one repetition of a measurement, and write the results folder of all its repetitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from natgauge.campaigns.cells import CellMeasurement, PlannedCell
from natgauge.campaigns.evidence import EvidenceFile
from natgauge.campaigns.joined import counted, join
from natgauge.campaigns.journal_lines import REMEDY, RepetitionLine
from natgauge.campaigns.state import MeasurementState
from natgauge.errors import UsageError
from natgauge.measurements.measure import keep, of_repetitions, write_conditions
from natgauge.measurements.prepared import Prepared
from natgauge.notes import Note
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.result.results import Attempt, MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.records.record import first_fault
from natgauge.records.store import Store
from natgauge.system_errors import unwritable
from natgauge.trial.observer import Observer


def run_repetition(
    ready: Prepared, number: int, most: int, observer: Observer, begins: Callable[[Mapping[str, Any]], None]
) -> MeasurementResult:
    """Measure one repetition on a bench that is ready; `begins` receives the state of the search at each trial."""
    procedure = ready.planned.procedure

    def observe(event: Event) -> None:
        if event.outcome is None:
            begins(_search_state(event))
        own = event.metric == procedure.metric
        observer.event(replace(event, repetition=number, repetitions=most) if own else event)

    # A trial that the user ends is repeated by the session that resumes the campaign.
    measured = procedure.measure(ready.measurer, ready.planned.settings, observe, may_be_cut=False)
    return _slim(measured)


def _search_state(event: Event) -> dict[str, Any]:
    """State of a search when a trial begins."""
    return {
        "metric": event.metric,
        "trial": event.trial,
        "plan": event.plan,
        "load": event.load,
        "bounds": event.bounds,
        "seconds_left": event.seconds_left,
    }


def _slim(measured: MeasurementResult) -> MeasurementResult:
    """Leave out the delays of each trial, also of the measurements made first: the trial's own line has them."""

    def without(attempt: Attempt) -> Attempt:
        return replace(attempt, outcome=replace(attempt.outcome, delays={}))

    measurements = tuple(
        replace(measurement, attempts=tuple(map(without, measurement.attempts)))
        for measurement in measured.measurements
    )
    return replace(measured, measurements=measurements, first=tuple(map(_slim, measured.first)))


def write_result(
    evidence: EvidenceFile, point: PlannedCell, measurement: CellMeasurement, known: MeasurementState, cause: str
) -> str:
    """Write the results folder of a measurement with at least one repetition; an incomplete one is replaced.

    Args:
        cause: reason why there are fewer repetitions than requested; empty = there are not.
    """
    first, number = known.ended[0], len(known.ended)
    broken = f"broken after {number} of {measurement.most_repetitions} repetitions: {cause}"
    notes = [Note("ended early", broken)] if cause else []
    given: dict[str, Any] = {"repeat": 1, **{str(name): value for name, value in first.given.items()}}
    single = replace(measurement.planned.settings, **given)
    results = [repetition.result for repetition in known.ended]
    measured = join(results, measurement.planned.settings, single, notes)
    try:
        store = Store(evidence.settle(known.stored))
        counting = [known.ended[at] for at in counted(results)]
        own_part = {name: value for repetition in known.ended for name, value in repetition.own_part.items()}
        every = of_repetitions(
            [repetition.parameters for repetition in counting], measurement.metric, _conduct(counting), own_part
        )
        run = _as_requested(every, measurement)
        write_conditions(store, run, point.recipe, first.machine, first.device)
        keep(measured, run, store, evidence.result, measurement.published)
        evidence.publish()
    except ValidationError as error:
        raise UsageError(
            f"campaign: the repetitions of {evidence.name} in the journal are no result: {first_fault(error)}; {REMEDY}"
        ) from None
    except OSError as error:
        raise unwritable(evidence.result, error, what="results", remedy="see that its folder can be written") from error
    return evidence.name


def _as_requested(parameters: Parameters, measurement: CellMeasurement) -> Parameters:
    return parameters.model_copy(update={"settings": {**parameters.settings, "repeat": measurement.repeat}})


def _conduct(repetitions: Sequence[RepetitionLine]) -> Mapping[str, Any]:
    """Labs, seeds and times of the repetitions that count. Every cell run makes a new lab, unless the lab is kept."""
    return {
        "labs": 1 if any(each.parameters.get("lab_stays") for each in repetitions) else len(repetitions),
        "seeds": [each.parameters.get("seed") for each in repetitions],
        "begun": [each.began for each in repetitions],
    }
