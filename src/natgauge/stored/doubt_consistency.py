# SPDX-License-Identifier: Apache-2.0
"""Whether a record has every doubt that follows from what its folder stores.

Doubts are found again with the same rules (`doubts`). `NOT_STORED` names those whose evidence no folder has, so that
their absence shows nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from natgauge import foreign
from natgauge.doubts import doubts, find
from natgauge.metrics.shared_figures import OCTETS_PER_CONNECTION
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement, MeasurementResult, make_result
from natgauge.records.measurement import Result
from natgauge.records.repetition import Repetition
from natgauge.records.store import MEASUREMENTS, SUMMARY
from natgauge.stored.contradiction import ContradictionError, expect

#: Doubts that a folder's other files do not show, and why.
NOT_STORED: Final[Mapping[str, str]] = {word: doubt.not_stored for word, doubt in doubts().items() if doubt.not_stored}


def check_doubts(result: Result, folder: Path) -> None:
    """Check that a result has every doubt that follows from its figures, notes and parameters.

    Args:
        folder: its folder; one without the file of its repetitions is no complete one, and contradicts nothing.
    """
    where = folder / SUMMARY
    if not foreign.is_there(folder / MEASUREMENTS):
        return
    stored = {doubt.word: doubt for doubt in result.doubts}
    for doubt in following(result):
        if doubt.word not in stored:
            named = ", ".join(stored) or "none"
            raise ContradictionError(where, "the list of doubts", named, "its figures and parameters give", doubt.word)
        alike = [each for each in result.doubts if each.word == doubt.word]
        # An earlier natgauge stored no values of doubts.
        if len(alike) == 1 and alike[0].value is not None:
            expect(f"doubt {doubt.word}: value", alike[0].value, doubt.value, "its figures give", where)
            expect(f"doubt {doubt.word}: grade", alike[0].grade, doubt.grade, "its figures give", where)


def following(result: Result) -> list[Note]:
    """Return the doubts that follow from a result's figures, notes and parameters."""
    every = find(_measured(result), result.parameters, result.disturbed)
    return [doubt for doubt in every if doubt.word not in NOT_STORED]


def _measured(result: Result) -> MeasurementResult:
    """Return a result as the procedure handed it over, as far as it is stored."""
    sampled = _is_sampled(result)
    repetitions = [_repetition(repetition, sampled=sampled) for repetition in result.repetitions]
    return make_result(result.metric, result.unit, {}, repetitions, result.notes)


def _repetition(repetition: Repetition, *, sampled: bool) -> Measurement:
    stored = {each.name: getattr(repetition, each.name) for each in fields(Repetition)}
    return Measurement(**stored, is_sampled=sampled)


def _is_sampled(result: Result) -> bool:
    """Whether values rest on samples, of which a figure then has more values than there are repetitions.

    Trials have the memory of a connection beside the value, which does not rest on it.
    """
    named = Counter(name for repetition in result.repetitions for name in repetition.figures)
    return any(
        0 < named[name] < figure.count for name, figure in result.figures.items() if name != OCTETS_PER_CONNECTION
    )
