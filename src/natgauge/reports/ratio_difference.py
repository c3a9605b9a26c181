# SPDX-License-Identifier: Apache-2.0
"""Two comparisons compared: how each gateway's cost relative to the baseline changed, and what that means."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

from natgauge.analysis.ratio_changes import RatioChange, RatioChanges, changes
from natgauge.analysis.scalability import varied_with
from natgauge.errors import UsageError
from natgauge.records.comparison import ComparisonRecord, RatioEstimate
from natgauge.reports.comparison import number
from natgauge.reports.difference import ALIKE, UNKNOWN, WORSE, Outcome, Reason, check_names
from natgauge.reports.text import fitted
from natgauge.statistics.interval import MedianEstimate

_HEAD: Final = ("gateway", "of", "first", "second", "second/first", "interval", "")
#: The two comparisons were made at different times.
_SITTING: Final[Reason] = "one sitting each"
_REMEDY: Final = (
    "the intervals contain what differs between rounds, not what differs between two runs; compare both versions in "
    "one natgauge compare, or say how far runs may differ: --margin"
)


@dataclass(frozen=True, slots=True)
class JudgedChange:
    """A change and what it means.

    Attributes:
        change: change of one gateway and quantity.
        outcome: "better" where the gateway costs less than before, "worse" where it costs more.
        reason: why nothing is concluded, as a word; "" otherwise.
        why: the same as a sentence; empty otherwise.
    """

    change: RatioChange
    outcome: Outcome
    reason: Reason = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class RatioDifference:
    """A second comparison compared with a first one."""

    lines: tuple[JudgedChange, ...]
    changes: RatioChanges

    @property
    def exit_status(self) -> int:
        """1 where a gateway costs more than before; 5 where something is unknown; 0 otherwise."""
        outcomes = {line.outcome for line in self.lines}
        if "worse" in outcomes:
            return WORSE
        unknown = outcomes & {"cannot tell", "not compared"} or self.changes.only_first or self.changes.only_second
        return UNKNOWN if unknown else ALIKE


def difference(
    first: ComparisonRecord,
    second: ComparisonRecord,
    *,
    about: Collection[str] = (),
    across: Collection[str] = (),
    margin: float = 0.0,
) -> RatioDifference:
    """Compare a second comparison with a first one.

    Args:
        first: a comparison.
        second: another one.
        about: names of parameters, or of groups, that may differ; the baseline's own device must not.
        across: names of parameters that were varied on purpose; they, and what grows with them, may differ.
        margin: share (0 to below 1) by which a ratio may change without being called better or worse. Without one
            nothing is: the intervals do not contain what differs between two runs.

    Raises:
        UsageError: the comparisons cannot be compared, a name in `about` or `across` is none, or `margin` is out of
            range.
    """
    parameters = [gateway.parameters for record in (first, second) for gateway in record.gateways]
    check_names(parameters, about, across, margin)
    varied = [name for axis in across for name in varied_with(axis)]
    ratio_changes = changes(first, second, about=[*about, *varied])
    return RatioDifference(tuple(_judged(change, margin) for change in ratio_changes.lines), ratio_changes)


def only_pair(
    first: list[ComparisonRecord], second: list[ComparisonRecord]
) -> tuple[ComparisonRecord, ComparisonRecord]:
    """Return the comparison of each run.

    Raises:
        UsageError: a run has several.
    """
    for which, records in (("first", first), ("second", second)):
        if len(records) > 1:
            raise UsageError(f"diff: the {which} run has {len(records)} comparisons; name the folder of one")
    return first[0], second[0]


def _judged(change: RatioChange, margin: float) -> JudgedChange:
    if change.differences:
        return JudgedChange(change, "not compared", "set up differently", "; ".join(map(str, change.differences)))
    if change.factor is None:
        return JudgedChange(change, "cannot tell", "limits", _open(change))
    lowest, highest = 1 - margin, 1 / (1 - margin)
    if _overlap(change.factor, lowest, highest):
        return JudgedChange(change, "no difference seen")
    if _overlap(change.factor, lowest / change.margin, highest * change.margin):
        return JudgedChange(change, "cannot tell", "control", _biased(change))
    if not margin:
        return JudgedChange(change, "cannot tell", _SITTING, _REMEDY)
    return JudgedChange(change, "worse" if change.factor.lower > highest else "better")


def _overlap(factor: MedianEstimate, lowest: float, highest: float) -> bool:
    return lowest <= factor.upper and factor.lower <= highest


def _biased(change: RatioChange) -> str:
    """Return a reason: the A/A controls differ from 1, although both copies are the same gateway."""
    far = "any factor" if math.isinf(change.margin) else f"up to {change.margin - 1:.1%}"
    return f"the baseline compared with itself (A/A control) differs by {far}, too"


def _open(change: RatioChange) -> str:
    """Return the ratios that are not known."""
    texts = [
        f"{which}: {estimate.text}"
        for which, estimate in (("first", change.first), ("second", change.second))
        if not (estimate.is_bounded and estimate.ratio is not None)
    ]
    return "; ".join(texts)


def text(difference: RatioDifference, width: int | None = None) -> str:
    """Return a line for each gateway and quantity, then the reasons against each conclusion.

    Args:
        difference: the difference.
        width: most characters of a line of the table; None = any.
    """
    lines = fitted([_HEAD, *(_row(line) for line in difference.lines)], right=(2, 3, 4, 5), width=width)
    for at, line in enumerate(difference.lines, start=1):
        lines += [f"Line {at}: {line.outcome}: {line.why}."] if line.why else []
        lines += [f"Line {at}: differs as requested: {difference}." for difference in line.change.about]
    for which, missing in (("first", difference.changes.only_first), ("second", difference.changes.only_second)):
        lines += [f"Only in the {which} comparison: {estimate.gateway} ({estimate.quantity})." for estimate in missing]
    if difference.lines:
        lines.append(
            "Ratios are costs relative to the baseline; second/first is the ratio of both, with a confidence interval "
            "(MOVER) that takes the comparisons as independent."
        )
    return "\n".join(lines)


def _row(line: JudgedChange) -> tuple[str, ...]:
    change = line.change
    first, second, factor = change.first, change.second, change.factor
    common = (first.gateway, first.quantity, number(first.ratio, 3), number(second.ratio, 3))
    outcome = f"{line.outcome} ({line.reason})" if line.reason in (_SITTING, "control") else line.outcome
    if factor is None:
        return (*common, "-", "-", outcome)
    ends = f"{factor.lower:.3f} to {factor.upper:.3f} ({factor.interval.coverage:.0%})"
    return (*common, f"{factor.value:.3f}", ends, outcome)


def document(difference: RatioDifference) -> list[dict[str, Any]]:
    """Return plain JSON values, one object for each gateway and quantity."""
    return [_document(line) for line in difference.lines]


def _document(line: JudgedChange) -> dict[str, Any]:
    change, factor = line.change, line.change.factor
    return {
        "gateway": change.first.gateway,
        "quantity": change.first.quantity,
        "outcome": line.outcome,
        "reason": line.reason or None,
        "why": line.why,
        "first": _of(change.first),
        "second": _of(change.second),
        "value": None if factor is None else factor.value,
        "lower": None if factor is None else factor.lower,
        "upper": None if factor is None else factor.upper,
        "coverage": None if factor is None else factor.interval.coverage,
        "control_margin": None if math.isinf(change.margin) else change.margin,
        "differences": [asdict(difference) for difference in change.differences],
        "about": [asdict(difference) for difference in change.about],
    }


def _of(estimate: RatioEstimate) -> dict[str, Any]:
    return {
        "ratio": estimate.ratio,
        "low": estimate.low,
        "high": estimate.high,
        "level": estimate.level,
        "verdict": estimate.verdict,
    }
