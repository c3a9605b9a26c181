# SPDX-License-Identifier: Apache-2.0
"""Run one repetition of a measurement, and write the results folder of all its repetitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from natgauge.campaigns.bench_protocol import Prepared
from natgauge.campaigns.cells import CellMeasurement, PlannedCell
from natgauge.campaigns.evidence import EVIDENCE, EvidenceFile, Extent
from natgauge.campaigns.joined import counted, join
from natgauge.campaigns.journal import AppendLine
from natgauge.campaigns.journal_lines import REMEDY
from natgauge.campaigns.replay import RecordedCall, ReplayError, ReplayingMeasurer
from natgauge.campaigns.state import RecordedRepetition
from natgauge.errors import UsageError
from natgauge.gateways.recipe import as_played, digest
from natgauge.measurements.conditions import with_conduct, with_own_part
from natgauge.measurements.measure import keep
from natgauge.measurer import Ability
from natgauge.notes import Note
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.result.results import Attempt, MeasurementResult
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.parameters import Parameters, joined
from natgauge.records.record import first_fault
from natgauge.records.store import Memory, Store, plain
from natgauge.system_errors import unwritable
from natgauge.trial.observer import Observer
from natgauge.trial.planned import Planned


@dataclass(frozen=True, kw_only=True, slots=True)
class RepetitionRun:
    """One running repetition."""

    append_line: AppendLine
    where: Mapping[str, Any]
    planned: Planned
    ready: Prepared
    recorder: Memory
    observer: Observer
    most: int
    known: Collection[str]

    def run(self, known: RecordedRepetition) -> None:
        """Run the repetition, or its remaining part, to its end."""
        procedure = self.planned.procedure
        measurer = ReplayingMeasurer(
            tuple(known.answers),
            self.ready.measurer,
            highest_rate=known.begun["highest_rate"],
            abilities=frozenset(map(Ability, known.begun["abilities"])),
            ring=known.begun.get("ring"),
            seed=known.begun.get("seed") or 0,
            keep=lambda answer: self._keep(known.number, answer),
        )
        shown = False

        def observe(event: Event) -> None:
            nonlocal shown
            if event.outcome is None:
                shown = not measurer.replaying
                if shown:
                    self.append_line("trial", sync=False, **self.where, **_search_state(known.number, event))
            if shown:
                own = event.metric == procedure.metric
                self.observer.event(replace(event, repetition=known.number, repetitions=self.most) if own else event)

        if known.answers:
            self.observer.stage(f"{procedure.metric}: going on after {len(known.answers)} calls in the journal")
        measured = procedure.measure(measurer, self.planned.settings, observe, clock=measurer.clock)
        if measurer.replaying:
            raise ReplayError("the journal has more calls than the procedure makes")
        seconds = measurer.clock()
        self.append_line(
            "repetition-ended",
            **self.where,
            repetition=known.number,
            measured=_slim(measured),
            seconds=seconds,
            own_part=self.ready.own_part(measurer.passed, self.known),
        )

    def _keep(self, number: int, answer: RecordedCall) -> None:
        evidence, self.recorder.trials = self.recorder.trials, []
        fields: dict[str, Any] = {**self.where, "repetition": number, **plain(answer), EVIDENCE: evidence}
        self.append_line("answer", **fields)


def _search_state(number: int, event: Event) -> dict[str, Any]:
    """State of a search when a trial begins."""
    return {
        "repetition": number,
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


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedMeasurement:
    """A measurement that has ended.

    Attributes:
        repetitions: at least one.
        cause: reason why there are fewer than requested; empty = there are not.
    """

    single: TrialSettings
    repetitions: Sequence[RecordedRepetition]
    cause: str
    stored: Extent


def write_result(
    evidence: EvidenceFile, point: PlannedCell, measurement: CellMeasurement, ended: EndedMeasurement
) -> str:
    """Write the results folder of a measurement; an incomplete one is replaced."""
    first, number = ended.repetitions[0].begun, len(ended.repetitions)
    parameters = [Parameters.model_validate(repetition.begun["parameters"]) for repetition in ended.repetitions]
    broken = f"broken after {number} of {measurement.most_repetitions} repetitions: {ended.cause}"
    notes = [Note("ended early", broken)] if ended.cause else []
    results = [repetition.result for repetition in ended.repetitions]
    measured = join(results, measurement.planned.settings, ended.single, notes)
    try:
        store = Store(evidence.settle(ended.stored))
        of_result = joined([parameters[at] for at in counted(results)], measurement.metric)
        conduct = _conduct([ended.repetitions[at] for at in counted(results)])
        own_part = {name: value for repetition in ended.repetitions for name, value in repetition.own_part.items()}
        run = with_own_part(with_conduct(_as_requested(of_result, measurement), conduct), own_part)
        store.write_plan(run.flat())
        store.write_recipe(as_played(point.recipe), digest(point.recipe))
        store.write_environment({"machine": first["machine"], "device": first["device"]})
        keep(measured, run, store, evidence.result)
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


def _conduct(repetitions: Sequence[RecordedRepetition]) -> Mapping[str, Any]:
    """Labs, seeds and times of the repetitions that count. Every cell run makes a new lab, unless the lab is kept."""
    parameters = [Parameters.model_validate(repetition.begun["parameters"]) for repetition in repetitions]
    return {
        "labs": 1 if any(of_repetition.get("lab_stays") for of_repetition in parameters) else len(repetitions),
        "seeds": [of_repetition.get("seed") for of_repetition in parameters],
        "begun": [repetition.begun["at"] for repetition in repetitions],
    }
