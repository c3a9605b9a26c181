# SPDX-License-Identifier: Apache-2.0
"""Difference of two results: the ratio of their medians, with Moses' confidence interval over all pairs.

The value of a repetition that ended with a search is known only within the search error. A repetition that the tester
limited is only a lower bound. Queues before a device may have raised its rate, and the tester's receivers have lowered
it. The ratio of each pair is the range that these leave.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from natgauge.known_doubts import known
from natgauge.metrics import declared
from natgauge.metrics.metric import Better
from natgauge.notes import Note, NoteWord
from natgauge.records.measurement import MedianInterval, Result
from natgauge.records.repetition import Repetition
from natgauge.statistics.interval import CONFIDENCE, ConfidenceInterval, finite
from natgauge.statistics.summary import interval_of
from natgauge.statistics.two_samples import moses_interval, shift_coverage
from natgauge.words import NO_DEVICE

#: Settings of a search: the largest distance of its final bounds.
_ERRORS: Final = frozenset({"error", "capacity_error"})
#: No more than this share is taken for too low: nothing is known of a device that has next to no time.
_MOST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Contrast:
    """A second result against a first one.

    Attributes:
        kind: "ratio", of second to first; "difference", second minus first, where a value is 0 or below.
        interval: interval of the value; an end is infinite, and a ratio's lower one 0, where a value is a bound only.
        larger: the larger median, of which a margin of a difference is a share; 0 for a ratio.
    """

    kind: Literal["ratio", "difference"]
    value: float
    interval: ConfidenceInterval
    larger: float = 0.0

    @property
    def same(self) -> float:
        """Value of the contrast where the results are equal: ratio 1, difference 0."""
        return 1.0 if self.kind == "ratio" else 0.0

    @property
    def sure(self) -> bool:
        """Whether there are enough repetitions for the interval to reach the confidence level."""
        return self.interval.coverage >= CONFIDENCE

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out that nothing differs."""
        return self.same not in self.interval


@dataclass(frozen=True, slots=True)
class Span:
    """Range that contains a repetition's true value."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class LeftEnds:
    """What doubts leave of a range of true values: the words of those that leave no such end.

    Attributes:
        unknown: words of the doubts that could change the answer and leave no end certain.
    """

    lower: tuple[NoteWord, ...]
    upper: tuple[NoteWord, ...]
    unknown: tuple[NoteWord, ...]

    @property
    def opened(self) -> tuple[NoteWord, ...]:
        """Words of the doubts that leave one end."""
        return (*self.lower, *self.upper)

    def of(self, lower: float, upper: float) -> tuple[float, float]:
        """The range from `lower` to `upper` with the ends that stay; another is infinite."""
        return -math.inf if self.lower else lower, math.inf if self.upper else upper


def left(result: Result, doubts: Iterable[Note] | None = None) -> LeftEnds:
    """Return what a result's doubts leave of it, or what some of them do.

    A doubt that only names the limit of a time or cost leaves what the range of a repetition has already.
    """
    is_rate = better(result.metric) == "higher"
    lower: dict[NoteWord, None] = {}
    upper: dict[NoteWord, None] = {}
    unknown: dict[NoteWord, None] = {}
    for doubt in result.doubts if doubts is None else doubts:
        of, leaves = known(doubt.word), _leaves(doubt, result)
        is_grave = doubt.grade == "answer"
        if is_rate and (of.hides or (is_grave and leaves == "at least")):
            upper[doubt.word] = None
        elif is_rate and is_grave and leaves == "at most":
            lower[doubt.word] = None
        elif is_grave and leaves != "bounds" and not _is_of_share(doubt) and not _is_limit(doubt, result):
            unknown[doubt.word] = None
    return LeftEnds(tuple(lower), tuple(upper), tuple(unknown))


def _leaves(doubt: Note, result: Result) -> str:
    """Return the end of a rate that a doubt leaves certain here; "bounds" only where each repetition has some.

    A repetition that the device ended, and of which no load was too high, seems to be exact. Where the doubt is its own
    note, its value is a lower bound.
    """
    leaves = known(doubt.word).leaves
    exact = [each for each in result.repetitions if each.upper is None and each.limited_by not in NO_DEVICE]
    if leaves != "bounds" or not exact:
        return leaves
    is_own = all(any(note.word == doubt.word for note in each.notes) for each in exact)
    return "at least" if is_own else ""


def contrast(first: Result, second: Result, confidence: float = CONFIDENCE, *, seen: bool = False) -> Contrast:
    """The second result against the first; both of one metric, whatever else differs.

    The interval aims at the coverage `confidence` (0 to 1), and has less where the repetitions are too few. `seen`: of
    these repetitions, whatever grave doubts leave of them, which the reader names beside it.
    """
    positive = min(*first.values, *second.values) > 0
    moses = _moses(spans(first, seen=seen), spans(second, seen=seen), confidence, positive=positive)
    value = second.median / first.median if positive else second.median - first.median
    # Of repetitions that are not spread alike, the ratio of the medians may lie outside of the pairs' interval.
    interval = replace(moses, lower=min(moses.lower, value), upper=max(moses.upper, value))
    if positive:
        return Contrast("ratio", value, interval)
    return Contrast("difference", value, interval, max(abs(first.median), abs(second.median)))


def spans(result: Result, *, seen: bool = False) -> list[Span]:
    """Return the range of each repetition's true value, in their order; `seen` as of `contrast`."""
    least = own_times(result.metric, result.repetitions, result.doubts)
    return [
        _widened(repetition, result, own, seen=seen) for repetition, own in zip(result.repetitions, least, strict=True)
    ]


def least_repetitions() -> int:
    """Return the number of repetitions that both results need for an interval at the confidence level."""
    return next(number for number in range(1, 100) if shift_coverage(number, number, 1) >= CONFIDENCE)


def better(metric: str) -> Better | None:
    """Return which values of a metric are better; None where neither is, or the metric is unknown."""
    return declared(metric).better


def _span(repetition: Repetition, result: Result) -> Span:
    """Return the range of a repetition. The value of a search is its lower bound.

    A repetition that the device did not limit has no upper bound. For times and costs the directions are reversed: a
    time that the host lengthened, and a cost that the tester's own work hides, have no lower bound. Where neither value
    is better, as of a ratio, nobody knows which way the limit moved it: it has no bound at all.
    """
    upper = repetition.value if repetition.upper is None else max(repetition.value, repetition.upper)
    if better(result.metric) == "lower":
        return Span(0.0 if _is_most(repetition) else repetition.value, upper)
    if _is_least(repetition) or (repetition.limited_by in NO_DEVICE and repetition.limited_by != "time"):
        least = 0.0 if repetition.value >= 0 else -math.inf
        return Span(least if better(result.metric) is None else repetition.value, math.inf)
    return Span(repetition.value, upper)


def _is_most(repetition: Repetition) -> bool:
    """Whether a time or cost is an upper bound: the host lengthened it, or the tester's own work hides it."""
    return repetition.limited_by in ("host", "tester")


def _is_least(repetition: Repetition) -> bool:
    """Whether a rate is a lower bound: no load was too high, and its own doubt or a limit of the tester ended it."""
    is_undecided = any(known(note.word).leaves == "bounds" for note in repetition.notes)
    return repetition.upper is None and (is_undecided or repetition.limited_by in NO_DEVICE)


def _sampled(repetition: Repetition, result: Result, span: Span) -> Span:
    """Return a range that contains what the sample of the repetition, or the bucket of its percentile, allows, too."""
    names = declared(result.metric).sampled_between or ()
    ends = [repetition.figures.get(name) for name in names]
    if ends.count(None) == len(ends):
        return span
    least, most = ends
    return Span(min(span.lower, least or 0.0), max(span.upper, math.inf if most is None else most))


def own_times(metric: str, repetitions: Sequence[Repetition], doubts: Iterable[Note]) -> list[float]:
    """Return the least that each value may be without what stalls and the tester added: of no delay, the value.

    Stalls leave the figure without the frames that were due in them, or nothing where that is not known, or where a
    doubt says that too short ones were not seen. Frames that left together waited for each other.
    """
    every, stalls, batches = tuple(doubts), "frames in stalls", "batches"
    # Its own figure has the name of the value.
    name = f"{declared(metric).value_figure.removesuffix('_us')}_without_stalls_us"
    unseen = min((doubt.value for doubt in every if doubt.word == stalls and doubt.value is not None), default=math.inf)
    waits = [math.inf if doubt.value is None else doubt.value for doubt in every if doubt.word == batches]
    found = []
    for each in repetitions:
        is_unknown = any(note.word == stalls for note in each.notes)
        without = each.figures.get(name, 0.0 if is_unknown else each.value)
        least = min(each.value, without, unseen) - max(waits, default=0.0)
        found.append(max(least, min(each.value, 0.0)))
    return found


def _widened(repetition: Repetition, result: Result, own: float, *, seen: bool) -> Span:
    """Return the range of a repetition with what its doubts may have done to it; a known share moves an end.

    `own` is the least that its value may be by what the tester and its host added.
    """
    sampled = _sampled(repetition, result, _span(repetition, result))
    # The bucket of a percentile is as wide below it.
    below = sampled.lower / repetition.value if repetition.value > 0 else 1.0
    span = Span(min(sampled.lower, own * below), sampled.upper)
    counting = [doubt for doubt in result.doubts if not seen or known(doubt.word).hides]
    kept = left(result, [doubt for doubt in counting if not _is_of_share(doubt)])
    lower, upper = kept.of(*widened(span.lower, span.upper, result.doubts))
    return Span(max(lower, min(span.lower, 0.0)), upper)


def _is_of_share(doubt: Note) -> bool:
    """Whether a doubt tells by which share a rate may be wrong."""
    return bool(known(doubt.word).share) and doubt.value is not None


def _is_limit(doubt: Note, result: Result) -> bool:
    """Whether a doubt says no more than what limited a time or cost, of which `_span` opens an end."""
    limit = result.limited_by
    return better(result.metric) == "lower" and limit in ("host", "tester") and doubt.word == f"{limit} limited"


def left_bounds(result: Result) -> tuple[float, float]:
    """Return `bounds` with the ends that doubts leave; one that they open is 0 or infinite."""
    lower, upper = left(result).of(*bounds(result))
    return max(lower, min(result.median, 0.0)), upper


def bounds(result: Result) -> tuple[float, float]:
    """Return the range of the device's true median; both ends are the median where the device itself was the limit.

    The distance between the last two loads of a search is its error, not a limit. A limit of the tester, host or server
    makes the median a lower bound, and so does a sample without an upper end, such as a fall between two readings. A
    search that ran out of time has two bounds, or only the lower one.
    """
    limits = {result.limited_by, *(repetition.limited_by for repetition in result.repetitions)}
    sampled = [_sampled(each, result, Span(each.value, each.value)) for each in result.repetitions]
    if not limits & NO_DEVICE and math.isinf(statistics.median(span.upper for span in sampled)):
        return result.median, math.inf
    if not limits & NO_DEVICE and not (better(result.metric) == "higher" and any(map(_is_least, result.repetitions))):
        return result.median, result.median
    limit = result.limited_by if result.limited_by in NO_DEVICE else None
    limited = [_span(replace(each, limited_by=limit or each.limited_by), result) for each in result.repetitions]
    lower = min(result.median, statistics.median(span.lower for span in limited))
    upper = max(result.median, statistics.median(span.upper for span in limited))
    return lower, upper


def is_searched(result: Result) -> bool:
    """Whether a search found the value: a rate or a number, never a share.

    Elsewhere the upper bound of a repetition is that of frames or periods that were excused.
    """
    is_told = result.error is not None or bool(_ERRORS & result.parameters.settings.keys())
    return is_told and result.unit != "%"


def search_error(result: Result) -> float | None:
    """Return the largest error of a search, in the result's unit; None without a search, or where one has no bound."""
    return result.error if is_searched(result) else None


def unfailed(result: Result) -> int:
    """Return the number of repetitions whose search tried nothing that was too high."""
    ended = [each for each in result.repetitions if each.upper is None and each.limited_by in NO_DEVICE]
    return len(ended) if is_searched(result) else 0


def _moses(first: Sequence[Span], second: Sequence[Span], confidence: float, *, positive: bool) -> ConfidenceInterval:
    def of(second: float, first: float) -> float:
        return second - first if not positive else second / first if first else math.inf

    pairs = [(of_first, of_second) for of_first in first for of_second in second]
    lowest = [of(of_second.lower, of_first.upper) for of_first, of_second in pairs]
    highest = [of(of_second.upper, of_first.lower) for of_first, of_second in pairs]
    return moses_interval(lowest, highest, len(first), len(second), confidence)


def widened(lower: float, upper: float, doubts: Iterable[Note]) -> tuple[float, float]:
    """Return the range of a rate with the shares of its doubts; both ends and the shares at least 0."""
    every = tuple(doubts)
    return lower / (1 + _share(every, "too high")), upper / (1 - min(_share(every, "too low"), _MOST))


def _share(doubts: Iterable[Note], direction: Literal["too high", "too low"]) -> float:
    """The sum of the shares of different doubts; of one that several repetitions have, the largest."""
    largest: dict[NoteWord, float] = {}
    for doubt in doubts:
        if known(doubt.word).share == direction:
            largest[doubt.word] = max(largest.get(doubt.word, 0.0), doubt.value or 0.0)
    return sum(largest.values())


def median_interval_of(metric: str, repetitions: Sequence[Repetition], doubts: Iterable[Note]) -> MedianInterval | None:
    """Return the confidence interval of a metric's median; None for one repetition.

    A rate that something other than the device ended, and of which no load was too high, has no upper end. A time or
    cost that something other than the device made larger may have been 0, or `own_times`.
    """
    is_rate, is_cost = (better(metric) == wanted for wanted in ("higher", "lower"))
    every = tuple(doubts)
    own = own_times(metric, repetitions, every)
    lowers = [
        min(each.value, 0.0) if is_cost and _is_most(each) else least
        for each, least in zip(repetitions, own, strict=True)
    ]
    ends = [each.value if each.upper is None else max(each.value, each.upper) for each in repetitions]
    uppers = [math.inf if is_rate and _is_least(each) else end for each, end in zip(repetitions, ends, strict=True)]
    found = interval_of(lowers, uppers)
    if found is None:
        return None
    lower, upper = (found.lower, found.upper) if found.lower < 0 else widened(found.lower, found.upper, every)
    return MedianInterval(lower=lower, upper=finite(upper), coverage=found.coverage)
