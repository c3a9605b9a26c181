# SPDX-License-Identifier: Apache-2.0
"""A second run compared with a first one: measurements, comparisons and audits, each with those of its own kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, TypeVar

from natgauge.analysis import run_changes
from natgauge.analysis.contrast import Contrast
from natgauge.analysis.derived import varied_with
from natgauge.analysis.run_changes import ALIKE, UNKNOWN, WORSE, Change, Changes, Examined, Outcome, Thing
from natgauge.analysis.unit_frames import counted_unit
from natgauge.errors import UsageError
from natgauge.figure_text import given, with_noun
from natgauge.interval_text import percent, ratio, signed
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import FRAME_OF, KIND_OF, ComparisonRecord, RatioEstimate
from natgauge.records.measurement import Result
from natgauge.records.parameters import GROUPS
from natgauge.records.store import plain
from natgauge.reports import main_figure
from natgauge.reports.main_figure import bottleneck, mark_in_words, stated_number
from natgauge.reports.rows import doubt_words, unit_of
from natgauge.reports.text import fitted
from natgauge.statistics.summary import CONFIDENCE, finite
from natgauge.tables import aligned

DIFF_SCHEMA: Final = "natgauge-diff-1"

Record = Result | ComparisonRecord | AuditRecord
_Kind = TypeVar("_Kind")

#: Reasons that stand next to the outcome.
_WITH_OUTCOME: Final = frozenset({"one lab each", "one sitting each", "control"})
#: The answer is a line that became worse or changed, as the exit status; then better, then less known.
_RANKS: Final[Mapping[Outcome, int]] = {"better": 1, "cannot tell": 2, "not compared": 3, "no difference seen": 4}


@dataclass(frozen=True, slots=True)
class Diff:
    """Comparison of a second run with a first run, by kind of record."""

    results: Changes[Result]
    ratios: Changes[RatioEstimate]
    audits: Changes[Examined]

    @property
    def kinds(self) -> tuple[Changes[Any], ...]:
        """The changes in each kind of record."""
        return self.results, self.ratios, self.audits

    @property
    def lines(self) -> tuple[Change[Any], ...]:
        """All changes."""
        return tuple(line for kind in self.kinds for line in kind.lines)

    @property
    def exit_status(self) -> int:
        """1 where something is worse, or changed where neither is better; 5 where something is unknown; 0 otherwise."""
        outcomes = {line.outcome for line in self.lines}
        if outcomes & {"worse", "changed"}:
            return WORSE
        alone = any(kind.only_first or kind.only_second for kind in self.kinds)
        return UNKNOWN if alone or outcomes & {"cannot tell", "not compared"} else ALIKE


def diff(
    first: Sequence[Record],
    second: Sequence[Record],
    *,
    about: Collection[str] = (),
    across: Collection[str] = (),
    margin: float = 0.0,
) -> Diff:
    """Compare the records of a second run with those of a first run, each with one of the same kind.

    Args:
        first: records of the first run: results of measurements, records of comparisons and of audits.
        second: records of the second run.
        about: names of parameters, or of groups ("settings", "traffic", "place", "device"), that may differ.
        across: names of parameters that were varied on purpose; they, and what grows with them, may differ.
        margin: share (0 to below 1) by which a figure may change without being called better or worse.

    Raises:
        UsageError: a name in `about` or `across` is unknown, `margin` is out of range, or the runs have nothing of one
            kind in common.
    """
    if not any(_of(kind, first) and _of(kind, second) for kind in (Result, ComparisonRecord, AuditRecord)):
        raise UsageError(
            "diff: the runs have neither measurements, comparisons nor audits in common; name two folders of one kind"
        )
    _check_names([*first, *second], about, across, margin)
    allowed = [*about, *(name for axis in across for name in varied_with(axis))]
    return Diff(
        run_changes.changes_of_results(_of(Result, first), _of(Result, second), about=allowed, margin=margin),
        run_changes.changes_of_ratios(
            _of(ComparisonRecord, first), _of(ComparisonRecord, second), about=allowed, margin=margin
        ),
        run_changes.changes_of_audits(_of(AuditRecord, first), _of(AuditRecord, second), about=allowed),
    )


def _of(kind: type[_Kind], records: Sequence[Record]) -> list[_Kind]:
    return [record for record in records if isinstance(record, kind)]


def _check_names(records: Sequence[Record], about: Collection[str], across: Collection[str], margin: float) -> None:
    if not 0 <= margin < 1:
        raise UsageError(f"diff: margin {margin:g} is not from 0 to below 1 (100%); give a share such as 5%")
    known = {name for record in records for name in _parameters(record)}
    for option, names, allowed in (("about", about, known | set(GROUPS)), ("across", across, known)):
        for name in names:
            if name not in allowed:
                groups = f", or a group: {', '.join(GROUPS)}" if option == "about" else ""
                raise UsageError(
                    f"diff: {option} {name!r}: neither run has such a parameter; take a name as in `parameters` of "
                    f"summary.json{groups}"
                )


def _parameters(record: Record) -> Collection[str]:
    if isinstance(record, AuditRecord):
        return record.conditions
    every = [record.parameters] if isinstance(record, Result) else [each.parameters for each in record.gateways]
    return {name for parameters in every for _, name, _ in parameters.items()}


@dataclass(frozen=True, slots=True)
class _View(Generic[Thing]):
    """How changes in figures of one kind are shown.

    Attributes:
        head: heads of all columns but the outcome's.
        right: numbers of the columns that are aligned to the right.
        row: cells before the contrast.
        named: what a line is about, both figures, and their unit, for the first line.
        interval: form of the contrast's interval.
        only: sentence for a thing that only the named run has.
        sentences: sentences below the table, in addition to those of all kinds.
    """

    head: tuple[str, ...]
    right: tuple[int, ...]
    row: Callable[[Change[Thing]], tuple[str, ...]]
    named: Callable[[Change[Thing]], tuple[str, str, str, str]]
    interval: Callable[[Contrast], str]
    only: Callable[[Thing, str], str]
    sentences: Callable[[Change[Thing]], list[str]] = lambda _line: []


def text(diff: Diff, width: int | None = None) -> str:
    """Return the answer, then a line for each change, with the reasons against a conclusion below each table.

    Args:
        width: most characters of a line of a table; None = any.
    """
    ratios = _table(diff.ratios, _RATIOS, width)
    parts = [_table(diff.results, _RESULTS, width), [*ratios, _MOVER] if diff.ratios.lines else ratios]
    return "\n\n".join("\n".join(part) for part in (*parts, _audits(diff.audits)) if part)


def _table(changes: Changes[Thing], view: _View[Thing], width: int | None) -> list[str]:
    rows = [(*view.head, ""), *(_row(line, view) for line in changes.lines)]
    lines = [_answer(changes, view), *fitted(rows, right=view.right, width=width)] if changes.lines else []
    for at, line in enumerate(changes.lines, start=1):
        sentences = [f"{line.outcome}: {line.conclusion.why}"] if line.conclusion.why else []
        sentences += [f"differs, which --about or --across allows: {difference}" for difference in line.about]
        lines += [f"Line {at}: {sentence}." for sentence in (*sentences, *view.sentences(line))]
    for which, missing in (("first", changes.only_first), ("second", changes.only_second)):
        lines += [view.only(thing, which) for thing in missing]
    return lines


def _answer(changes: Changes[Thing], view: _View[Thing]) -> str:
    """Return what changed most and surely, worse before better; where nothing did, what is least known."""
    first = min(changes.lines, key=lambda line: (_RANKS.get(line.outcome, 0), -_size(line.contrast)))
    what, before, after, unit = view.named(first)
    reason = f" ({first.conclusion.reason})" if first.conclusion.reason else ""
    figures = f"first {before}, then {after} {unit}".rstrip()
    text = f"{first.outcome.capitalize()}{reason}: {what}, {figures}{_doubt(first, view)}."
    counts = Counter(line.outcome for line in changes.lines)
    others = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    return f"{text} Of {len(changes.lines)} lines: {others}." if len(changes.lines) > 1 else text


def _size(contrast: Contrast | None) -> float:
    """How far a contrast is from no difference; where its interval contains that, how far it may be."""
    if contrast is None:
        return 0.0
    ends = (contrast.value,) if contrast.differs else (contrast.interval.lower, contrast.interval.upper)
    if contrast.kind == "ratio":
        return max(abs(math.log(end)) if 0 < end < math.inf else math.inf for end in ends)
    return max(abs(end) for end in ends) / contrast.larger if contrast.larger else 0.0


def _doubt(line: Change[Thing], view: _View[Thing]) -> str:
    """Return the contrast with its interval, as the end of the answer."""
    contrast = line.contrast
    if contrast is None:
        return ""
    times = f"{value_of(contrast)} times" if contrast.kind == "ratio" else value_of(contrast)
    coverage = contrast.interval.coverage
    # Intervals of comparisons have the level of the comparisons.
    usual = contrast.sure and view.interval is interval_of
    level = given(CONFIDENCE) if usual else percent(coverage, "down", width=1)
    return f": {times} ({f'{_ends(contrast)}; {level} interval' if coverage else 'no interval'})"


def _row(line: Change[Thing], view: _View[Thing]) -> tuple[str, ...]:
    shown = ("-", "-") if line.contrast is None else (value_of(line.contrast), view.interval(line.contrast))
    reason = line.conclusion.reason
    outcome = f"{line.outcome} ({reason})" if reason in _WITH_OUTCOME else line.outcome
    return (*view.row(line), *shown, outcome)


def value_of(contrast: Contrast) -> str:
    """Return the ratio, or the signed difference."""
    return (ratio if contrast.kind == "ratio" else signed)(contrast.value)


def interval_of(contrast: Contrast) -> str:
    """Return both ends of the interval; with too few repetitions, also its coverage."""
    if contrast.interval.coverage == 0:
        return "-"
    return _ends(contrast) if contrast.sure else _covering(contrast)


def _covering(contrast: Contrast) -> str:
    return f"{_ends(contrast)} ({percent(contrast.interval.coverage, 'down', width=1)})"


def _ends(contrast: Contrast) -> str:
    text = ratio if contrast.kind == "ratio" else signed
    upper = "more" if math.isinf(contrast.interval.upper) else text(contrast.interval.upper, "up")
    lower = "less" if math.isinf(contrast.interval.lower) else text(contrast.interval.lower, "down")
    return f"{lower} to {upper}"


def _of_results(line: Change[Result]) -> tuple[str, str, str, str, str]:
    first, second = line.first, line.second
    gateways = " against ".join(dict.fromkeys((first.gateway, second.gateway)))
    return first.metric, gateways, main_figure.median(first), main_figure.median(second), unit_of(first)


def _named_results(line: Change[Result]) -> tuple[str, str, str, str]:
    metric, gateways, _, _, unit = _of_results(line)
    first, second = (f"{stated_number(each)}{mark_in_words(each)}" for each in (line.first, line.second))
    return f"{metric} of {gateways}", first, second, unit


def _named_ratios(line: Change[RatioEstimate]) -> tuple[str, str, str, str]:
    before, after = ("not known" if each.ratio is None else ratio(each.ratio) for each in (line.first, line.second))
    unit = "times the baseline's"
    if line.second.ratio is None:
        before, unit = before if line.first.ratio is None else f"{before} {unit}", ""
    return f"cost of {line.first.gateway} ({FRAME_OF[line.first.quantity]})", before, after, unit


def _bottlenecks_and_doubts(line: Change[Result]) -> list[str]:
    limits = [bottleneck(result) for result in (line.first, line.second)]
    sentences = [f"bottleneck of the first: {limits[0]}; of the second: {limits[1]}"] if limits[0] != limits[1] else []
    for where, result in (("first", line.first), ("second", line.second)):
        if result.doubts:
            sentences.append(f"doubts of the {where}: {doubt_words(result)}")
    return sentences


def _of_ratios(line: Change[RatioEstimate]) -> tuple[str, str, str, str]:
    before, after = ("-" if each.ratio is None else ratio(each.ratio) for each in (line.first, line.second))
    return line.first.gateway, KIND_OF[line.first.quantity], before, after


_RESULTS: Final = _View(
    ("metric", "gateway", "first", "second", "unit", "second/first", f"interval {given(CONFIDENCE)}"),
    (2, 3, 5, 6),
    _of_results,
    _named_results,
    interval_of,
    lambda result, which: f"Only in the {which} run: {result.metric} of {result.gateway}.",
    _bottlenecks_and_doubts,
)
_RATIOS: Final = _View(
    ("gateway", "of", "first", "second", "second/first", "interval"),
    (2, 3, 4, 5),
    _of_ratios,
    _named_ratios,
    _covering,
    lambda estimate, which: f"Only in the {which} comparison: {estimate.gateway} ({FRAME_OF[estimate.quantity]}).",
)
_MOVER: Final = (
    "Ratios are costs relative to the baseline; second/first is the ratio of both, with a confidence interval (MOVER) "
    "that takes the comparisons as independent."
)


def _audits(changes: Changes[Examined]) -> list[str]:
    """Return a line for each changed verdict and class, or that there is none."""
    lines = []
    pairs = dict.fromkeys((line.first.gateway, line.second.gateway) for line in changes.lines)
    names = ", ".join(before if before == after else f"{before} and {after}" for before, after in pairs)
    changed = _changed(changes)
    if changed:
        rows = [("gateway", "what", "transport", "before", "after", "measured")]
        rows += [
            (after.gateway, after.what, after.transport, before.seen or "-", after.seen or "-", after.measured)
            for before, after in ((line.first, line.second) for line in changed)
        ]
        outcomes = Counter(line.outcome for line in changed)
        one_sided = sum(line.first.is_decided != line.second.is_decided for line in changed)
        counted = f"{outcomes['worse']} worse, {outcomes['better']} better"
        differ = with_noun(outcomes["worse"] + outcomes["better"], "verdicts differ", "verdict differs")
        more = f"; {one_sided} have a verdict in one run only" if one_sided else ""
        more += "; cannot tell, for an audit saw almost nothing" if any(one.first.is_whole for one in changed) else ""
        lines.append(f"Behaviour of {names} (audits): {differ} ({counted}){more}")
        lines += _alike(changes)
        lines += [f"  {line}" for line in aligned(rows)]
    elif changes.lines:
        lines += [f"Behaviour of {names} (audits): nothing changed", *_alike(changes)]
    for which, missing in (("first", changes.only_first), ("second", changes.only_second)):
        lines += [f"Only in the {which} run: audit of {audit.gateway}." for audit in missing]
    return lines


def _alike(changes: Changes[Examined]) -> list[str]:
    """Return the line that counts verdicts that both audits have, and requirements that neither could tell."""
    seen = [(line.first, line.second) for line in changes.lines]
    both = Counter(before.seen for before, after in seen if before.is_decided and before.seen == after.seen)
    neither = sum(
        "not seen" in (before.seen, after.seen) and not (before.is_decided or after.is_decided)
        for before, after in seen
    )
    counts = {"met": both["meets"], "failed": both["fails"], "not seen": neither}
    found = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    return [f"Requirements before and after: {found}."] if found else []


def _changed(changes: Changes[Examined]) -> list[Change[Examined]]:
    return [line for line in changes.lines if line.outcome != "no difference seen"]


def document(diff: Diff) -> dict[str, Any]:
    """Return plain JSON values; an end of an interval that is not known is null."""
    return {
        "schema": DIFF_SCHEMA,
        "exit_status": diff.exit_status,
        "comparisons": [
            {
                "metric": line.first.metric,
                "unit": counted_unit(line.first.metric, line.first.unit, line.first.parameters),
                **_judged(line, _result),
                "sitting": line.conclusion.sitting or None,
                "kind": None if line.contrast is None else line.contrast.kind,
            }
            for line in diff.results.lines
        ],
        "ratios": [
            {
                "gateway": line.first.gateway,
                "quantity": line.first.quantity,
                **_judged(line, _estimate),
                "control_margin": finite(line.control),
            }
            for line in diff.ratios.lines
        ],
        "audits": [_verdict(line) for line in _changed(diff.audits)],
        "only_first": _alone(*(kind.only_first for kind in diff.kinds)),
        "only_second": _alone(*(kind.only_second for kind in diff.kinds)),
    }


def _alone(
    results: Sequence[Result], estimates: Sequence[RatioEstimate], audits: Sequence[Examined]
) -> list[dict[str, Any]]:
    return [
        *(_result(result) for result in results),
        *({"gateway": each.gateway, "quantity": each.quantity, **_estimate(each)} for each in estimates),
        *({"gateway": audit.gateway} for audit in audits),
    ]


def _judged(line: Change[Thing], of: Callable[[Thing], dict[str, Any]]) -> dict[str, Any]:
    contrast = line.contrast
    return {
        "outcome": line.outcome,
        "reason": line.conclusion.reason or None,
        "why": line.conclusion.why,
        "first": of(line.first),
        "second": of(line.second),
        "value": None if contrast is None else contrast.value,
        "lower": None if contrast is None else finite(contrast.interval.lower),
        "upper": None if contrast is None else finite(contrast.interval.upper),
        "coverage": None if contrast is None else contrast.interval.coverage,
        "differences": [asdict(difference) for difference in line.differences],
        "about": [asdict(difference) for difference in line.about],
    }


def _result(result: Result) -> dict[str, Any]:
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


def _estimate(estimate: RatioEstimate) -> dict[str, Any]:
    return estimate.model_dump(mode="json", include={"ratio", "low", "high", "level", "verdict"})


def _verdict(line: Change[Examined]) -> dict[str, Any]:
    after = asdict(line.second)
    seen = after.pop("seen")
    return {**after, "before": line.first.seen, "after": seen, "outcome": line.outcome}
