# SPDX-License-Identifier: Apache-2.0
"""The result of a measurement whose repetitions were measured one by one, and its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from natgauge.campaigns.cells import CellMeasurement, PlannedCell
from natgauge.campaigns.evidence import EvidenceFile
from natgauge.campaigns.state import MeasurementState
from natgauge.measurements.making import keep, of_repetitions, write_conditions
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import MeasurementResult, make_result
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.procedures.kit.time_budget import TIME
from natgauge.records.store import Store
from natgauge.system_errors import unwritable


def write_result(
    evidence: EvidenceFile,
    point: PlannedCell,
    measurement: CellMeasurement,
    known: MeasurementState,
    cause: str | None,
) -> str:
    """Write the results folder of a measurement with at least one repetition; an incomplete one is replaced.

    Args:
        cause: reason why there are fewer repetitions than requested; empty = there are not; None = others follow, and
            the folder that is still being made becomes one, for reports before the end.
    """
    has_ended = cause is not None
    first, number, most = known.ended[0], len(known.ended), measurement.most_repetitions
    notes = [Note("ended early", f"broken after {number} of {most} repetitions: {cause}")] if cause else []
    if not has_ended:
        notes = [Note("incomplete", f"{number} of {most} repetitions so far", value=most)]
    given: dict[str, Any] = {"repeat": 1, **{str(name): value for name, value in first.given.items()}}
    single = replace(measurement.planned.settings, **given)
    results = [repetition.result for repetition in known.ended]
    measured = join(results, measurement.planned.settings, single, notes)
    try:
        store = Store(evidence.settle(known.stored))
        counting = [known.ended[at] for at in counted(results)]
        own_part = {name: value for repetition in known.ended for name, value in repetition.own_part.items()}
        parameters = [each.parameters for each in counting]
        # Every cell run makes a new lab, unless the lab is kept.
        conduct = {
            "labs": 1 if any(each.get("lab_stays") for each in parameters) else len(parameters),
            "seeds": [each.get("seed") for each in parameters],
            "begun": [each.began for each in counting],
        }
        every = of_repetitions(parameters, measurement.metric, conduct, own_part)
        run = every.model_copy(update={"settings": {**every.settings, "repeat": measurement.repeat}})
        write_conditions(store, run, point.recipe, first.machine, first.device)
        keep(measured, run, store, evidence.result if has_ended else evidence.making, measurement.published)
        if has_ended:
            evidence.publish()
    except OSError as error:
        raise unwritable(evidence.result, error, what="results", remedy="see that its folder can be written") from error
    return evidence.name


def counted(singles: Sequence[MeasurementResult]) -> list[int]:
    """Return the indices of the repetitions that count: those that time did not end, or else the first one."""
    return [at for at, result in enumerate(singles) if result.limited_by != TIME] or [0]


def join(
    singles: Sequence[MeasurementResult], settings: TrialSettings, single: TrialSettings, notes: Sequence[Note] = ()
) -> MeasurementResult:
    """Put repetitions together that were measured one by one.

    One that its time cut off counts only where there is no other, for its value is no more than a bound. Each of the
    singles has one repetition, measured with the settings `single`; they are in the order of their measurement.
    """
    kept = [singles[at] for at in counted(singles)]
    notes = list(notes)
    if len(kept) < len(singles) and kept[0].limited_by != TIME:
        cut = len(singles) - len(kept)
        notes.append(
            Note("time used up", f"{cut} of {len(singles)} repetitions left out, which their time cut off", cut)
        )
    # What one repetition says of the number of repetitions holds for none of them any more.
    own = set(single.notes())
    shared = [
        note for result in kept for note in result.notes if note not in own and note not in result.repetition_notes
    ]
    parameters: dict[str, Any] = {**kept[0].parameters, "repeat": settings.repeat}
    measurements = [measurement for result in kept for measurement in result.measurements]
    notes += [*settings.notes(), *shared]
    joined = make_result(kept[0].metric, kept[0].unit, parameters, measurements, notes)
    return replace(joined, first=tuple(inner for result in kept for inner in result.first))
