# SPDX-License-Identifier: Apache-2.0
"""Comparison of two runs: each metric's ratio, its confidence interval, and the conclusion."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from natgauge.analysis.contrast import Contrast, better, contrast, least_repetitions
from natgauge.analysis.pairing import Pair, pair
from natgauge.analysis.scalability import varied_with
from natgauge.analysis.sittings import Sitting, sitting_of
from natgauge.errors import UsageError
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.records.parameters import GROUPS, Parameters, describe
from natgauge.records.store import plain
from natgauge.reports.bottleneck import bottleneck
from natgauge.reports.rows import doubt_words, number, unit_of
from natgauge.reports.text import fitted
from natgauge.statistics.interval import CONFIDENCE

DIFF_SCHEMA: Final = "natgauge-diff-1"

#: Outcome of a metric.
Outcome = Literal["better", "worse", "changed", "no difference seen", "cannot tell", "not compared"]

#: Reason why there is no conclusion about a metric; "" where there is one.
Reason = Literal[
    "", "one lab each", "one sitting each", "few repetitions", "limits", "set up differently", "functional", "control"
]

#: Exit statuses for continuous integration; 2 to 4 are errors, as everywhere.
ALIKE: Final = 0
WORSE: Final = 1
UNKNOWN: Final = 5


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric of both runs.

    Attributes:
        pair: the two results.
        contrast: difference of the results; None where they must not be compared.
        outcome: conclusion from the difference.
        reason: word for the reason why there is no conclusion; "" otherwise.
        why: the same as a sentence, or the change that the noise may hide; empty otherwise.
        sitting: word for how the runs were measured in time; "" where their repetitions alternated.
    """

    pair: Pair
    contrast: Contrast | None
    outcome: Outcome
    reason: Reason
    why: str
    sitting: Sitting = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Comparison of a second run with a first run: a line per pair, and results without a partner."""

    lines: tuple[MetricDifference, ...]
    only_first: tuple[Result, ...]
    only_second: tuple[Result, ...]

    @property
    def exit_status(self) -> int:
        """1 where something is worse, or changed where neither is better; 5 where something is unknown; 0 otherwise."""
        outcomes = {line.outcome for line in self.lines}
        if outcomes & {"worse", "changed"}:
            return WORSE
        unknown = outcomes & {"cannot tell", "not compared"} or self.only_first or self.only_second
        return UNKNOWN if unknown else ALIKE


#: The text mentions changes from this share on that the noise may hide.
_MUCH: Final = 0.1


def diff(
    first: Sequence[Result],
    second: Sequence[Result],
    *,
    about: Collection[str] = (),
    across: Collection[str] = (),
    margin: float = 0.0,
) -> Diff:
    """Compare the results of a second run with those of a first run.

    Args:
        first: results of the first run.
        second: results of the second run.
        about: names of parameters, or of groups ("settings", "traffic", "place", "device"), that may differ.
        across: names of parameters that were varied on purpose; they, and what grows with them, may differ.
        margin: share (0 to below 1) by which a metric may change without being called better or worse. It states how
            far runs of one gateway differ on this host, which their repetitions do not show. So results whose
            repetitions did not alternate are called better or worse only with a margin.

    Raises:
        UsageError: a name in `about` or `across` is unknown, `margin` is out of range, or the runs share no metric.
    """
    check_names([result.parameters for result in (*first, *second)], about, across, margin)
    varied = [name for axis in across for name in varied_with(axis)]
    paired = pair(first, second, about=[*about, *varied])
    if not paired.pairs:
        raise UsageError(
            f"diff: nothing to compare: the first run has {_metrics(first)}, the second {_metrics(second)}; "
            "name two runs of the same metrics"
        )
    lines = tuple(_line(pair, margin) for pair in paired.pairs)
    return Diff(lines, paired.only_first, paired.only_second)


def check_names(
    parameters: Sequence[Parameters], about: Collection[str], across: Collection[str], margin: float
) -> None:
    """Refuse names of parameters that no result has, and a margin that is out of range.

    Raises:
        UsageError: the first thing that is wrong.
    """
    if not 0 <= margin < 1:
        raise UsageError(f"diff: margin {margin:g} is not from 0 to below 1 (100%); give a share such as 5%")
    known = {name for set_of in parameters for _, name, _ in set_of.items()}
    for option, names, allowed in (("about", about, known | set(GROUPS)), ("across", across, known)):
        for name in names:
            if name not in allowed:
                groups = f", or a group: {', '.join(GROUPS)}" if option == "about" else ""
                raise UsageError(
                    f"diff: {option} {name!r}: neither run has such a parameter; take a name as in `parameters` of "
                    f"summary.json{groups}"
                )


def _metrics(results: Sequence[Result]) -> str:
    return ", ".join(dict.fromkeys(result.metric for result in results))


def _line(pair: Pair, margin: float) -> MetricDifference:
    if pair.first.functional or pair.second.functional:
        return MetricDifference(pair, None, "not compared", "functional", f"{FUNCTIONAL}: {_EMULATED}")
    if pair.differences:
        return MetricDifference(pair, None, "not compared", "set up differently", "; ".join(map(str, pair.differences)))
    return _contrasted(pair, contrast(pair.first, pair.second), margin)


def _contrasted(pair: Pair, contrast: Contrast, margin: float) -> MetricDifference:
    if not contrast.sure:
        return MetricDifference(pair, contrast, "cannot tell", "few repetitions", _few(pair, contrast))
    outcome = _judged(pair, contrast, margin)
    if outcome == "cannot tell":
        limits = " and ".join(dict.fromkeys(result.limited_by for result in (pair.first, pair.second)))
        return MetricDifference(pair, contrast, outcome, "limits", f"the bottleneck was {limits}, not the device alone")
    sitting = sitting_of(pair.first, pair.second)
    if outcome == "no difference seen":
        return MetricDifference(pair, contrast, outcome, "", _hidden(pair, contrast), sitting)
    if sitting and not margin:
        return MetricDifference(pair, contrast, "cannot tell", sitting, _SITTING[sitting], sitting)
    return MetricDifference(pair, contrast, outcome, "", "", sitting)


_EMULATED: Final = "an emulated machine shows that a device works, and its figures are not compared"
#: Sentence for repetitions that do not sample the differences between runs.
_REMEDY: Final = (
    "the interval does not cover the differences between runs of one gateway; measure both in one campaign, whose "
    "repetitions alternate, or state how far runs may differ: --margin"
)
_SITTING: Final[dict[Sitting, str]] = {
    "one lab each": f"repetitions of one or both results share one lab, and {_REMEDY}",
    "one sitting each": f"the results were measured at different times, and {_REMEDY}",
}


def _few(pair: Pair, contrast: Contrast) -> str:
    numbers = [len(result.repetitions) for result in (pair.first, pair.second)]
    least = least_repetitions()
    return (
        f"{numbers[0]} and {numbers[1]} repetitions give {contrast.interval.coverage:.0%} at most; {least} and {least} "
        f"are enough for {CONFIDENCE:.0%}"
    )


def _judged(pair: Pair, contrast: Contrast, margin: float) -> Outcome:
    """Return the outcome of an interval; a difference (where one value is 0) has no margin."""
    lowest, highest = (1 - margin, 1 / (1 - margin)) if contrast.kind == "ratio" else (0.0, 0.0)
    if contrast.interval.lower > highest:
        return _word(pair, risen=True)
    if contrast.interval.upper < lowest:
        return _word(pair, risen=False)
    if (
        math.isinf(contrast.interval.upper)
        or math.isinf(contrast.interval.lower)
        or (contrast.kind == "ratio" and contrast.interval.lower == 0)
    ):
        return "cannot tell"
    return "no difference seen"


def _hidden(pair: Pair, contrast: Contrast) -> str:
    """Return the change that the noise may hide, where it is large, and the spread of both runs' repetitions."""
    if contrast.kind != "ratio" or max(1 - contrast.interval.lower, contrast.interval.upper - 1) < _MUCH:
        return ""
    spreads = [(result.maximum - result.minimum) / result.median for result in (pair.first, pair.second)]
    return (
        f"a fall of up to {max(0.0, 1 - contrast.interval.lower):.0%} or a rise of up to "
        f"{max(0.0, contrast.interval.upper - 1):.0%} is possible, because repetitions differ by {spreads[0]:.0%} of "
        f"their median in the first run and by {spreads[1]:.0%} in the second"
    )


def _word(pair: Pair, *, risen: bool) -> Outcome:
    wanted = better(pair.first.metric)
    if wanted is None:
        return "changed"
    return "better" if risen == (wanted == "higher") else "worse"


def text(diff: Diff, width: int | None = None) -> str:
    """Return a line per metric, the varied parameters, then the reasons against a conclusion.

    Args:
        diff: the difference.
        width: most characters of a line of the table; None = any.
    """
    head = ("metric", "gateway", "first", "second", "unit", "second/first", f"interval {CONFIDENCE:.0%}", "")
    rows = [head, *(_row(line) for line in diff.lines)]
    lines = fitted(rows, right=(2, 3, 5, 6), width=width)
    for at, line in enumerate(diff.lines, start=1):
        lines += [f"Line {at}: {sentence}." for sentence in _reasons(line)]
    for where, missing in (("first", diff.only_first), ("second", diff.only_second)):
        lines += [f"Only in the {where} run: {result.metric} of {result.gateway}." for result in missing]
    return "\n".join(lines)


def _row(line: MetricDifference) -> tuple[str, ...]:
    first, second = line.pair.first, line.pair.second
    gateways = " against ".join(dict.fromkeys((first.gateway, second.gateway)))
    common = (first.metric, gateways, number(first.median), number(second.median), unit_of(first))
    if line.contrast is None:
        return (*common, "-", "-", line.outcome)
    outcome = f"{line.outcome} ({line.reason})" if line.reason in _SITTING else line.outcome
    return (*common, value_of(line.contrast), interval_of(line.contrast), outcome)


def value_of(contrast: Contrast) -> str:
    """Return the ratio, or the signed difference."""
    return f"{contrast.value:.3f}" if contrast.kind == "ratio" else f"{contrast.value:+.3g}"


def interval_of(contrast: Contrast) -> str:
    """Return both ends of the interval; with too few repetitions, also its coverage."""
    if contrast.interval.coverage == 0:
        return "-"
    form = ".3f" if contrast.kind == "ratio" else "+.3g"
    upper = "more" if math.isinf(contrast.interval.upper) else f"{contrast.interval.upper:{form}}"
    worth = "" if contrast.sure else f" ({contrast.interval.coverage:.0%})"
    lower = "less" if math.isinf(contrast.interval.lower) else f"{contrast.interval.lower:{form}}"
    return f"{lower} to {upper}{worth}"


def _reasons(line: MetricDifference) -> list[str]:
    sentences = [f"{line.outcome}: {line.why}"] if line.why else []
    sentences += [f"differs as requested: {difference}" for difference in line.pair.about]
    limits = [bottleneck(result) for result in (line.pair.first, line.pair.second)]
    if limits[0] != limits[1]:
        sentences.append(f"bottleneck of the first: {limits[0]}; of the second: {limits[1]}")
    for where, result in (("first", line.pair.first), ("second", line.pair.second)):
        if result.doubts:
            sentences.append(f"doubts of the {where}: {doubt_words(result)}")
    return sentences


def document(diff: Diff) -> dict[str, Any]:
    """Return plain JSON values; an unbounded end of an interval is null."""
    return {
        "schema": DIFF_SCHEMA,
        "exit_status": diff.exit_status,
        "comparisons": [_document(line) for line in diff.lines],
        "ratios": [],
        "only_first": [_named(result) for result in diff.only_first],
        "only_second": [_named(result) for result in diff.only_second],
    }


def _document(line: MetricDifference) -> dict[str, Any]:
    contrast = line.contrast
    return {
        "metric": line.pair.first.metric,
        "unit": line.pair.first.unit,
        "outcome": line.outcome,
        "reason": line.reason or None,
        "why": line.why,
        "sitting": line.sitting or None,
        "first": _named(line.pair.first),
        "second": _named(line.pair.second),
        "kind": None if contrast is None else contrast.kind,
        "value": None if contrast is None else contrast.value,
        "lower": None if contrast is None or math.isinf(contrast.interval.lower) else contrast.interval.lower,
        "upper": None if contrast is None or math.isinf(contrast.interval.upper) else contrast.interval.upper,
        "coverage": None if contrast is None else contrast.interval.coverage,
        "differences": [
            _as_dict(difference.name, difference.first, difference.second) for difference in line.pair.differences
        ],
        "about": [_as_dict(difference.name, difference.first, difference.second) for difference in line.pair.about],
    }


def _as_dict(name: str, first: object, second: object) -> dict[str, object]:
    return {"name": name, "label": describe(name).heading, "first": first, "second": second}


def _named(result: Result) -> dict[str, Any]:
    return {
        "metric": result.metric,
        "gateway": result.gateway,
        "median": result.median,
        "repetitions": list(result.values),
        "limited_by": result.limited_by,
        "cause": plain(result.cause),
        "doubts": [doubt.word for doubt in result.doubts],
        "results": result.results,
    }
