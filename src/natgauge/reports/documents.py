# SPDX-License-Identifier: Apache-2.0
"""Results as documents for programs: a JSON object with figures in full, and JUnit's XML, which jobs show as tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal
from xml.etree import ElementTree as ET

from natgauge import file_access
from natgauge.interval_text import Written
from natgauge.notes import Note
from natgauge.plain_text import one_line
from natgauge.records.audit import AuditedRequirement, AuditRecord
from natgauge.records.comparison import FRAME_OF, ComparisonRecord, RatioEstimate
from natgauge.records.measurement import Result, ThresholdVerdict
from natgauge.reports import audit, comparison
from natgauge.reports.answers import Sentence, answers, not_sure, one, threshold_of
from natgauge.reports.collected import StoredResults
from natgauge.reports.failures import lacks_of, missing_of, not_ended, of_campaign
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


Outcome = Literal["passed", "failure", "error", "skipped"]
_OF_VERDICTS: Final[Mapping[ThresholdVerdict, Outcome]] = {
    "met": "passed",
    "not met": "failure",
    "cannot tell": "skipped",
}
_UNENDED: Final = "it did not end, so it has no result"


@dataclass(frozen=True, slots=True)
class _Case:
    of: str
    name: str
    outcome: Outcome
    text: str


def write_junit(collected: StoredResults, path: Path) -> None:
    """Write one suite for all measurements, and one for each comparison and audit, replacing a file that is there."""
    suites = [
        (
            "measurements",
            [
                *_measured(collected.results),
                *(_Case("measurement", each.name, "error", _UNENDED) for each in collected.unended),
                *(case for folder in collected.campaigns for case in _missing(folder)),
            ],
        ),
        *(("comparison with " + each.baseline.label, _compared(each)) for each in collected.records),
        *(("audit of " + each.record.gateway, _audited(each.record)) for each in collected.audits),
    ]
    root = ET.Element("testsuites")
    for name, cases in suites:
        if cases:
            root.append(_suite(name, cases))
    ET.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
    file_access.write(path, text, what="report", remedy="name a file in a folder of yours")


def _suite(name: str, cases: Sequence[_Case]) -> ET.Element:
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {total: str(sum(case.outcome == each for case in cases)) for total, each in counted.items()}
    suite = ET.Element("testsuite", {"name": one_line(name), "tests": str(len(cases)), **counts})
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=one_line(case.of), name=one_line(case.name))
        if case.outcome == "passed":
            ET.SubElement(element, "system-out").text = one_line(case.text)
        else:
            ET.SubElement(element, case.outcome, message=one_line(case.text))
    return suite


def _measured(results: Sequence[Result]) -> Iterable[_Case]:
    for result, name in zip(results, names_of(results), strict=True):
        verdict = "met" if result.threshold is None else result.threshold.verdict
        # Repetitions that are still to come may change it.
        outcome: Outcome = _OF_VERDICTS[verdict] if result.is_complete else "skipped"
        yield _Case(result.metric, name, outcome, threshold_of(result) or one(result).text)


def _missing(campaign: Path) -> Iterable[_Case]:
    """Yield what broke in a campaign, by the cause, and how much of it has not been measured."""
    for each in of_campaign(campaign):
        text = " ".join(filter(None, [*each.happened, each.remedy, each.command]))
        yield _Case("measurement", f"{campaign.name}: {each.subject}", "error", text)


def _compared(record: ComparisonRecord) -> list[_Case]:
    return [
        _Case(estimate.gateway, FRAME_OF[estimate.quantity], _of_cost(estimate, record), estimate.text)
        for estimate in record.estimates
    ]


def _of_cost(estimate: RatioEstimate, record: ComparisonRecord) -> Outcome:
    """A cost fails only beyond a limit that was asked for; one that may be beyond it is skipped."""
    if record.fail_above is None:
        return "passed"
    return "skipped" if estimate.above is None else "failure" if estimate.above else "passed"


def _audited(record: AuditRecord) -> list[_Case]:
    return [
        _Case(
            f"RFC {each.rfc}",
            f"{each.requirement} {each.transport}: {each.text}",
            _of_requirement(each),
            f"{each.level}, {each.verdict}: {each.measured}",
        )
        for each in record.requirements
    ]


def _of_requirement(each: AuditedRequirement) -> Outcome:
    """Only what a gateway MUST do fails; what it should do, and what was not seen, is skipped with its reason."""
    if each.verdict == "meets":
        return "passed"
    return "failure" if each.verdict == "fails" and each.level == "MUST" else "skipped"
