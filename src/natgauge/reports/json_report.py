# SPDX-License-Identifier: Apache-2.0
"""Tables as one JSON object, with figures in full; see `natgauge report --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from natgauge.interval_text import Written
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.reports import audit, comparison
from natgauge.reports.answers import Sentence, answers, not_sure
from natgauge.reports.collected import StoredResults
from natgauge.reports.failures import lacks_of, missing_of, not_ended
from natgauge.reports.graded_doubts import doubted
from natgauge.reports.labels import names_of
from natgauge.reports.rows import Bounded, Cell, Ranged, rows
from natgauge.reports.sheet import Sheet, notes

REPORT_SCHEMA: Final = "natgauge-report-1"


def document(collected: StoredResults, turned: Sheet | None = None) -> dict[str, Any]:
    """Return everything that a report of these results says.

    `turned` is a table of the results in another shape.
    """
    results = collected.results
    said = answers(results) if results else []
    names = names_of(results)
    own = [(name, result.doubts) for name, result in zip(names, results, strict=True)]
    return {
        "schema": REPORT_SCHEMA,
        "answers": _texts(said),
        "not_sure": not_sure(said),
        "table": _of_results(results) if turned is None else _of_sheet(turned),
        "doubts": _doubts(own),
        "notes": notes(results, lambda at, _: names[at - 1]) if results else [],
        "no_result": [
            {**asdict(each), "folder": str(each.folder)} for each in missing_of(collected, lacks_of(collected))
        ],
        "not_ended": {str(folder): text for folder in collected.campaigns if (text := not_ended(folder))},
        "copies": {str(copy): str(own) for copy, own in collected.copies.items()},
        "comparisons": [
            {
                "answers": _texts(comparison.sentences(each.record)),
                "not_sure": not_sure(comparison.sentences(each.record)),
                "doubts": _doubts(comparison.named_doubts(each.record)),
                "record": each.record.document(),
            }
            for each in collected.comparisons
        ],
        "audits": [
            {"answers": _texts(audit.sentences(each.record)), "record": each.record.document()}
            for each in collected.audits
        ],
        "differences": audit.differences([each.record for each in collected.audits]) if collected.audits else [],
    }


def _texts(sentences: Sequence[Sentence]) -> list[dict[str, object]]:
    return [
        {"text": one.text, "certainty": one.certainty, "reasons": list(one.reasons), "doubts": list(one.doubts)}
        for one in sentences
    ]


def _doubts(named: Sequence[tuple[str, Sequence[Note]]]) -> list[dict[str, object]]:
    """Each doubt with the names of those that have it, the gravest first; other texts of a word are other doubts."""
    return [
        {"grade": grade, "word": one.doubt.word, "text": one.doubt.text, "remedy": one.remedy, "of": list(one.names)}
        for grade, every in doubted(named, lambda _: True).items()
        for one in every
    ]


def _of_results(results: Sequence[Result]) -> dict[str, Any] | None:
    """The rows that have a value for at least one result; a column for each result."""
    if not results:
        return None
    every = [row for row in rows(results) if any(cell is not None for cell in row.cells)]
    return {
        "columns": names_of(results),
        "rows": [
            {"row": row.name, "unit": row.unit or None, "cells": [_value(cell) for cell in row.cells]} for row in every
        ],
    }


def _value(cell: Cell) -> object:
    if isinstance(cell, Ranged):
        return {"median": cell.median, "minimum": cell.minimum, "maximum": cell.maximum}
    if isinstance(cell, Bounded):
        return {"bound": cell.bound, "value": cell.value}
    if isinstance(cell, Written):
        return {"bound": cell.bound, "value": cell.value} if cell.bound else cell.value
    return cell


def _of_sheet(sheet: Sheet) -> dict[str, Any]:
    head, *lines = sheet.lines
    return {
        "columns": list(head.cells),
        "rows": [
            {"row": line.column or line.heading, "unit": None, "cells": [_value(cell) for cell in line.cells]}
            for line in lines
        ],
        "below": list(sheet.below),
    }
