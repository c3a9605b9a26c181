# SPDX-License-Identifier: Apache-2.0
"""Answers in words, made from records: who is best and by how much, what cores and connections change, what limited.

Every sentence is a template over the data of `natgauge.analysis.claims`. A sentence that compares has the interval of
the comparison, or begins with "Cannot tell".
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from natgauge import procedures
from natgauge.analysis.claims import (
    LEAST_COVERAGE,
    Certainty,
    Claim,
    Growth,
    Ranking,
    claim,
    growths,
    rankings,
    routes,
    weakest,
)
from natgauge.analysis.comparing import comparable
from natgauge.analysis.contrast import better, bounds, least_repetitions
from natgauge.analysis.scalability import CORES, SESSIONS, Axis, of_forwarding
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import ComparisonRecord, RatioEstimate
from natgauge.records.measurement import Result
from natgauge.reports import labels
from natgauge.reports.rows import IN_ALL, UNIT_IN_ALL, number, unit_of, whole
from natgauge.statistics.interval import CONFIDENCE
from natgauge.words import FRAME_OF, LimitedBy

#: Meaning of each certainty, for a legend.
CERTAINTY_MEANINGS: Final[Mapping[Certainty, str]] = {
    "sure": f"at {CONFIDENCE:.0%}",
    "seen": "in these repetitions, not sure beyond them",
    "cannot tell": "the interval includes no difference, or is not known",
}
#: Names in a list; of more, their number.
_MOST_NAMES: Final = 4
#: Parameters that distinguish points, in words.
_VARIED: Final = {"connections": "connections", "device_cores": "cores", "frame_size": "frame size"}
#: Limits of a result, as the subject of a sentence.
_LIMITS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full,",
    "port pool": "the pool of outside ports",
    "tester": "the tester, not the device,",
    "host": "disturbances of this host, not the device,",
    "server": "the real server, not the device,",
    "time": "the available time",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One answer.

    Attributes:
        text: a sentence with its full stop.
        certainty: how sure the answer is; None where it compares nothing.
        reasons: reasons why it is not sure beyond these repetitions.
        leads: whether it is the first answer on its metric or comparison.
    """

    text: str
    certainty: Certainty | None = None
    reasons: tuple[str, ...] = ()
    leads: bool = False


def answers(results: Sequence[Result], records: Sequence[ComparisonRecord] = ()) -> list[Sentence]:
    """Return the answers that results and comparisons give, in the order in which a reader asks for them."""
    by_metric: dict[str, list[Result]] = {}
    for result in results:
        by_metric.setdefault(result.metric, []).append(result)
    every = [list(_of_metric(group)) for group in by_metric.values()] + [of_comparison(record) for record in records]
    found = [replace(sentence, leads=at == 0) for group in every for at, sentence in enumerate(group)]
    # What holds for several metrics is said once.
    found = list({sentence.text: sentence for sentence in reversed(found)}.values())[::-1]
    return [*found, *([_limits(results)] if results else [])]


def _of_metric(results: Sequence[Result]) -> Iterator[Sentence]:
    every = rankings(results) if better(results[0].metric) is not None else []
    grown = {axis: growths(results, axis) for axis in (CORES, SESSIONS)}
    if every:
        yield _ranked(every, results)
        yield from _left_out(results, every)
    elif not any(grown.values()):
        yield from (
            [one(result, _point(result, results)) for result in results]
            if len(results) <= _MOST_NAMES
            else [_several(results)]
        )
    yield from _shares_of_forwarding(results)
    for axis, each in grown.items():
        yield from _grown(axis, each, results)


def one(result: Result, point: str = "") -> Sentence:
    """Return what a single result says: the value, its range over the repetitions, and more where the metric has it.

    Args:
        result: the result.
        point: what distinguishes it from other results of this device, as words.
    """
    count = len(result.repetitions)
    spread = (
        "in a single repetition"
        if count == 1
        else f"{number(result.minimum)} to {number(result.maximum)} in {count} repetitions"
    )
    return Sentence(f"{_does(result)}{f' {point}' if point else ''}: {spread}{_more(result)}.")


def _does(result: Result) -> str:
    """What the device does that has this value."""
    found = procedures.procedures().get(result.metric)
    if found is None or not found.does:
        return f"{result.dut}: {result.metric} {_value(result)}"
    return f"{result.dut} {found.does.format(value=_value(result), number=_number(result))}"


def _value(result: Result) -> str:
    unit = "" if result.unit == "%" else " "
    return f"{_number(result)}{unit}{unit_of(result)}"


def _number(result: Result) -> str:
    """The median, or the bounds that are left where something other than the device limited."""
    lower, upper = bounds(result)
    if lower == upper:
        return number(result.median)
    if math.isinf(upper):
        return f"at least {number(result.median)}"
    return f"at most {number(result.median)}" if lower <= 0 else f"between {number(lower)} and {number(upper)}"


def _more(result: Result) -> str:
    """Further figures that belong to the answer of a metric."""
    worst, without = result.figures.get("worst_case_latency_us"), result.figures.get("highest_rate_without_loss")
    parts = []
    if IN_ALL in result.figures:
        parts.append(f"; {number(result.figures[IN_ALL].median)} {UNIT_IN_ALL}")
    if worst is not None:
        parts.append(f"; 1 frame of 1,000 takes longer than {number(worst.median)} us")
    if without is not None:
        parts.append(f"; no loss up to {number(without.median)} frames/s in each direction")
    return "".join(parts)


def _ranked(every: Sequence[Ranking], results: Sequence[Result]) -> Sentence:
    if len(every) == 1:
        return _ranked_once(every[0])
    decided = [ranking for ranking in every if ranking.certainty != "cannot tell"]
    varied = [_VARIED[name] for name in labels.differing_within(results) if name in _VARIED]
    best, points = _best(every[0].results[0]), f"{len(every)} points"
    if varied:
        points = f"{len(every)} {'combinations' if len(varied) > 1 else 'numbers'} of {listed(varied)}"
    if not decided:
        return _undecided(every, best, f"any of {points}")
    if 2 * len(decided) < len(every):
        undecided = [ranking for ranking in every if ranking.certainty == "cannot tell"]
        return _undecided(undecided, best, f"{len(undecided)} of {points}")
    firsts = Counter(ranking.results[0].dut for ranking in decided)
    where = "each" if len(decided) == len(every) and len(firsts) == 1 else str(firsts.most_common(1)[0][1])
    (first, _), *others = firsts.most_common()
    text = f"{first} {best} at {where} of {points}"
    text += "".join(f", {dut} at {count}" for dut, count in others[:_MOST_NAMES])
    if len(decided) < len(every):
        text += f"; at {len(every) - len(decided)} cannot tell"
    own = [ranking for ranking in decided if ranking.results[0].dut == first]
    top = max((ranking.results[0] for ranking in own), key=lambda result: result.median)
    seconds = list(dict.fromkeys(ranking.claims[0].first.dut for ranking in own))
    second = seconds[0] if len(seconds) == 1 else "the second best"
    text += f". It reaches {_times([ranking.claims[0] for ranking in own], f'the {top.metric} of {second}')}"
    if better(top.metric) == "higher":
        text += f", and up to {_value(top)} {_point(top, results)}".rstrip()
    claims = [claim for ranking in decided for claim in ranking.claims]
    return _claimed(text, weakest(claims), claims)


def _undecided(every: Sequence[Ranking], best: str, points: str) -> Sentence:
    """No point has a gateway that is surely better; of two gateways, the ratio is known within limits."""
    duts = list(dict.fromkeys(result.dut for ranking in every for result in ranking.results))
    text = f"Cannot tell which of {listed(duts)} {best}, at {points}"
    if len(duts) == 2:
        pairs = [{result.dut: result for result in ranking.results} for ranking in every]
        claims = [claim(pair[duts[1]], pair[duts[0]]) for pair in pairs]
        text += f": {duts[0]} reaches {_times(claims, duts[1], chance=False, at=False)}"
    return Sentence(f"{text}.", "cannot tell")


def _ranked_once(ranking: Ranking) -> Sentence:
    first = ranking.results[0]
    # A gateway that may be better than measured makes the order of the others no less sure.
    aside = {claim.first.dut: claim.doubts for claim in ranking.claims if claim.doubts and not _grave(first)}
    claims = [claim for claim in ranking.claims if claim.first.dut not in aside] or ranking.claims
    certainty = weakest(claims)
    if certainty == "cannot tell":
        rivals = [first, *ranking.rivals]
        text = f"Cannot tell which of {listed([each.dut for each in rivals])} {_best(first)}: "
        if len(rivals) > 2:
            medians = [each.median for each in rivals]
            text += f"their medians are {number(min(medians))} to {number(max(medians))} {unit_of(first)}"
        else:
            unequal = next(claim for claim in ranking.claims if claim.certainty == "cannot tell")
            text += f"{number(first.median)} and {_value(rivals[1])}, {_why_not(unequal)}"
        return Sentence(f"{text}.", certainty)
    text = (
        f"{first.dut} {_best(first)}: {_value(first)}, {_times(claims[:1], 'that of the next, ' + claims[0].first.dut)}"
    )
    if len(ranking.claims) > 1:
        ranked = [result for result in ranking.results if result.dut not in aside]
        text += f"; last of {len(ranked)} is {ranked[-1].dut} with {_value(ranked[-1])}" if len(ranked) > 2 else ""
    if aside and len(aside) < len(ranking.claims):
        words = dict.fromkeys(word for doubts in aside.values() for word in doubts)
        text += f". Not ranked: {listed(list(aside))}, maybe better than measured ({', '.join(words)})"
    return _claimed(text, certainty, claims)


def _grave(result: Result) -> bool:
    return any(doubt.grade == "answer" for doubt in result.doubts)


def _claimed(text: str, certainty: Certainty, claims: Sequence[Claim]) -> Sentence:
    """A claim, which is restricted to the repetitions at hand where it is not sure."""
    if certainty == "sure":
        return Sentence(f"{text}.", certainty)
    return Sentence(f"In these repetitions {text}.", certainty, _reasons(claims))


def _reasons(claims: Sequence[Claim]) -> tuple[str, ...]:
    """Reasons why claims are not sure."""
    found = []
    if any(not claim.contrast.sure for claim in claims):
        found.append(f"fewer than {least_repetitions()} repetitions of each, which {CONFIDENCE:.0%} needs")
    sittings = {claim.sitting for claim in claims}
    if "one lab each" in sittings:
        found.append("the repetitions of a result share one lab")
    elif "one sitting each" in sittings:
        found.append("the results were measured one after the other, not in turns")
    words = list(dict.fromkeys(word for claim in claims for word in claim.doubts))
    return (*found, *([f"doubts: {', '.join(words)}"] if words else []))


def _why_not(claim: Claim) -> str:
    """Why nothing is known of a difference, as the end of a sentence."""
    if claim.first.functional or claim.second.functional:
        return "and figures of an emulated machine are not compared"
    if claim.contrast.interval.coverage == 0:
        return "and a single repetition of each says nothing of chance"
    return f"and the {claim.contrast.kind} is {_interval([claim])} ({_coverage([claim])})"


def _left_out(results: Sequence[Result], every: Sequence[Ranking]) -> Iterator[Sentence]:
    """Gateways that are compared with no other, and what differs at the most similar point."""
    ranked = [result for ranking in every for result in ranking.results]
    duts = {result.dut for result in ranked}
    emulated = list(dict.fromkeys(result.dut for result in results if result.functional))
    if emulated:
        yield Sentence(f"Not compared with the others: {listed(emulated)}, which ran on an emulated machine.")
    duts.update(emulated)
    reasons: dict[str, list[str]] = {}
    for dut in dict.fromkeys(result.dut for result in results if result.dut not in duts and not routes(result)):
        own = [result for result in results if result.dut == dut]
        found = [comparable(result, other, except_for={"device"}) for result in own for other in ranked]
        different = [difference.label for difference in min(found, key=len)]
        reasons.setdefault(" and ".join(different[:2]), []).append(dut)
    for differing, names in reasons.items():
        yield Sentence(f"Not compared with the others: {listed(names)}, because of another {differing}.")


def _several(results: Sequence[Result]) -> Sentence:
    """Many results that form no series and of which none is compared with another."""
    low, high = (end(results, key=lambda result: result.median) for end in (min, max))
    found = (
        f"{results[0].metric}: {len(results)} results, from {_value(low)} ({low.dut}) to {_value(high)} ({high.dut})"
    )
    return Sentence(f"{found}.")


def _grown(axis: Axis, every: Sequence[Growth], results: Sequence[Result]) -> Iterator[Sentence]:
    """A sentence for each pair of ends of the axis, with every device."""
    by_ends: dict[tuple[float, float], list[Claim]] = {}
    for growth in every:
        ends = [result.number(axis.parameter) or 0.0 for result in (growth.claim.first, growth.claim.second)]
        by_ends.setdefault((ends[0], ends[1]), []).append(growth.claim)
    for (first, last), claims in by_ends.items():
        result = claims[0].second
        rate = result.unit.endswith("/s")
        if len(every) == 1:
            own = claims[0].first
            ends_of = f"{_does(own)} {_point(own, results)}, and {_value(result)} {_point(result, results)}"
            yield Sentence(f"{ends_of}: {_times(claims, '')}.", claims[0].certainty, _reasons(claims))
            continue
        names = "cores" if axis is CORES else "connections"
        ideal = f" ({last / first:.3g} times is ideal)" if axis is CORES and rate else ""
        head = f"With {whole(int(last))} {names} instead of {whole(int(first))}{ideal} "
        yield _listed(head, claims, f"its {result.metric}")


def _shares_of_forwarding(results: Sequence[Result]) -> Iterator[Sentence]:
    found = [(result, of_forwarding(result, results).reference) for result in results]
    claims = [claim(reference, result) for result, reference in found if reference is not None]
    if claims:
        references = listed(list(dict.fromkeys(claim.first.dut for claim in claims)))
        yield _listed("", claims, f"the {results[0].metric} of {references}, which only forwards")


def _listed(head: str, claims: Sequence[Claim], of: str) -> Sentence:
    """A sentence with the ratios of each device; of many devices, the largest and the smallest."""
    known = [each for each in claims if each.contrast.interval.coverage >= LEAST_COVERAGE and _is_bounded(each)]
    by_dut: dict[str, list[Claim]] = {}
    for each in known or claims:
        by_dut.setdefault(each.second.dut, []).append(each)
    shown = dict(sorted(by_dut.items(), key=lambda item: -_middle(item[1])))
    rest = ""
    if len(shown) > _MOST_NAMES:
        names = list(shown)
        rest = f"; {len(names) - 2} other gateways lie between"
        shown = {name: shown[name] for name in (names[0], names[-1])}
    unknown = [dut for dut in dict.fromkeys(each.second.dut for each in claims) if dut not in by_dut]
    rest += f"; not known for {listed(unknown)}" if unknown else ""
    points = {len(own) for own in shown.values()}
    over = f" over {points.pop()} points" if points not in ({1}, set()) and len(points) == 1 else ""
    parts = [
        f"{dut} {'' if at else 'reaches '}{_times(own, '' if at else of, alone=len(claims) == 1, at=False)}"
        for at, (dut, own) in enumerate(shown.items())
    ]
    kept = [each for own in shown.values() for each in own]
    certainties = {each.certainty for each in kept}
    certainty = certainties.pop() if len(certainties) == 1 else "seen"
    reasons = _reasons([each for each in kept if each.certainty == "seen"])
    cover = "" if len(claims) == 1 else f"; {_coverage(kept)}s{over}"
    return Sentence(f"{head}{', '.join(parts)}{cover}{rest}.", certainty, reasons)


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
        alone: whether the coverage is named.
        at: whether the number of points is named.
        chance: whether the text says that the ratio may be a matter of chance.
    """
    differences = [claim for claim in claims if claim.contrast.kind == "difference"]
    if differences:
        change = f"{_middle(differences):+.3g} {unit_of(claims[0].first)}"
        against = f" against {of.removeprefix('that of ')}" if of else ""
        return f"{change}{against} ({_interval(differences)}, {_coverage(differences)})"
    where = f" at {len(claims)} points" if at and len(claims) > 1 else ""
    cover = f", {_coverage(claims)}" if alone else ""
    lower = min(claim.contrast.interval.lower for claim in claims)
    upper = max(claim.contrast.interval.upper for claim in claims)
    # A range of ratios, not their median: points differ by more than chance.
    ratios = [_ratio(end([claim.contrast.value for claim in claims])) for end in (min, max)]
    ratio = " to ".join(dict.fromkeys(ratios))
    if 0 < min(claim.contrast.interval.coverage for claim in claims) < LEAST_COVERAGE:
        return f"{ratio} times {of}".rstrip() + " (too few repetitions for an interval)"
    if not all(map(_is_bounded, claims)):
        bound = (
            f"at most {_ratio(upper, math.ceil)}" if math.isfinite(upper) else f"at least {_ratio(lower, math.floor)}"
        )
        known = bound if lower > 0 or math.isfinite(upper) else "any number of"
        return f"{known} times {of}".rstrip() + f" ({cover.removeprefix(', ') or 'limited'}{where})"
    uncertain = chance and lower <= 1 <= upper
    inside = f"{_interval(claims)}{where}{cover}{', maybe by chance' if uncertain else ''}"
    return f"{ratio} times {of}".rstrip() + f" ({inside})"


def _coverage(claims: Sequence[Claim]) -> str:
    """The least coverage of the intervals, rounded down."""
    return f"{math.floor(100 * min(claim.contrast.interval.coverage for claim in claims))} % interval"


def _interval(claims: Sequence[Claim]) -> str:
    """The range that contains all intervals, rounded outward: the printed one contains the true one."""
    if min(claim.contrast.interval.coverage for claim in claims) == 0:
        return "a single repetition"
    lower = min(claim.contrast.interval.lower for claim in claims)
    upper = max(claim.contrast.interval.upper for claim in claims)
    if claims[0].contrast.kind == "difference":
        return f"{_signed(lower, math.floor)} to {_signed(upper, math.ceil)}"
    end = "or more" if math.isinf(upper) else f"to {_ratio(upper, math.ceil)}"
    return f"{_ratio(lower, math.floor)} {end}"


def _signed(value: float, rounded: Callable[[float], float]) -> str:
    """A difference with three digits that count."""
    if value == 0 or math.isinf(value):
        return f"{value:+g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{rounded(value * 10.0**digits) / 10.0**digits:+g}"


def _ratio(value: float, rounded: Callable[[float], float] = round) -> str:
    """A ratio with two digits after the point; of large ones three digits that count, of small ones two."""
    if value <= 0:
        return "0"
    digits = 2 if 0.1 <= value < 10 else max(0, (1 if value < 0.1 else 2) - math.floor(math.log10(value)))
    return f"{rounded(value * 10**digits) / 10**digits:,.{digits}f}"


def _limits(results: Sequence[Result]) -> Sentence:
    """What limited, most frequent first."""
    limits = Counter(result.limited_by for result in results).most_common()
    parts = [
        f"{_LIMITS[limit].rstrip(',')}{f' ({count} of {len(results)} results)' if len(results) > 1 else ''}"
        for limit, count in limits
    ]
    return Sentence(f"Bottleneck: {'; '.join(parts)}.")


def of_audit(record: AuditRecord) -> list[Sentence]:
    """Return the answer of an audit: how many requirements the gateway meets, and which it fails."""
    decided = [one for one in record.requirements if one.verdict in ("meets", "fails")]
    met = sum(one.verdict == "meets" for one in decided)
    found = [Sentence(f"{record.gateway} meets {met} of {len(decided)} requirements that were examined.", leads=True)]
    for level in ("MUST", "SHOULD", "MAY"):
        failed = [f"{one.key} ({one.transport})" for one in decided if one.verdict == "fails" and one.level == level]
        if failed:
            found.append(Sentence(f"It fails {len(failed)} of level {level}: {listed(failed)}."))
    if left := len(record.requirements) - len(decided):
        found.append(Sentence(f"No verdict on {left} more: not seen, or not applicable."))
    return found


def of_comparison(record: ComparisonRecord) -> list[Sentence]:
    """Return the answers of a comparison: one for each gateway and quantity, and a control that seems to differ."""
    groups: dict[tuple[str, str, bool], list[RatioEstimate]] = {}
    for estimate in record.estimates:
        groups.setdefault((estimate.quantity, estimate.verdict, estimate.is_bounded), []).append(estimate)
    found = [_compared(record, group) for group in groups.values()]
    if record.fail_above is not None:
        limit = f"more than {100 * record.fail_above:g} % above that of {record.baseline.label}"
        start = "A cost is" if record.above else "No cost is" if record.decided else "Cannot tell whether a cost is"
        costs = f"{start} {limit}."
        found.insert(0, Sentence(costs, "sure" if record.decided or record.above else "cannot tell"))
    biased = [estimate for estimate in record.control if _excludes_1(estimate)]
    for estimate in biased:
        ratios = f"{_ratio(estimate.low or 0.0, math.floor)} to {_ratio(estimate.high or 0.0, math.ceil)}"
        of = f"Compared with itself, {record.baseline.label} seems to differ, too ({FRAME_OF[estimate.quantity]}"
        found.append(Sentence(f"{of}: {ratios}, A/A control): a difference counts only beyond that.", "seen"))
    return found


def _excludes_1(estimate: RatioEstimate) -> bool:
    return estimate.is_bounded and not (estimate.low or 0.0) <= 1 <= (estimate.high or math.inf)


def _compared(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    """Gateways with the same verdict on the same frames, the least cost first."""
    base, what, verdict = record.baseline, FRAME_OF[group[0].quantity], group[0].verdict
    names = listed([_through(estimate, record) for estimate in group])
    level = f"{math.floor(100 * min(estimate.level for estimate in group))} % interval"
    bounded = [(estimate, estimate.low, estimate.high) for estimate in group if estimate.low and estimate.high]
    if not bounded and (verdict != "undecided" or len(group) == 1):
        texts = "; ".join(estimate.text for estimate in group)
        return (
            Sentence(f"Cannot tell: {texts}.", "cannot tell")
            if verdict == "undecided"
            else Sentence(f"{texts[:1].upper()}{texts[1:]}.", "seen")
        )
    if not bounded:
        by: dict[str, dict[str, None]] = {}
        for limit in (limit for estimate in group for limit in estimate.limits):
            by.setdefault(limit.limited_by, {})[limit.gateway] = None
        why = "; ".join(f"{limit} limited searches of {listed(list(gateways))}" for limit, gateways in by.items())
        costs = f"a {what} through {names} costs compared with {base.label}"
        return Sentence(f"Cannot tell what {costs}{f': {why}' if why else ''}.", "cannot tell")
    if verdict == "no difference":
        largest = max(max(high - 1, 1 - low) for _, low, high in bounded)
        same = f"costs the same as through {base.label} within {100 * largest:.1f} % ({level})"
        return Sentence(f"A {what} through {names} {same}.", "sure")
    undecided = verdict == "undecided"
    sign, form = -1 if verdict == "costs less" else 1, "+.1f" if undecided else ".1f"
    direction = "" if undecided else f"{verdict.removeprefix('costs ')} "
    parts = []
    for estimate, low, high in sorted(bounded, key=lambda each: each[0].ratio or each[1]):
        first, last = (f"{end:{form}}" for end in sorted(100 * sign * (end - 1) for end in (low, high)))
        middle = "" if estimate.ratio is None else f"{100 * sign * (estimate.ratio - 1):{form}} % "
        parts.append(f"{middle}{direction}through {_through(estimate, record)} ({first} to {last} %)")
    intervals = f"{level}{'s' if len(parts) > 1 else ''}"
    if others := len(parts) - 2 if len(parts) > _MOST_NAMES else 0:
        parts, intervals = [parts[0], parts[-1]], f"{intervals}; {others} others lie between"
    cost = next((each.nanoseconds for each in record.baseline_costs if each.quantity == group[0].quantity), None)
    against = f"through {base.label}{'' if cost is None else f' ({number(cost)} ns)'}"
    if undecided:
        head = f"Cannot tell whether a {what} costs more or less than {against}"
        return Sentence(f"{head}: {', '.join(parts)}; {intervals}.", "cannot tell")
    return Sentence(f"A {what} costs {', '.join(parts)} than {against}; {intervals}.", "sure")


def _through(estimate: RatioEstimate, record: ComparisonRecord) -> str:
    """The gateway, and its number of devices where that of the baseline is another."""
    devices, of_baseline = record.gateway(estimate.gateway).devices, record.baseline.devices
    chain = f" ({devices} devices, the baseline has {of_baseline})" if devices != of_baseline else ""
    return f"{estimate.gateway}{chain}"


def _best(result: Result) -> str:
    found = procedures.procedures().get(result.metric)
    if found is not None and found.best:
        return found.best
    return f"has the {'highest' if better(result.metric) == 'higher' else 'lowest'} {result.metric}"


def _point(result: Result, results: Sequence[Result]) -> str:
    """What distinguishes a result from others of its metric and device, as words."""
    names = labels.differing([other for other in results if other.dut == result.dut])
    words = labels.words(result, names)
    return f"with {words}" if words else ""


def listed(names: Sequence[str]) -> str:
    """Return names in words; of more than four, the first three and the number of the others."""
    shown = list(names) if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], f"{len(names) - 3} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
