# SPDX-License-Identifier: Apache-2.0
"""Results as JUnit's XML, which jobs show as tests: requirements of audits, comparisons with a limit, measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

from natgauge import outputs
from natgauge.plain_text import one_line
from natgauge.records.audit import AuditedRequirement, AuditRecord
from natgauge.records.comparison import FRAME_OF, ComparisonRecord, RatioEstimate
from natgauge.records.measurement import Result, ThresholdVerdict
from natgauge.reports.answers import one, threshold_of
from natgauge.reports.collected import StoredResults
from natgauge.reports.failures import of_campaign
from natgauge.reports.labels import names_of

Outcome = Literal["passed", "failure", "error", "skipped"]
_OF_VERDICTS: Final[Mapping[ThresholdVerdict, Outcome]] = {
    "met": "passed",
    "not met": "failure",
    "cannot tell": "skipped",
}
_UNENDED: Final = "it did not end, so it has no result"
_REMEDY: Final = "name a file in a folder of yours"


@dataclass(frozen=True, slots=True)
class _Case:
    of: str
    name: str
    outcome: Outcome
    text: str


def write(collected: StoredResults, path: Path) -> None:
    """Write the file, replacing one that is there."""
    outputs.write(path, text(collected), what="report", remedy=_REMEDY)


def text(collected: StoredResults) -> str:
    """Return one suite for all measurements, and one for each comparison and audit."""
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
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


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
