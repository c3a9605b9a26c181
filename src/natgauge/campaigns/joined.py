# SPDX-License-Identifier: Apache-2.0
"""Repetitions that were measured one by one, put together as one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from natgauge.notes import Note
from natgauge.procedures.kit.result.results import MeasurementResult, make_result
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.procedures.kit.time_budget import TIME


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
