# SPDX-License-Identifier: Apache-2.0
"""Difference of two results: the ratio of their medians, its interval, and what differs between runs.

The interval is that of Moses over all pairs. The value of a repetition that ended with a search is known only within
the search error. A repetition that the tester limited is only a lower bound. Queues before a device may have raised its
rate, and the tester's receivers have lowered it. The ratio of each pair is the range that these leave.

The interval assumes independent repetitions, and those of one run are not: in one lab they share its place in memory,
in one sitting a period of time, during which hosts drift. Where two results alternate in labs of their own, neither
favours one of them. The verdict on a value that was demanded is as strong as the range in which another run is
expected: a threshold within it is neither met nor missed.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from natgauge.metrics import declared
from natgauge.metrics.metric import THRESHOLDS, Better
from natgauge.notes import Note, NoteWord, known
from natgauge.records.measurement import MedianInterval, Result, Threshold, ThresholdVerdict
from natgauge.records.repetition import Repetition
from natgauge.statistics.ranks import moses_interval, shift_coverage
from natgauge.statistics.summary import CONFIDENCE, ConfidenceInterval, finite, interval_of
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
    """What doubts leave of a range of true values: for each end, the words of those that leave no such end.

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
    return [_widened(each, result, own, seen=seen) for each, own in zip(result.repetitions, least, strict=True)]


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

    pairs = [*itertools.product(first, second)]
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
    lowers, uppers = list[float](), list[float]()
    for each, least in zip(repetitions, own, strict=True):
        lowers.append(min(each.value, 0.0) if is_cost and _is_most(each) else least)
        end = each.value if each.upper is None else max(each.value, each.upper)
        uppers.append(math.inf if is_rate and _is_least(each) else end)
    found = interval_of(lowers, uppers)
    if found is None:
        return None
    lower, upper = (found.lower, found.upper) if found.lower < 0 else widened(found.lower, found.upper, every)
    return MedianInterval(lower=lower, upper=finite(upper), coverage=found.coverage)


#: What repetitions of two results do not sample; "" where they took turns in labs of their own.
Sitting = Literal["", "one lab each", "one sitting each"]

#: By how much the speed of a virtual machine changes from one sitting to the next, as a share of a figure, each way:
#: twice the standard deviation that medians of runs had beyond that of their repetitions (5.0 and 5.3 %).
DRIFT: Final = 0.10
#: Seconds between the first and the last repetition that contain this change.
CONTAINS_DRIFT: Final = 600.0
#: Repetitions whose range another run's median leaves more often than not, where no search error or drift widens it.
_FEW: Final = 2
#: Repetitions that are enough for a verdict.
_ENOUGH: Final = 3


def drift(result: Result) -> float:
    """Return by how much another sitting may give more or less than these repetitions, as a share; 0 = not known.

    Other guests share the host of a virtual machine, and its speed changes within minutes.
    """
    if not declared(result.metric).follows_host or not result.parameter("hypervisor"):
        return 0.0
    begun = _begun(result)
    # Only a device on this machine has its speed; its cores are known then.
    if not result.parameter("device_cpus") or (begun and begun[-1] - begun[0] >= CONTAINS_DRIFT):
        return 0.0
    return DRIFT


def sitting_of(first: Result, second: Result) -> Sitting:
    """Return how the repetitions of two results were distributed over labs and time.

    Returns:
        "one lab each" where the repetitions of a result share one lab, or no record says so; "one sitting each" where
        the repetitions had labs of their own, but the two results did not alternate; "" where the results alternated.
    """
    if any((result.number("labs") or 0) < len(result.repetitions) for result in (first, second)):
        return "one lab each"
    return "" if take_turns(first, second) else "one sitting each"


def take_turns(first: Result, second: Result) -> bool:
    """Whether each repetition of both results began before the next one of either did, as in rounds of a campaign."""
    begun = [_begun(result) for result in (first, second)]
    if not begun[0] or len(begun[0]) != len(begun[1]):
        return False
    rounds = list(zip(*begun, strict=True))
    return all(max(times) < min(following) for times, following in itertools.pairwise(rounds))


def _begun(result: Result) -> list[float]:
    """Return the seconds since the epoch at which each repetition began; empty where they were not recorded."""
    begun = result.parameter("begun")
    begins: list[float] = [one for one in begun if isinstance(one, int | float)] if isinstance(begun, list) else []
    return begins if len(begins) == len(result.repetitions) else []


def expected_range(result: Result) -> tuple[float, float] | None:
    """Return the lower and the upper end, in the result's unit; None where a value is only a bound.

    Of a single repetition without an error or a drift it is None, too: its readings say nothing of another run.

    It contains every repetition with the bounds of its search and the shares by which doubts may have moved it. Beyond
    that it has the error of the search each way, because near the limit a load passes or fails by chance, and the drift
    of a virtual machine; as these are independent, as the root of the sum of their squares.
    """
    is_single = any(doubt.word == "single repetition" for doubt in result.doubts)
    if is_single and not _error(result) and not drift(result):
        return None
    lower, upper = possible_range(result)
    return None if math.isinf(upper) else (lower, upper)


def possible_range(result: Result) -> tuple[float, float]:
    """Return the same range where a value is only a bound, too: the end that is not known is 0 or infinite."""
    every = spans(result)
    lower, upper = min(span.lower for span in every), max(span.upper for span in every)
    share, error = drift(result), _error(result)
    below, above = (math.hypot(error, share * end) for end in (result.minimum, result.maximum))
    least = min(result.minimum, 0.0)
    return max(min(lower, result.minimum - below), least), max(upper, result.maximum + above)


def widened_by_doubts(result: Result) -> bool:
    """Whether the range is wider because of shares by which doubts may have moved a repetition."""
    others = tuple(doubt for doubt in result.doubts if not known(doubt.word).share)
    return possible_range(result) != possible_range(result.model_copy(update={"doubts": others}))


def search_share(result: Result) -> float:
    """Return the error of the search as a share of the median; 0 without a search."""
    return _error(result) / abs(result.median) if result.median else 0.0


def _error(result: Result) -> float:
    """The error of the search, in the result's unit: the larger of what was found and asked for; 0 without a search."""
    if not is_searched(result):
        return 0.0
    found, asked = result.error or 0.0, str(result.parameter("error") or 0)
    try:
        number = float(asked.removesuffix("%"))
    except ValueError:
        return found
    return max(found, number / 100 * abs(result.median) if asked.endswith("%") else number)


def judged(result: Result) -> Threshold | None:
    """Return the verdict on the threshold among the settings of a result; None = there is none."""
    for setting in THRESHOLDS.values():
        value = result.number(setting)
        if value is not None:
            lower, upper, reason = _range(result)
            is_least = setting == "at_least"
            verdict: ThresholdVerdict = "cannot tell"
            if not reason and (lower >= value if is_least else upper <= value):
                verdict = "met"
            elif not reason and (upper < value if is_least else lower > value):
                verdict = "not met"
            return Threshold(
                setting="at_least" if is_least else "at_most",
                value=value,
                verdict=verdict,
                lower=finite(lower),
                upper=finite(upper),
                reason=reason,
            )
    return None


def left_range(result: Result) -> tuple[float, float]:
    """Return `possible_range` with the ends that doubts leave certain; an end that they open is infinite."""
    kept = left(result)
    return (-math.inf, math.inf) if kept.unknown else kept.of(*possible_range(result))


def _range(result: Result) -> tuple[float, float, str]:
    """Return the range, opened by doubts that could change the answer, and the reason why it says nothing."""
    kept = left(result)
    lower, upper = kept.of(*possible_range(result))
    if kept.unknown:
        return lower, upper, f"doubts: {', '.join(kept.unknown)}"
    if not result.is_complete:
        return lower, upper, f"{len(result.repetitions)} of {result.planned_repetitions} repetitions so far"
    if _passed_nothing(result):
        return lower, upper, ""
    if len(result.repetitions) == 1:
        return lower, upper, f"one repetition has no spread; {_more(result)}"
    if len(result.repetitions) == _FEW and not _error(result) and not drift(result):
        return lower, upper, f"two repetitions alone show too little of the spread; {_more(result)}"
    return lower, upper, ""


def _passed_nothing(result: Result) -> bool:
    """Whether the device established the connections at no rate, so that no load was tried: repeating changes nothing.

    Any other rate of 0 has an upper bound, the lowest load that failed.
    """
    is_rate = declared(result.metric).better == "higher"
    exact = all(one.upper is None and one.limited_by not in NO_DEVICE for one in result.repetitions)
    return is_rate and exact and not any(result.values)


def _more(result: Result) -> str:
    """What to do about too few repetitions: more are only asked for where fewer than enough were."""
    if result.planned_repetitions < _ENOUGH:
        return f"give --repeat {_ENOUGH} or more"
    return f"{result.planned_repetitions} were asked for, and the doubts say what ended them"
