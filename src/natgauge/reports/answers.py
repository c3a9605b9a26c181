# SPDX-License-Identifier: Apache-2.0
"""Answers in words, made from records: who is best and by how much, what cores and connections change, what limited.

Every sentence is a template over the data of `natgauge.analysis.conditions`. A sentence that compares has the interval
of the comparison, or begins with "Cannot tell".
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.analysis import conditions
from natgauge.analysis.conditions import (
    LEAST_COVERAGE,
    Certainty,
    Claim,
    Ranking,
    claim,
    growths,
    held_together,
    rankings,
    routes,
    weakest,
    work,
)
from natgauge.analysis.contrast import better, drift, least_repetitions
from natgauge.analysis.derived import CORES, SESSIONS, WITH_TESTER, Axis, of_forwarding, varied_with
from natgauge.analysis.sizing import keeps_connections
from natgauge.analysis.unit_frames import Way, bits_of_unit, drawn_frames
from natgauge.figure_text import at_least, at_most, given, in_full, number, with_noun
from natgauge.interval_text import between_bits, figure_and_interval, in_bits, ratio, signed, span
from natgauge.metrics import declared, figures
from natgauge.metrics.catalogue import CONNECTION_RATE, FEW_FRAMES, JUDGED, KEPT, MIXED_LOAD, TIMED_FRAMES
from natgauge.metrics.metric import CONNECTIONS_PER_SECOND, IN_ALL, OPEN_CONNECTIONS, TABLE_ENTRIES
from natgauge.plain_text import capital
from natgauge.records.measurement import Result
from natgauge.records.parameters import describe
from natgauge.reports import labels, main_figure
from natgauge.reports.labels import grouped
from natgauge.reports.main_figure import OF_BOUNDS, bottleneck, stated_bounds, stated_number
from natgauge.reports.rows import UNIT_IN_ALL, Bounded, Ranged, kept, opened_by_draws, unit_of, unit_of_frames
from natgauge.statistics.summary import CONFIDENCE, FigureSummary
from natgauge.words import MOST_NAMES, NO_DEVICE, few, listed

#: Meaning of each certainty, for a legend; `meanings` adds what holds for the sentences at hand.
_MEANINGS: Final[Mapping[Certainty, str]] = {
    "sure": (
        "confidence intervals, of at least {}, allow no other answer, and no doubt that was found could change this one"
    ),
    "seen": "in these repetitions, not sure beyond them",
    "cannot tell": "the interval includes no difference, or is not known",
}
#: Parameters that distinguish points, in words.
_VARIED: Final = {"connections": "connections", "device_cores": "cores", "frame_size": "frame size"}
#: Ends of sentences by the directions that have these bits.
WAYS: Final[Mapping[Way, str]] = {"one": "", "each": " in each direction", "busier": " in the busier direction"}
#: Figures that are a constant times the value; of a mixed load those of its connections only where these are not set.
_GROWING: Final = frozenset({IN_ALL, CONNECTIONS_PER_SECOND, OPEN_CONNECTIONS, TABLE_ENTRIES})
#: A ratio of which neither end is known.
_ANY: Final = "any number of"
#: Why there is no interval.
_TOO_FEW: Final = "too few repetitions for an interval"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One answer.

    Attributes:
        certainty: how sure the answer is; None where it compares nothing.
        about: what the ratios of the sentence are, as the head of a column.
        ratios: gateway and ratio, where the sentence lists several gateways.
        unlike: the different conditions that the sentence says, of each metric; empty = it says something else.
        is_gap: whether it says what is missing from the answers that compare, which a paper must not leave out.
        claims: the contrasts behind the certainty, from which a legend says what that means.
    """

    text: str
    certainty: Certainty | None = None
    reasons: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    leads: bool = False
    about: str = ""
    ratios: tuple[tuple[str, str], ...] = ()
    unlike: tuple[conditions.Unlike, ...] = ()
    is_gap: bool = False
    claims: tuple[Claim, ...] = field(default=(), compare=False, repr=False)


def meanings(sentences: Sequence[Sentence], levels: Sequence[float] = ()) -> dict[Certainty, str]:
    """Return what each certainty means in these sentences; `levels` are those of intervals without a claim."""
    sure = [each for one in sentences for each in one.claims if each.certainty == "sure"]
    known = [_MEANINGS["sure"].format(given(min((CONFIDENCE, *levels))))]
    if several := [each for each in sure if each.among > 1]:
        together = f"the intervals of a ranking contain all its true ratios in at least {given(CONFIDENCE)} of cases"
        alone = "each interval by itself: for all of a ranking together there are too few repetitions"
        known.append(together if all(each.holds_together for each in several) else alone)
    if overlapping := [each for each in sure if _ranges_overlap(each)]:
        text = "ranges of two values may overlap although their ratio is sure: a range is where another run is expected"
        # Only claims on results that took turns are sure.
        drifts = any(drift(result) for each in overlapping for result in (each.first, each.second))
        on_both = ", so that a change of the machine's speed acts on both" if drifts else ""
        known.append(f"{text}; the repetitions behind a ratio took turns{on_both}")
    return {**_MEANINGS, "sure": ". ".join((known[0], *map(capital, known[1:])))}


def _ranges_overlap(claim: Claim) -> bool:
    """Whether the ranges in which other runs are expected overlap, although the values differ."""
    one, other = (main_figure.interval_of(result) for result in (claim.first, claim.second))
    return one.is_expected and other.is_expected and one.low <= other.high and other.low <= one.high


def answers(results: Sequence[Result]) -> list[Sentence]:
    """Return the answers that results give, in the order in which a reader asks for them."""
    every = map(_of_metric, grouped((result.metric, result) for result in results).values())
    found = [replace(sentence, leads=at == 0) for group in every for at, sentence in enumerate(group)]
    # What holds for several metrics is said once.
    unlike: dict[str, tuple[conditions.Unlike, ...]] = {}
    for sentence in found:
        unlike[sentence.text] = (*unlike.get(sentence.text, ()), *sentence.unlike)
    once = {sentence.text: replace(sentence, unlike=unlike[sentence.text]) for sentence in reversed(found)}
    found = list(once.values())[::-1]
    above = [*_nothing(results), *found[:1], *thresholds(results)]
    return [*above, *found[1:], *([_bottlenecks(results)] if results else [])]


def _nothing(results: Sequence[Result]) -> Iterator[Sentence]:
    """Yield which of several results are 0 in every repetition: ratios to them say nothing."""
    none = [
        result
        for result in results
        if better(result.metric) == "higher" and not any(result.values) and result.limited_by not in NO_DEVICE
    ]
    if none and len(results) > 1:
        what = listed(list(dict.fromkeys(f"{result.metric} of {result.gateway}" for result in none)))
        yield Sentence(
            f"0 in every repetition of {len(none)} of {with_noun(len(results), 'results')}: {what}.", leads=True
        )


def thresholds(results: Sequence[Result]) -> Iterator[Sentence]:
    """Yield the verdict on each value that was demanded; of many only those that are not met, after their number."""
    judged = [result for result in results if result.threshold is not None]
    if len(judged) > MOST_NAMES:
        counts = Counter(result.threshold.verdict for result in judged if result.threshold is not None)
        counted = ", ".join(f"{counts[verdict]} {verdict}" for verdict in counts)
        yield Sentence(f"Thresholds: {counted}.", leads=True)
        judged = [result for result in judged if result.threshold is not None and result.threshold.verdict != "met"]
    # What the user demanded is read with the answer, before anything is drawn.
    yield from [Sentence(f"{threshold_of(result, _point(result, results))}.", leads=True) for result in judged]


def threshold_of(result: Result, point: str = "") -> str:
    """Return the verdict on the value that was demanded of a result, without a full stop; empty where none was."""
    threshold = result.threshold
    if threshold is None:
        return ""
    value = f"{in_full(threshold.value)} {unit_of(result)}"
    lower, upper = threshold.lower, threshold.upper
    ends = span(-math.inf if lower is None else lower, math.inf if upper is None else upper, threshold.value)
    why = "" if lower is None and upper is None else f"; another run is expected to have {ends}"
    if threshold.reason:
        # It is why the range says nothing of another run.
        why = f" ({threshold.reason})"
    demanded = f"{threshold.setting.replace('_', ' ')} {value}"
    of = f"{result.metric} of {result.gateway}{f' {point}' if point else ''}"
    return f"{threshold.verdict.capitalize()}: {of} {demanded}{why}"


def not_sure(sentences: Sequence[Sentence], *, listed: bool = False) -> str:
    """Return all reasons why answers are not sure, as one sentence; empty where there is none.

    `listed` is whether the doubts that could change the answer are listed beside it.
    """
    reasons = list(dict.fromkeys(reason for sentence in sentences for reason in sentence.reasons))
    doubts = dict.fromkeys(word for sentence in sentences for word in sentence.doubts)
    reasons += [f"doubts: {', '.join(doubts)}"] if doubts and not listed else []
    return f"Not sure because: {'; '.join(few(reasons))}." if reasons else ""


def _of_metric(results: Sequence[Result]) -> Iterator[Sentence]:
    every = rankings(results) if better(results[0].metric) is not None else []
    grown = {axis: growths(results, axis) for axis in (CORES, SESSIONS)}
    if every:
        ranked = list(_ranked(every, results))
        yield replace(ranked[0], text=f"{ranked[0].text.removesuffix('.')}{_without_forwarding(every, results)}.")
        yield from ranked[1:]
        yield from _left_out(results, every)
    elif not any(grown.values()):
        for own in sorted(_by_work(results), key=lambda own: routes(own[0])):
            if len(own) > MOST_NAMES:
                yield _several(own)
            else:
                yield from [one(result, _point(result, own)) for result in own]
        gateways = [result for result in results if not routes(result)] or results
        if len(results) > MOST_NAMES or len({result.gateway for result in gateways}) > 1:
            yield from _unlike(gateways, so=conditions.NOT_RANKED)
    yield from _shares_of_forwarding(results)
    for axis, each in grown.items():
        yield from _grown(axis, each, results)


def one(result: Result, point: str = "") -> Sentence:
    """Return what a single result says: the value, its range over the repetitions, and more where the metric has it."""
    frames = result.figures.get(TIMED_FRAMES)
    few = frames is not None and frames.minimum < FEW_FRAMES
    said = {each.name: (few and each.answer_of_few) or each.answer for each in figures().values()}
    answers = {IN_ALL: f"{{}} {UNIT_IN_ALL}", **said}
    named = [(name, text, result.figures[name]) for name, text in answers.items() if text and name in result.figures]
    words = {
        "unit": unit_of_frames(result),
        "loss": main_figure.most_lost(result),
        "periods": _periods(result, "periods"),
        "judged": _periods(result, JUDGED),
        "frames": _periods(result, TIMED_FRAMES),
        "first": "opening" if result.parameter("transport") == "tcp" else "first frame",
    }
    values = [_with_range(result, name) for name, _, _ in named]
    more = (
        f"; {text.format(value, range=its_range, had=_had(own, result), **words)}"
        for (_, text, own), (value, its_range) in zip(named, values, strict=True)
    )
    does = f"{_does(result, sized=not point)}{f' {point}' if point else ''}"
    return Sentence(f"{does}: {main_figure.spread(result)}{_in_bits(result)}{''.join(more)}.")


def _with_range(result: Result, name: str) -> tuple[str, str]:
    """A figure, and its range over the repetitions, which is behind its unit."""
    figure = result.figures[name]
    # A share of 0 is 0 of any number of them, and of a bound no bound.
    if _grows(result, name) and figure.median and result.median and not main_figure.statement_of(result).is_median:
        return stated_number(result, figure.median / result.median), ""
    if _grows(result, name):
        # A constant times the value, such as the sum of both directions, has the value's interval.
        return number(figure.median), ""
    if name == KEPT:
        return _kept(result)
    if figure.count == 1:
        return number(figure.median), ""
    return figure_and_interval(figure.median, figure.minimum, figure.maximum)


def _had(figure: FigureSummary, result: Result) -> str:
    """How many repetitions have a figure, as the end of a sentence; empty where all have it."""
    repetitions = len(result.repetitions)
    return f", in {figure.count} of {repetitions} repetitions" if figure.count < repetitions else ""


def _grows(result: Result, name: str) -> bool:
    """Whether a figure is a constant times the value, so that a bound of the value is one of the figure."""
    if name == IN_ALL or result.metric != MIXED_LOAD.name:
        return name in _GROWING
    is_set = result.number("new_rate") is not None or (name == OPEN_CONNECTIONS and not result.number("life_seconds"))
    return name in _GROWING and not is_set


def _kept(result: Result) -> tuple[str, str]:
    """The share that is kept beside a flood, with what both searches of each repetition leave of it."""
    share = kept(result)
    if isinstance(share, Ranged):
        return figure_and_interval(share.median, share.minimum, share.maximum)
    if isinstance(share, Bounded):
        known = f"at most {at_most(share.value)}" if share.bound == "<=" else f"at least {at_least(share.value)}"
        return known, ""
    return "an unknown share", ""


def _in_bits(result: Result, before: str = "; ", after: str = "") -> str:
    """Bits of the frames of a rate, in words between two signs; empty where the value is no rate of known frames.

    Connections are no bits: an operator would take those of their first frames for the traffic that passes.
    """
    is_of_bits = bool(result.median) and result.unit != CONNECTION_RATE.unit
    bits = bits_of_unit(result.metric, result.parameters) if is_of_bits else None
    if bits is None:
        return ""
    wire, packets = (_stated_bits(result, of_unit) for of_unit in (bits.wire, bits.packets))
    # The unit of a rate of frames in each direction says that by itself.
    said = "" if bits.way == "each" and result.unit == "frames/s" else WAYS[bits.way]
    return f"{before}{wire} on the wire, {packets} of IP packets{said}{bits.left_out}{after}"


def _periods(result: Result, name: str) -> str:
    """A number of periods, or of frames; of repetitions that differ, the least and the greatest."""
    periods = result.figures.get(name)
    if periods is None:
        return ""
    return " to ".join(dict.fromkeys(in_full(end) for end in (periods.minimum, periods.maximum)))


def _does(result: Result, *, sized: bool) -> str:
    """What the device does that has this value."""
    does, mark = _predicate(result), main_figure.mark_in_words(result)
    if not does:
        return f"{result.gateway}: {result.metric} {_figure(result)}{mark}"
    if "{value}, " in does:
        # Frames belong to the value, and not to the relative clause about it.
        value = f"{_figure(result)}{main_figure.frames_clause(result, sized=sized)}"
        said = does.format(value=value, opened=_opened(result))
        return f"{result.gateway} {said}{main_figure.condition(result)}{mark}"
    is_one = str(result.parameter("directions")) in {"up", "down"}
    later = "" if is_one else ", in the direction that returns later"
    said = does.format(value=_figure(result), number=stated_number(result), later=later)
    lost = any(doubt.word == "load too high" and doubt.value for doubt in result.doubts)
    came = ", of those that came" if lost else ""
    return f"{result.gateway} {said}{came}{main_figure.terms(result)}{main_figure.clause(result, sized=sized)}{mark}"


def _predicate(result: Result) -> str:
    """What a device does that has a value of this metric, with these settings; empty where reports name the metric."""
    metric = declared(result.metric)
    where = (does for (name, value), does in metric.does_where.items() if result.parameter(name) == value)
    usual = metric.does if keeps_connections(result) else metric.does_stateless or metric.does
    return next(where, usual)


def _opened(result: Result) -> str:
    """The connections/s that a rate of drawn frames opens, in words."""
    if not keeps_connections(result):
        return "no"
    frames, connections = drawn_frames(result.metric, result.parameters), opened_by_draws(result)
    if not frames or connections is None:
        return "fewer"
    about = "about " if main_figure.statement_of(result).is_median else ""
    return f"{about}{stated_number(result, connections / frames)}"


def _value(result: Result, *, bits: bool = False) -> str:
    """The value with its unit and its mark, and with `bits` those of its frames where it is a rate of known frames."""
    text = _in_bits(result, " (", ")") if bits else ""
    return f"{_figure(result)}{main_figure.mark_in_words(result)}{text}{main_figure.missing(result)}"


def _figure(result: Result) -> str:
    return with_noun(stated_number(result), unit_of(result))


def _stated_bits(result: Result, scale: float) -> str:
    """As `stated_number`, with the unit; two bounds have one prefix."""
    least, most = stated_bounds(result, scale)
    if least == most or least <= 0 or math.isinf(most):
        return in_bits(stated_number(result, scale))
    return f"between {between_bits(least, most)}"


def _by_work(results: Sequence[Result]) -> list[list[Result]]:
    return list(grouped((work(result), result) for result in results).values())


def _ranked(every: Sequence[Ranking], results: Sequence[Result]) -> Iterator[Sentence]:
    """The best gateway among those that do the same work, for each work that several do."""
    works = conditions.named_works([done for result in results if not (done := work(result)).forwards])
    for own in _by_work([ranking.results[0] for ranking in every]):
        done = work(own[0])
        first, *more = _ranked_alike(
            [ranking for ranking in every if work(ranking.results[0]) == done],
            [result for result in results if work(result) == done],
        )
        only = f"; this ranks gateways of kind {works[done]} alone" if len(works) > 1 and not done.forwards else ""
        yield replace(first, text=f"{first.text.removesuffix('.')}{only}.")
        yield from more


def _ranked_alike(every: Sequence[Ranking], results: Sequence[Result]) -> Iterator[Sentence]:
    """The best gateway of each ranking, or, where an axis joins the rankings, the points at which each is best."""
    varied = [_VARIED[name] for name in labels.differing_within(results) if name in _VARIED]
    if len(every) > 1 and (varied or len(every) > MOST_NAMES):
        yield _ranked_at_points(every, results, varied)
        yield from _unlike([result for ranking in every for result in ranking.results], _of_points(results))
        return
    for ranking in every:
        yield from _ranked_once(ranking)
        yield from _behind(ranking)


def _of_points(results: Sequence[Result], *axes: str) -> frozenset[str]:
    """Return the parameters in which points of these results differ, and what grows with them."""
    names = [*axes, *(name for name in labels.differing_within(results) if name in _VARIED)]
    return frozenset().union(*map(varied_with, names))


def _unlike(
    results: Sequence[Result], except_for: Collection[str] = (), so: str = conditions.ORDERED
) -> Iterator[Sentence]:
    """Say in which conditions results differ that a sentence puts into an order, or that are not ranked."""
    found = conditions.unlike([conditions.figure_of(result) for result in results], except_for=except_for, so=so)
    if found is not None:
        yield Sentence(str(found), unlike=(found,))


def _without_forwarding(every: Sequence[Ranking], results: Sequence[Result]) -> str:
    """The end of a headline that ranks only gateways that translate, where other devices were measured, too."""
    ranked = {result.gateway for ranking in every for result in ranking.results}
    others = list(
        dict.fromkeys(result.gateway for result in results if routes(result) and result.gateway not in ranked)
    )
    only = f"{listed(others)} only {'forwards' if len(others) == 1 else 'forward'}" if others else ""
    return f"; this compares gateways that translate, {only}" if others else ""


def _behind(ranking: Ranking) -> Iterator[Sentence]:
    """The gateways that are surely not the best, where it is not known which of the others is."""
    best = ranking.results[0]
    others = [each.first for each in ranking.claims if each.certainty != "cannot tell"]
    if ranking.rivals and others:
        yield _listed(
            "",
            [claim(best, other, held_together(len(ranking.claims))) for other in others],
            f"the {best.metric} of {best.gateway}",
            ranking.claims,
        )


def _ranked_at_points(every: Sequence[Ranking], results: Sequence[Result], varied: Sequence[str]) -> Sentence:
    decided = [ranking for ranking in every if ranking.certainty != "cannot tell"]
    undecided = [ranking for ranking in every if ranking.certainty == "cannot tell"]
    best, noun = _best(every[0].results[0], sized=False), "groups of gateways"
    if varied:
        noun = f"{'combinations' if len(varied) > 1 else 'numbers'} of {listed(varied)}"
    points = f"{len(every)} {noun}"
    if len(decided) < len(undecided):
        return _undecided(undecided, best, f"{len(undecided) if decided else 'any'} of {points}")
    firsts = Counter(ranking.results[0].gateway for ranking in decided)
    (first, times), *others = firsts.most_common()
    own = [ranking for ranking in decided if ranking.results[0].gateway == first]
    at = f"both {noun}" if len(every) == 2 else f"all {points}"
    # Of several points it would not be clear which ones are meant.
    if others or undecided:
        at = f"{times} of {points}{_points(own, results)}"
    gateways = {result.gateway for ranking in every for result in ranking.results}
    if len(gateways) == 2 and not others:
        best = _best(every[0].results[0], (gateways - {first}).pop(), sized=False)
    text = f"{first} {best} at {at}"
    text += "".join(f", {gateway} at {count}" for gateway, count in others[:MOST_NAMES])
    text += f"; cannot tell at {len(undecided)}{_points(undecided, results)}" if undecided else ""
    top = max((ranking.results[0] for ranking in own), key=lambda result: result.median)
    seconds = list(dict.fromkeys(ranking.claims[0].first.gateway for ranking in own))
    second = seconds[0] if len(seconds) == 1 else "the second best"
    text += f". {capital(f'{_point(top, results)} it').lstrip() if len(own) == 1 else 'It'} reaches "
    text += _times([ranking.claims[0] for ranking in own], f"the {top.metric} of {second}")
    if better(top.metric) == "higher":
        up_to = "up to " if main_figure.statement_of(top).is_median and len(own) > 1 else ""
        text += f", and {up_to}{_value(top, bits=True)}"
        text += f" {_point(top, results)}".rstrip() if len(own) > 1 else ""
    claims = [claim for ranking in decided for claim in ranking.claims]
    return _claimed(text, weakest(claims), claims)


def _points(every: Sequence[Ranking], results: Sequence[Result]) -> str:
    """The points of rankings in parentheses; empty where they are many."""
    names = [labels.point_of(ranking.results[0], results) for ranking in every]
    return f" ({listed(names)})" if all(names) and len(names) <= MOST_NAMES else ""


def _undecided(every: Sequence[Ranking], best: str, points: str) -> Sentence:
    """No point has a gateway that is surely better; of two gateways, the ratio is known within limits."""
    gateways = list(dict.fromkeys(result.gateway for ranking in every for result in ranking.results))
    text = f"Cannot tell which of {listed(gateways)} {best}, at {points}"
    if len(gateways) == 2:
        pairs = [{result.gateway: result for result in ranking.results} for ranking in every]
        claims = [claim(pair[gateways[1]], pair[gateways[0]]) for pair in pairs]
        text += f": {gateways[0]} reaches {_times(claims, gateways[1], chance=False, at=False)}"
    return Sentence(f"{text}.", "cannot tell", _why_wide([claim for ranking in every for claim in ranking.claims]))


def _ranked_once(ranking: Ranking) -> Iterator[Sentence]:
    """The best gateway; which of the others cannot be told apart has no part in how sure that is, and its sentence."""
    first = ranking.results[0]
    # A gateway that may be better or worse than measured makes the order of the others no less sure.
    # Bounds are in the interval already.
    more = [claim for claim in ranking.claims if not OF_BOUNDS.issuperset(claim.doubts)]
    is_grave = any(doubt.grade == "answer" for doubt in first.doubts)
    aside = {} if is_grave else {claim.first.gateway: claim.doubts for claim in more}
    claims = [claim for claim in ranking.claims if claim.first.gateway not in aside] or ranking.claims
    certainty = weakest(claims)
    if certainty == "cannot tell":
        rivals = [first, *ranking.rivals]
        text = f"Cannot tell which of {listed([each.gateway for each in rivals])} {_best(first)}: "
        if len(rivals) > 2:
            text += _ends(rivals)
        else:
            unequal = next(claim for claim in ranking.claims if claim.certainty == "cannot tell")
            text += ", ".join(f"{each.gateway} {_value(each, bits=True)}" for each in rivals)
            text += f", {_why_not(unequal)}"
        yield Sentence(f"{text}.", certainty, _why_wide(ranking.claims))
        return
    times = _times(claims[:1], f"that of the next, {claims[0].first.gateway}")
    text = f"{first.gateway} {_best(first)}: {_value(first, bits=True)}, {times}"
    behind = [result for result in ranking.results[1:] if result.gateway not in aside]
    alike = _maybe_last(behind)
    if len(behind) > 1 and not alike:
        text += f"; last of {len(behind) + 1} is {behind[-1].gateway} ({_measured(behind[-1])})"
    if aside and len(aside) < len(ranking.claims):
        left_out = _not_ranked([claim for claim in ranking.claims if claim.first.gateway in aside])
        text += f". Too doubtful to rank {'are' if len(aside) > 1 else 'is'} {left_out}"
    yield _claimed(text, certainty, claims)
    if alike:
        names, values = listed([each.gateway for each in alike]), [f"{one.gateway} {_measured(one)}" for one in alike]
        asked = f"{names} apart" if len(alike) == 2 else f"which of {names} is the last"
        told = f"{asked} by {_plain(first)} ({unit_of(first)}): {', '.join(few(values))}"
        yield Sentence(f"Cannot tell {told}.", "cannot tell")


def _maybe_last(behind: Sequence[Result]) -> list[Result]:
    """Of the gateways behind the best one those that may be the last, where these are several."""
    alike = [each for each in behind[:-1] if claim(each, behind[-1]).certainty == "cannot tell"]
    return [*alike, behind[-1]] if alike else []


def _measured(result: Result) -> str:
    """The figure with its interval, or its bounds; the sentence has the unit."""
    figure = main_figure.within(result) if main_figure.statement_of(result).is_median else stated_number(result)
    return f"{figure}{main_figure.mark_in_words(result)}{main_figure.missing(result)}"


def _ends(results: Sequence[Result], of: Sequence[Result] = ()) -> str:
    """The lowest and the highest of these results, and those of which it is not known; `of` as of `_named`."""
    # Bounds have no place in an order of medians.
    known = [each for each in results if main_figure.statement_of(each).is_median]
    bounds = [each for each in results if not main_figure.statement_of(each).is_median]
    least, most = (end(known, key=lambda result: result.median) for end in (min, max)) if known else (None, None)
    if least is None or most is None:
        return f"only bounds are known, of {_with_values(bounds, of)}"
    if least is most:
        alike = "known is only" if len(known) == 1 else "equal are"
        names = listed([_named(each, of) for each in known])
        return f"{alike} {names} with {_value(most, bits=True)}{_not_known(bounds, of)}"
    lowest, highest = (f"{_named(each, of)} with {_value(each, bits=True)}" for each in (least, most))
    return f"medians from {lowest} to {highest}{_not_known(bounds, of)}"


def _not_known(bounds: Sequence[Result], of: Sequence[Result]) -> str:
    """Results of which only bounds are known, as the end of a sentence; empty where there is none."""
    return f"; only bounds are known of {_with_values(bounds, of)}" if bounds else ""


def _with_values(bounds: Sequence[Result], of: Sequence[Result]) -> str:
    return listed([f"{_named(each, of)} ({_value(each)})" for each in bounds])


def _named(result: Result, of: Sequence[Result]) -> str:
    """The gateway, and its point among the results `of`."""
    point = labels.point_of(result, of) if of else ""
    return f"{result.gateway} ({point})" if point else result.gateway


def _not_ranked(claims: Sequence[Claim]) -> str:
    """Gateways with grave doubts, in words, each with what these leave of its repetitions."""
    every = {each.first.gateway: each for each in claims}
    return listed([f"{name}: {_left_of(each.first)} ({', '.join(_doubts([each]))})" for name, each in every.items()])


def _left_of(result: Result) -> str:
    """What a first line says of a result, or, instead of a doubtful median, the ends of all repetitions."""
    if not main_figure.statement_of(result).is_median:
        return _figure(result)
    lower, upper = main_figure.ends(result)
    if lower == upper or (lower <= 0 and math.isinf(upper)):
        # No end says more than the median.
        return f"measured {_figure(result)}"
    ends = f"between {at_least(lower)} and {at_most(upper)}" if lower > 0 else f"at most {at_most(upper)}"
    return f"measured {f'at least {at_least(lower)}' if math.isinf(upper) else ends} {unit_of(result)}"


def _claimed(text: str, certainty: Certainty, claims: Sequence[Claim]) -> Sentence:
    """A claim, which is restricted to the repetitions at hand where it is not sure."""
    every = tuple(claims)
    if certainty == "sure":
        return Sentence(f"{text}.", certainty, claims=every)
    return Sentence(f"In these repetitions {text}.", certainty, _reasons(claims), _doubts(claims), claims=every)


def _reasons(claims: Sequence[Claim]) -> tuple[str, ...]:
    found = _few(claims)
    sittings = {claim.sitting for claim in claims}
    if "one lab each" in sittings:
        found.append("the repetitions of a result share one lab")
    elif "one sitting each" in sittings:
        found.append("the results were measured one after the other, not in turns")
    return tuple(found)


def _doubts(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for claim in claims for word in claim.doubts))


def _few(claims: Sequence[Claim]) -> list[str]:
    few = f"fewer than {least_repetitions()} repetitions of each, which {given(CONFIDENCE)} needs"
    return [] if all(claim.contrast.sure for claim in claims) else [few]


def _why_wide(claims: Sequence[Claim]) -> tuple[str, ...]:
    """Reasons for an interval with no difference in it: few repetitions, and the repetitions that differ most."""
    unsure = [claim for claim in claims if claim.certainty == "cannot tell"]
    results = [result for claim in unsure for result in (claim.first, claim.second)]
    spreads = [(result.maximum - result.minimum) / result.median if result.median else 0.0 for result in results]
    share, result = max(zip(spreads, results, strict=True), key=lambda pair: pair[0])
    if not share:
        return tuple(_few(unsure))
    of = f"{result.metric} of {result.gateway} {_point(result, results)}".rstrip()
    text = f"the {len(result.repetitions)} repetitions of {of} differ by {number(100 * share)} % of their median"
    if result.disturbed:
        text += f" ({result.disturbed} of {with_noun(sum(result.trials.values()), 'trials')} were disturbed)"
    return (*_few(unsure), text)


def _why_not(claim: Claim) -> str:
    """Why nothing is known of a difference, as the end of a sentence."""
    if claim.first.functional or claim.second.functional:
        return "and figures of an emulated machine are not compared"
    if claim.contrast.interval.coverage == 0:
        return "and a single repetition of each says nothing of chance"
    if claim.contrast.interval.coverage < LEAST_COVERAGE:
        return f"and there are {_TOO_FEW}"
    first, second, known = claim.first.gateway, claim.second.gateway, f"({_coverage([claim])})"
    if claim.contrast.kind == "difference":
        return f"and {second} minus {first} is {_interval([claim])} {_unit_of_difference(claim)} {known}"
    reached = _interval([claim]) if _is_bounded(claim) else _bound([claim])
    return f"and {second} reaches {reached} times {first} {known}"


def _unit_of_difference(claim: Claim) -> str:
    """The unit of a difference: "+1 %" of a share in % would be read as a ratio."""
    unit = unit_of(claim.first)
    return "percentage points" if unit == "%" else unit


def _left_out(results: Sequence[Result], every: Sequence[Ranking]) -> Iterator[Sentence]:
    """Gateways that are compared with no other, and what differs at the most similar point."""
    ranked = [result for ranking in every for result in ranking.results]
    gateways = {result.gateway for result in ranked}
    emulated = list(dict.fromkeys(result.gateway for result in results if result.functional))
    if emulated:
        why = f"{listed(emulated)}, which ran on an emulated machine"
        yield Sentence(f"Not compared with the others: {why}.", is_gap=True)
    gateways.update(emulated)
    reasons: dict[str, list[str]] = {}
    for gateway in dict.fromkeys(
        result.gateway for result in results if result.gateway not in gateways and not routes(result)
    ):
        own = [result for result in results if result.gateway == gateway]
        figures = [[conditions.figure_of(one) for one in pair] for pair in itertools.product(own, ranked)]
        # Of two gateways that were ranked together it may be like one.
        found = filter(None, map(conditions.unlike_conditions, figures))
        reasons.setdefault(listed([each.label for each in min(found, key=len, default=[])]), []).append(gateway)
    if reasons:
        because = "; ".join(f"{listed(names)}, because of another {differing}" for differing, names in reasons.items())
        yield Sentence(f"Not compared with the others: {because}.", is_gap=True)


def _several(results: Sequence[Result]) -> Sentence:
    """Many results that form no series and of which none is compared with another."""
    differing = [describe(name).label for name in labels.differing_within(results)]
    rest = f"; they differ in {listed(differing)}" if differing else ""
    return Sentence(f"{results[0].metric}: {len(results)} results, {_ends(results, results)}{rest}.")


def _grown(axis: Axis, every: Sequence[Claim], results: Sequence[Result]) -> Iterator[Sentence]:
    """A sentence for each pair of ends of the axis, with every device."""
    by_ends: dict[tuple[float, float], list[Claim]] = {}
    for each in every:
        ends = [result.number(axis.parameter) or 0.0 for result in (each.first, each.second)]
        by_ends.setdefault((ends[0], ends[1]), []).append(each)
    for (first, last), claims in by_ends.items():
        result = claims[0].second
        rate = result.unit.endswith("/s")
        if len(every) == 1:
            own = claims[0].first
            said = (f"{_does(own, sized=False)}{main_figure.missing(own)}", _value(result))
            ends_of = [
                f"{text} {_point(each, results)}{_in_bits(each, ' (', ')')}"
                for text, each in zip(said, (own, result), strict=True)
            ]
            text = ", and ".join(ends_of) + (f": {_times(claims, '')}" if _tells(claims[0]) else "")
            text += f"{_changed_with(axis, claims)}."
            yield Sentence(text, claims[0].certainty, _reasons(claims), _doubts(claims), claims=tuple(claims))
            continue
        names = "cores" if axis is CORES else "connections"
        ideal = f" ({number(last / first)} times is ideal)" if axis is CORES and rate else ""
        change = f"{in_full(int(last))} {names} instead of {in_full(int(first))}{ideal}"
        telling = [each for each in claims if _tells(each)]
        silent = [each for each in claims if not _tells(each)]
        of = listed(list(dict.fromkeys(each.second.gateway for each in silent)))
        if not telling:
            text = f"With {change}, it is not known whether {of} has a higher or a lower {result.metric}."
            yield Sentence(text, "cannot tell", (), _doubts(silent))
            continue
        found = _listed(f"With {change}, ", telling, f"its {result.metric} with {in_full(int(first))}")
        text = f"{found.text.removesuffix('.')}{f'; not known for {of}' if of else ''}{_changed_with(axis, telling)}."
        yield replace(found, text=text, about=f"{_plain(result)} with {change}")
        yield from _unlike_listed(telling, _of_points(results, axis.parameter))


def _changed_with(axis: Axis, claims: Sequence[Claim]) -> str:
    """What changes with the number of connections, as the end of a sentence; empty where nothing does."""
    if axis is not SESSIONS:
        return ""
    about = axis.about - {axis.parameter}
    pairs = [(one.first, one.second) for one in claims]
    names = dict.fromkeys(name for pair in pairs for each in pair for _, name, _ in each.parameters.items())
    changed = [
        describe(name).label
        for name in names
        if name in about and any(one.parameter(name) != other.parameter(name) for one, other in pairs)
    ]
    change = "change" if len(changed) > 1 else "changes"
    return f"; {listed(changed)} {change} with the connections, too" if changed else ""


def _tells(claim: Claim) -> bool:
    """Whether a ratio says in which direction a value changes, or at least has both ends."""
    lower, upper = _limits([claim])
    return _is_bounded(claim) or not lower < 1 < upper


def _shares_of_forwarding(results: Sequence[Result]) -> Iterator[Sentence]:
    """A sentence for each device that only forwards, and one with the gateways that are compared with none."""
    each = [(result, of_forwarding(result, results)) for result in results]
    by_reference: dict[str, list[Claim]] = {}
    for result, share in each:
        if share.reference is not None:
            by_reference.setdefault(share.reference.gateway, []).append(claim(share.reference, result))
    for reference, claims in by_reference.items():
        found = _listed("", claims, f"the {results[0].metric} of {reference}, which only forwards")
        yield replace(found, about=f"{_plain(results[0])}, compared with {reference}, which only forwards")
        yield from _unlike_listed(claims, _of_points(results))
    if any(claim.second.placement == "shared" for claims in by_reference.values() for claim in claims):
        yield Sentence(f"{capital(WITH_TESTER)}.")
    reasons: dict[str, list[str]] = {}
    for result, share in each:
        if share.doubt:
            differing = listed([describe(name).label for name in share.differing])
            reasons.setdefault(f"differing in {differing}" if differing else share.doubt, []).append(result.gateway)
    if reasons:
        because = "; ".join(f"{listed(list(dict.fromkeys(names)))} ({why})" for why, names in reasons.items())
        yield Sentence(f"Not compared with plain forwarding: {because}.")


def _unlike_listed(claims: Sequence[Claim], except_for: Collection[str]) -> Iterator[Sentence]:
    so = conditions.NOT_RANKED if _do_other_work(claims) else conditions.ORDERED
    yield from _unlike([claim.second for claim in claims], except_for, so)


def _do_other_work(claims: Sequence[Claim]) -> bool:
    return len({work(claim.second) for claim in claims}) > 1


def _plain(result: Result) -> str:
    return declared(result.metric).name_in_sentence


def _listed(head: str, claims: Sequence[Claim], of: str, ranked: Sequence[Claim] = ()) -> Sentence:
    """A sentence with the ratios of each device; of many devices, the largest and the smallest.

    Gateways that do other work are in no order, and all of them are named.
    `ranked` are all claims of a ranking: a gateway that may be the best can have a median between those of others.
    """
    known = [each for each in claims if each.contrast.interval.coverage >= LEAST_COVERAGE and _is_bounded(each)]
    by_gateway = grouped((each.second.gateway, each) for each in known or claims)
    in_order = not _do_other_work(claims)
    shown = dict(sorted(by_gateway.items(), key=lambda item: -_middle(item[1]) if in_order else 0.0))
    ratios = tuple((name, _times(own, "", alone=True, at=False)) for name, own in shown.items())
    rest = ""
    if len(shown) > MOST_NAMES and in_order:
        names = list(shown)
        ends = sorted(statistics.median(each.second.median for each in shown[name]) for name in (names[0], names[-1]))
        rivals = [each for each in ranked if each.certainty == "cannot tell" and _is_bounded(each)]
        others = {each.first.gateway for each in rivals if ends[0] <= each.first.median <= ends[1]}
        rest = f"; {with_noun(len(others.union(names)) - 2, 'other gateways lie', 'other gateway lies')} between"
        shown = {name: shown[name] for name in (names[0], names[-1])}
    unknown = [
        gateway for gateway in dict.fromkeys(each.second.gateway for each in claims) if gateway not in by_gateway
    ]
    left = {name: _bound([each for each in claims if each.second.gateway == name]) for name in unknown}
    rest += "".join(f"; {name}: {bound} times" for name, bound in left.items() if bound != _ANY)
    nothing = [name for name, bound in left.items() if bound == _ANY]
    rest += f"; not known for {listed(nothing)}" if nothing else ""
    points = {len(own) for own in shown.values()}
    over = f" over {points.pop()} points" if points not in ({1}, set()) and len(points) == 1 else ""
    parts = [
        f"{gateway} {'' if at else 'reaches '}{_times(own, '' if at else of, alone=len(claims) == 1, at=False)}"
        for at, (gateway, own) in enumerate(shown.items())
    ]
    kept = [each for own in shown.values() for each in own]
    certainties = {each.certainty for each in kept}
    certainty = certainties.pop() if len(certainties) == 1 else "seen"
    seen = [each for each in kept if each.certainty == "seen"]
    # Of a ranking the intervals hold together, where there are enough repetitions for that.
    alone = bool(ranked) and not all(each.holds_together for each in kept)
    cover = "" if len(claims) == 1 else f"; {_coverage(kept, 'intervals')}{', each by itself' if alone else ''}{over}"
    text = f"{head}{', '.join(parts)}{cover}{rest}."
    return Sentence(text, certainty, _reasons(seen), _doubts(seen), about=of, ratios=ratios, claims=tuple(kept))


def _is_bounded(claim: Claim) -> bool:
    interval = claim.contrast.interval
    return claim.contrast.kind == "difference" or (interval.lower > 0 and math.isfinite(interval.upper))


def _middle(claims: Sequence[Claim]) -> float:
    return statistics.median(claim.contrast.value for claim in claims)


def _times(claims: Sequence[Claim], of: str, *, alone: bool = True, at: bool = True, chance: bool = True) -> str:
    """Ratios of claims, such as "1.43 times that of x (1.40 to 1.47, 95 % interval)".

    Args:
        claims: at least one; of several, the range of the ratios and of all intervals.
        of: what the ratio is relative to.
        chance: whether the text says that the ratio may be a matter of chance.
    """
    differences = [claim for claim in claims if claim.contrast.kind == "difference"]
    if differences:
        change = f"{signed(_middle(differences))} {_unit_of_difference(claims[0])}"
        against = f" against {of.removeprefix('that of ')}" if of else ""
        return f"{change}{against} ({_covered(differences)})"
    where = f" at {len(claims)} points" if at and len(claims) > 1 else ""
    covered = min(claim.contrast.interval.coverage for claim in claims)
    cover = f", {_coverage(claims)}" if alone else ""
    lower, upper = _limits(claims)
    # A range of ratios, not their median: points differ by more than chance.
    ratios = [ratio(end([claim.contrast.value for claim in claims])) for end in (min, max)]
    values = " to ".join(dict.fromkeys(ratios))
    is_bounded = all(map(_is_bounded, claims))
    if 0 < covered < LEAST_COVERAGE:
        return f"{values if is_bounded else _bound(claims)} times {of}".rstrip() + f" ({_TOO_FEW})"
    if not is_bounded:
        return f"{_bound(claims)} times {of}".rstrip() + f" ({cover.removeprefix(', ') or 'limited'}{where})"
    uncertain = chance and lower <= 1 <= upper
    inside = _covered(claims) if alone and covered else f"{_interval(claims)}{where}{cover}"
    inside += ", maybe by chance" if uncertain else ""
    return f"{values} times {of}".rstrip() + f" ({inside})"


def _covered(claims: Sequence[Claim]) -> str:
    """The interval with its coverage; of several points, each of which has one of its own, what contains them all."""
    if len(claims) == 1 or not min(claim.contrast.interval.coverage for claim in claims):
        return f"{_interval(claims)}, {_coverage(claims)}"
    return f"at each of {len(claims)} points the {_coverage(claims, aside=True)} lies within {_interval(claims)}"


def _bound(claims: Sequence[Claim]) -> str:
    """What is left of ratios of which an end is not known."""
    lower, upper = _limits(claims)
    if math.isfinite(upper):
        return f"at most {ratio(upper, 'up')}"
    return f"at least {ratio(lower, 'down')}" if lower > 0 else _ANY


def _limits(claims: Sequence[Claim]) -> tuple[float, float]:
    """The ends of the range that contains all intervals."""
    intervals = [claim.contrast.interval for claim in claims]
    return min(each.lower for each in intervals), max(each.upper for each in intervals)


def _coverage(claims: Sequence[Claim], noun: str = "interval", *, aside: bool = False) -> str:
    """The coverage that was asked for, which intervals of few ranks surpass; where they do not reach it, their least.

    It is rounded down; of a single repetition there is none. `aside`: more words follow.
    """
    covered = min(claim.contrast.interval.coverage for claim in claims)
    if covered >= CONFIDENCE:
        return f"{given(CONFIDENCE)} {noun}"
    least = min(len(each.repetitions) for claim in claims for each in (claim.first, claim.second))
    most = f"{math.floor(100 * covered)} % {noun}, the most that {least} repetitions give{',' if aside else ''}"
    return most if covered else f"no {noun}"


def _interval(claims: Sequence[Claim]) -> str:
    """The range that contains all intervals, rounded outward: the printed one contains the true one."""
    if min(claim.contrast.interval.coverage for claim in claims) == 0:
        return "a single repetition"
    lower, upper = _limits(claims)
    if claims[0].contrast.kind == "difference":
        return f"{signed(lower, 'down')} to {signed(upper, 'up')}"
    end = "or more" if math.isinf(upper) else f"to {ratio(upper, 'up')}"
    return f"{ratio(lower, 'down')} {end}"


def _bottlenecks(results: Sequence[Result]) -> Sentence:
    """What limited, most frequent first."""
    counts = Counter(map(bottleneck, results)).most_common()
    share = {limit: f" ({count} of {len(results)} results)" if len(results) > 1 else "" for limit, count in counts}
    return Sentence(f"Bottleneck: {'; '.join(f'{limit}{of}' for limit, of in share.items())}.")


def _best(result: Result, other: str = "", *, sized: bool = True) -> str:
    """What the gateway with the best value does; where only one other is compared with it, what it does better."""
    metric = declared(result.metric)
    than = f" than {other}" if other else ""
    if metric.best is not None and not (metric.does_stateless and not keeps_connections(result)):
        does, terms = metric.best[bool(other)], main_figure.terms(result) if sized else ""
        return f"{does}{terms}{than}{main_figure.clause(result, sized=sized)}"
    is_high = better(result.metric) == "higher"
    if other:
        return f"has a {'higher' if is_high else 'lower'} {result.metric}{than}"
    return f"has the {'highest' if is_high else 'lowest'} {result.metric}"


def _point(result: Result, results: Sequence[Result]) -> str:
    """What distinguishes a result from others of its metric and device, as words."""
    words = labels.point_of(result, results)
    return f"with {words}" if words and not words.startswith("run ") else f"in {words}" if words else ""
