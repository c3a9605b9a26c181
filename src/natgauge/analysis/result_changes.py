# SPDX-License-Identifier: Apache-2.0
"""Results of two runs: each metric's ratio, its confidence interval, and the conclusion."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from natgauge.analysis.between_runs import Sitting, sitting_of
from natgauge.analysis.change import Change, Changes, Conclusion, matched, side, split, verdict
from natgauge.analysis.comparing import Difference, comparable
from natgauge.analysis.contrast import Contrast, LeftEnds, better, contrast, least_repetitions, left
from natgauge.errors import UsageError
from natgauge.figure_text import in_percent
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.statistics.interval import CONFIDENCE

#: A sentence mentions changes from this share on that the noise may hide.
_MUCH: Final = 0.1
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


def changes(
    first: Sequence[Result], second: Sequence[Result], *, about: Collection[str], margin: float
) -> Changes[Result]:
    """Compare results of the same metrics, those with the most similar parameters first.

    Results whose repetitions did not alternate are called better or worse only with a margin, because their repetitions
    do not show how far runs of one gateway differ on this host.
    """

    def unlike(mine: Result, its: Result) -> tuple[int, ...]:
        # Pairs that differ only in what the comparison is about come first.
        return tuple(map(len, _differences(mine, its, about)))

    pairs, *alone = matched(first, second, lambda result: result.metric, unlike)
    if first and second and not pairs:
        raise UsageError(
            f"diff: nothing to compare: the first run has {_metrics(first)}, the second {_metrics(second)}; "
            "name two runs of the same metrics"
        )
    return Changes(tuple(_change(*pair, about, margin) for pair in pairs), *alone)


def _metrics(results: Sequence[Result]) -> str:
    return ", ".join(dict.fromkeys(result.metric for result in results))


def _differences(
    first: Result, second: Result, about: Collection[str]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    return split(comparable(first, second, except_for=about), comparable(first, second))


def _change(first: Result, second: Result, about: Collection[str], margin: float) -> Change[Result]:
    kept, allowed = _differences(first, second, about)
    if first.functional or second.functional:
        conclusion = Conclusion("not compared", "functional", f"{FUNCTIONAL}: {_EMULATED}")
    elif kept:
        conclusion = Conclusion("not compared", "set up differently", "; ".join(map(str, kept)))
    else:
        found = contrast(first, second)
        return Change(first, second, _conclusion(first, second, found, margin), found, (), allowed)
    return Change(first, second, conclusion, None, kept, allowed)


def _conclusion(first: Result, second: Result, found: Contrast, margin: float) -> Conclusion:
    larger, sitting = side(found, margin), sitting_of(first, second)
    if not found.sure:
        return Conclusion("cannot tell", "few repetitions", _few(first, second, found))
    kept = [left(result) for result in (first, second)]
    unknown = dict.fromkeys(word for each in kept for word in each.unknown)
    if unknown:
        return Conclusion("cannot tell", "doubts", f"doubts could change the answer: {', '.join(unknown)}")
    if not larger and not _bounded(found):
        return Conclusion("cannot tell", "limits", _limits(first, second, kept))
    if not larger:
        return Conclusion("no difference seen", why=_hidden(first, second, found), sitting=sitting)
    if sitting and not margin:
        return Conclusion("cannot tell", sitting, _SITTING[sitting], sitting)
    return Conclusion(verdict(larger, better(first.metric)), sitting=sitting)


def _limits(first: Result, second: Result, kept: Sequence[LeftEnds]) -> str:
    limits = dict.fromkeys(result.limited_by for result in (first, second))
    words = dict.fromkeys(word for each in kept for word in each.opened)
    if words and set(limits) == {"device"}:
        return f"doubts make a figure a bound: {', '.join(words)}"
    return f"the bottleneck was {' and '.join(limits)}, not the device alone"


def _few(first: Result, second: Result, found: Contrast) -> str:
    least = least_repetitions()
    return (
        f"{len(first.repetitions)} and {len(second.repetitions)} repetitions give "
        f"{in_percent(found.interval.coverage)} at "
        f"most; {least} and {least} are enough for {in_percent(CONFIDENCE)}"
    )


def _bounded(found: Contrast) -> bool:
    """Whether both ends of the interval are known; the lower end 0 of a ratio is not."""
    interval = found.interval
    return not (
        math.isinf(interval.lower) or math.isinf(interval.upper) or (found.kind == "ratio" and interval.lower == 0)
    )


def _hidden(first: Result, second: Result, found: Contrast) -> str:
    """Return the change that the noise may hide, where it is large, and the spread of both runs' repetitions."""
    fall, rise = 1 - found.interval.lower, found.interval.upper - 1
    if found.kind != "ratio" or max(fall, rise) < _MUCH:
        return ""
    spreads = [(result.maximum - result.minimum) / result.median for result in (first, second)]
    return (
        f"a fall of up to {in_percent(max(0.0, fall))} or a rise of up to {in_percent(max(0.0, rise))} is possible, "
        "because "
        f"repetitions differ by {in_percent(spreads[0])} of their median in the first run and by "
        f"{in_percent(spreads[1])} in the second"
    )
