# SPDX-License-Identifier: Apache-2.0
"""The verdict on a ratio of costs from the ends of its interval."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

from natgauge.notes import Note, NoteWord, known
from natgauge.records.comparison import ComparisonRecord, CostVerdict, RatioEstimate

#: An interval around 1 says that there is no difference if it ends within so many times `resolve` from 1: one of half
#: the width `resolve` does so wherever it lies.
_WITHIN: Final = 2.0
#: Words of doubts whose shares the interval of a ratio contains (`comparisons.by_rates.most_too_high`).
_IN_INTERVAL: Final = frozenset({"queues", "short trials"})
#: Words of notes on what ended the rounds of a comparison before its answer.
ENDS: Final = ("ended early", "time used up")


def verdict_of(lower: float, upper: float, margin: float, resolve: float) -> CostVerdict:
    """Return the verdict on a ratio whose interval is known; `margin` as of `margin_of`.

    An open lower end is 0, an open upper one infinite.
    """
    if lower > margin:
        return "costs more"
    if upper < 1 / margin:
        return "costs less"
    if margin > 1 and (margin > 1 + resolve or not lower <= 1 <= upper):
        return "undecided"
    is_bounded = 0 < lower <= upper < math.inf
    # As half widths are: shares of the larger cost.
    return "no difference" if is_bounded and max(1 - lower, 1 - 1 / upper) <= _WITHIN * resolve else "undecided"


def margin_of(lower: float, upper: float) -> float:
    """Return the factor by which the A/A control may differ from the baseline; 1 if its interval contains 1.

    Infinite where both ends are open: such an interval says nothing of the noise.
    """
    if is_open(lower, upper):
        return math.inf
    if lower <= 1 <= upper:
        return 1.0
    return max(upper, 1 / lower if lower > 0 else math.inf)


def is_open(lower: float, upper: float) -> bool:
    """Whether both ends of an interval are open; as of `verdict_of`."""
    return lower <= 0 and math.isinf(upper)


def says_nothing(control: RatioEstimate) -> bool:
    """Whether an A/A control has an interval with two open ends, which shows nothing of the noise."""
    return control.low is not None and is_open(*control.ends)


def is_alike(one: tuple[float, float], other: tuple[float, float], resolve: float, fail_above: float | None) -> bool:
    """Whether two intervals of ratios lead to the same verdict, where nothing is known of the noise."""
    verdicts = {verdict_of(*ends, 1.0, resolve) for ends in (one, other)}
    answers = {None if fail_above is None else above(*ends, 1.0, fail_above) for ends in (one, other)}
    return len(verdicts) == len(answers) == 1


def above(lower: float, upper: float, margin: float, fail_above: float) -> bool | None:
    """Whether a gateway surely costs more, or surely no more, than `fail_above` allows; None = neither."""
    limit = 1 + fail_above
    return True if lower > limit * margin else False if upper * margin <= limit else None


def is_decided(estimate: RatioEstimate, fail_above: float | None) -> bool:
    """Whether the question about a gateway and quantity is answered."""
    return estimate.verdict != "undecided" if fail_above is None else estimate.above is not None


def is_narrow(estimate: RatioEstimate, resolve: float, fail_above: float | None) -> bool:
    """Whether measuring longer would not say more than was asked for: it is answered, by an interval as narrow."""
    narrow = fail_above is not None or (estimate.half_width is not None and estimate.half_width <= resolve)
    return narrow and is_decided(estimate, fail_above)


def doubts_of_all(record: ComparisonRecord) -> tuple[Note, ...]:
    """Return the doubts that could change every cost of a comparison, such as lines of a log that were lost.

    What ended the rounds is none: intervals are those of the rounds that there were.
    """
    return tuple(note for note in record.notes if note.grade == "answer" and note.word not in ENDS)


def doubts_of(record: ComparisonRecord, estimate: RatioEstimate) -> tuple[Note, ...]:
    """Return the doubts of a gateway's cost, and of the comparison."""
    return (*record.gateway(estimate.gateway).doubts.get(estimate.quantity, ()), *doubts_of_all(record))


def grave_doubts(record: ComparisonRecord, estimates: Sequence[RatioEstimate]) -> tuple[NoteWord, ...]:
    """Return the words of the doubts that could change these costs, those of the baseline's rates among them."""
    of_baseline = [note for one in estimates for note in record.baseline.doubts.get(one.quantity, ())]
    found = [*doubts_of_all(record), *of_baseline, *(note for one in estimates for note in doubts_of(record, one))]
    return tuple(dict.fromkeys(note.word for note in found if note.grade == "answer"))


def doubts_of_answer(record: ComparisonRecord) -> tuple[NoteWord, ...]:
    """Return the words of the doubts that could change the answer; empty also where one cost above the limit has none.

    One cost above the limit is an answer whatever the others are.
    """
    each = [_changing(record, one) for one in record.estimates if one.above or not record.above]
    return () if record.above and not all(each) else tuple(dict.fromkeys(itertools.chain.from_iterable(each)))


def _changing(record: ComparisonRecord, estimate: RatioEstimate) -> list[NoteWord]:
    """The words of the doubts that leave open the end of a ratio, "low" or "high", from which its answer follows."""
    sides: dict[CostVerdict | bool | None, str] = {
        True: "low", "costs more": "low", False: "high", "costs less": "high",
    }  # fmt: skip
    answer = estimate.verdict if record.fail_above is None else estimate.above
    needed = {sides[answer]} if answer in sides else {"low", "high"}
    of_baseline = record.baseline.doubts.get(estimate.quantity, ())
    # A rate that may be higher leaves open how little its gateway costs, and how much another one costs against it.
    opened = [(note, {"at least": "low", "at most": "high"}) for note in doubts_of(record, estimate)]
    opened += [(note, {"at least": "high", "at most": "low"}) for note in of_baseline]
    return [
        note.word
        for note, by in opened
        if note.grade == "answer"
        and note.word not in _IN_INTERVAL
        and by.get(known(note.word).leaves) not in {"low", "high"} - needed
    ]
