# SPDX-License-Identifier: Apache-2.0
"""Tables as one JSON object, with figures in full; see `natgauge report --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from natgauge.interval_text import Written
from natgauge.records.measurement import Result
from natgauge.reports import audit, comparison
from natgauge.reports.answers import Sentence, answers
from natgauge.reports.collected import StoredResults
from natgauge.reports.labels import names_of
from natgauge.reports.rows import Bounded, Cell, Ranged, rows
from natgauge.reports.sheet import Sheet

REPORT_SCHEMA: Final = "natgauge-report-1"


def document(collected: StoredResults, turned: Sheet | None = None) -> dict[str, Any]:
    """Return everything that a report of these results says.

    `turned` is a table of the results in another shape.
    """
    results = collected.results
    return {
        "schema": REPORT_SCHEMA,
        "answers": _texts(answers(results)) if results else [],
        "table": _of_results(results) if turned is None else _of_sheet(turned),
        "comparisons": [
            {"answers": _texts(comparison.sentences(each.record)), "record": each.record.document()}
            for each in collected.comparisons
        ],
        "audits": [
            {"answers": _texts(audit.sentences(each.record)), "record": each.record.document()}
            for each in collected.audits
        ],
        "differences": audit.differences([each.record for each in collected.audits]) if collected.audits else [],
    }


def _texts(sentences: Sequence[Sentence]) -> list[dict[str, object]]:
    return [{"text": sentence.text, "certainty": sentence.certainty} for sentence in sentences]


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
