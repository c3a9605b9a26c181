# SPDX-License-Identifier: Apache-2.0
"""Two runs compared, whatever they hold: measurements, comparisons and audits, each with those of its own kind."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from natgauge.errors import UsageError
from natgauge.reports import audit_difference as of_audits
from natgauge.reports import difference as of_results
from natgauge.reports import ratio_difference as of_ratios
from natgauge.reports.audit_difference import AuditDifference
from natgauge.reports.collected import StoredResults
from natgauge.reports.difference import DIFF_SCHEMA, WORSE, Diff
from natgauge.reports.ratio_difference import RatioDifference


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A second run compared with a first one; None = at least one run has nothing of that kind."""

    results: Diff | None
    ratios: RatioDifference | None
    audits: AuditDifference | None = None

    @property
    def exit_status(self) -> int:
        """1 where something is worse; else 5 where something is unknown; 0 otherwise."""
        each = [
            difference.exit_status for difference in (self.results, self.ratios, self.audits) if difference is not None
        ]
        return WORSE if WORSE in each else max(each)


def difference(
    first: StoredResults, second: StoredResults, *, about: Collection[str], across: Collection[str], margin: float
) -> RunDifference:
    """Compare all results and comparisons of two runs; arguments as in `natgauge.reports.difference.diff`.

    Raises:
        UsageError: the runs have nothing of one kind in common, or as the functions for each kind raise.
    """
    how: dict[str, Any] = {"about": about, "across": across, "margin": margin}
    results = of_results.diff(first.results, second.results, **how) if first.stored and second.stored else None
    ratios = None
    if first.comparisons and second.comparisons:
        ratios = of_ratios.difference(*of_ratios.only_pair(first.records, second.records), **how)
    audits = None
    if first.audits and second.audits:
        audits = of_audits.difference(*([each.record for each in run.audits] for run in (first, second)))
    if results is None and ratios is None and audits is None:
        raise UsageError(
            "diff: the runs have neither measurements, comparisons nor audits in common; name two folders of one kind"
        )
    return RunDifference(results, ratios, audits)


def text(difference: RunDifference, width: int | None = None) -> str:
    """Return the lines for results, then the lines for comparisons; `width`: most characters of a line of a table."""
    parts = []
    if difference.results is not None:
        parts.append(of_results.text(difference.results, width))
    if difference.ratios is not None:
        parts.append(of_ratios.text(difference.ratios, width))
    if difference.audits is not None:
        parts.append(of_audits.text(difference.audits))
    return "\n\n".join(parts)


def document(difference: RunDifference) -> dict[str, Any]:
    """Return plain JSON values; an end of an interval that is not bounded is null."""
    empty = Diff((), (), ()) if difference.results is None else difference.results
    ratios = [] if difference.ratios is None else of_ratios.document(difference.ratios)
    return {
        **of_results.document(empty),
        "schema": DIFF_SCHEMA,
        "exit_status": difference.exit_status,
        "ratios": ratios,
        "audits": [] if difference.audits is None else of_audits.document(difference.audits),
    }
