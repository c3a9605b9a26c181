# SPDX-License-Identifier: Apache-2.0
"""Doubts: what a reader must know before using a figure. Each doubt is one entry in a module of this folder.

An entry says when the doubt holds, as a condition on the facts of the measurement. `python -m tools.described` makes
of the entries what other packages read of them: the words and properties of doubts, and the documentation.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, by_grade
from natgauge.doubts.searches import of_one_reason
from natgauge.notes import Note
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.parameters import Parameters

#: Modules in the order in which their doubts of one grade are listed; others follow.
_ORDER: Final = ("machine", "searches", "repetitions", "neighbours")


@functools.cache
def doubts() -> Mapping[str, Doubt]:
    """Every doubt by its word, in the order in which doubts of one grade are listed."""
    names = dict.fromkeys((*_ORDER, *(module.name for module in pkgutil.iter_modules(__path__))))
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    every: list[Doubt] = [doubt for module in modules for doubt in getattr(module, "DOUBTS", ())]
    return {doubt.word: doubt for doubt in every}


def find(measured: MeasurementResult, parameters: Parameters, disturbed: int | None = None) -> tuple[Note, ...]:
    """Every doubt about a measurement, by grade; `disturbed` None = as many trials as its outcomes say."""
    facts = Facts(measured, parameters, measured.disturbed if disturbed is None else disturbed)
    own = [*_found(facts)]
    # Doubts of what was measured first; those that come from the parameters alone are those of both.
    of_first = tuple(
        doubt
        for result in measured.first
        for doubt in find(result, parameters.with_settings(result.parameters))
        if doubts()[doubt.word].is_inherited and doubt not in own
    )
    inherited = _found(replace(facts, of_first=of_first)) if of_first else ()
    return tuple(by_grade([*own, *(doubt for doubt in inherited if doubt not in own)]))


def _found(facts: Facts) -> Iterator[Note]:
    """Yield the doubts that follow from the facts; notes of the procedure are listed before other doubts of trials."""
    every = (note for note in facts.measured.notes if note.is_doubt and not doubts()[note.word].sums)
    noted = [*of_one_reason(every, facts.measured.measurements)]
    for doubt in doubts().values():
        if doubt.holds is None:
            yield from noted
            noted = []
        yield from doubt.notes(facts)
