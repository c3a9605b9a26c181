# SPDX-License-Identifier: Apache-2.0
"""Comparisons for people: the answer in sentences, the comment on a change, and the table that all forms print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from natgauge.analysis import conditions
from natgauge.analysis.conditions import Certainty
from natgauge.analysis.derived import kinds_of_halves
from natgauge.analysis.ratio_verdicts import (
    ENDS,
    doubts_of,
    doubts_of_all,
    doubts_of_answer,
    grave_doubts,
    says_nothing,
)
from natgauge.analysis.run_changes import control_margin
from natgauge.analysis.sizing import OF_CORES, resource_of
from natgauge.analysis.unit_frames import bits_of_unit
from natgauge.figure_text import at_least, given, nanoseconds, number, with_noun
from natgauge.interval_text import Way, in_bits, percent, ratio
from natgauge.notes import Note, NoteWord
from natgauge.plain_text import capital
from natgauge.records.comparison import (
    FRAME_OF,
    KIND_OF,
    RATE_OF,
    BaselineCost,
    ComparisonRecord,
    GatewayRecord,
    RatioEstimate,
    commit_of,
)
from natgauge.records.measurement import Result
from natgauge.reports import markup
from natgauge.reports.answers import WAYS, Sentence
from natgauge.reports.csv_table import written
from natgauge.reports.graded_doubts import graded, in_paper
from natgauge.reports.labels import grouped
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.reports.text import answered
from natgauge.words import MOST_NAMES, Quantity, enumerated, listed

#: Groups of gateways by cost, between which the order is sure; None = the baseline.
_Order = list[list[RatioEstimate | None]]
#: What a reader of costs and rates has to know where they seem to differ.
_FINER: Final = (
    "Where only costs tell gateways apart, rates do not contradict them: costs are finer, as the gateways took turns."
)
#: Half of the last digit that a change has.
_LEAST_CHANGE: Final = 0.0005
#: Names of unmatched rules that are shown.
_SHOWN: Final = 8
#: What the costs of each method are.
_COSTS: Final = {"slices": "the device's own work on one core", "rates": "the time for a frame at the highest rate"}
#: Columns of the CSV: of the comparison, then of the estimate.
_COLUMNS: Final = (
    "baseline", "by", "role", "gateway", "quantity", "ratio", "low", "high", "level", "verdict", "nanoseconds",
    "ratio_to_forwarding", "blocks", "rounds", "seconds", "doubts",
)  # fmt: skip


def text(record: ComparisonRecord, *, brief: bool = False, width: int | None = None) -> str:
    """Return the answers, the doubts, and the table with its notes.

    Args:
        brief: whether only doubts that could change the answer have their text, and others only their word; notes are
            short.
        width: most characters of a line of the table; None = any.
    """
    return answered(sentences(record), sheet(record, brief=brief, short=brief, by_frame=True), width)


def sentences(record: ComparisonRecord, *, of_limit: bool = True) -> list[Sentence]:
    """Return the answers: costs in order and in none, the one to `--fail-above`, and a control that seems to differ."""
    ordered = _ordered(record)
    # Where a doubt could change a cost, each gateway has a certainty of its own.
    doubted = {quantity for quantity, own in ordered.items() if grave_doubts(record, own)}
    groups = grouped(
        ((one.quantity, one.verdict, one.is_bounded, _is_within(one)), one)
        for one in record.estimates
        if one.quantity not in ordered.keys() - doubted
    )
    found = [_compared(record, group) for group in groups.values()]
    if of_limit and (limit := _limit(record)) is not None:
        found.insert(0, limit)
    for estimate in record.control:
        if says_nothing(estimate):
            of = f"how far equal gateways differ ({FRAME_OF[estimate.quantity]}, A/A control)"
            itself = f"Compared with itself, {record.baseline.label} does not show {of}"
            found.append(Sentence(f"{itself}: both ends of its interval are open.", "cannot tell"))
        low, high = estimate.ends
        if estimate.is_bounded and not low <= 1 <= high:
            ratios = f"{ratio(low, 'down')} to {ratio(high, 'up')}"
            of = f"Compared with itself, {record.baseline.label} seems to differ, too ({FRAME_OF[estimate.quantity]}"
            found.append(Sentence(f"{of}: {ratios}, A/A control): a difference counts only beyond that.", "seen"))
    orders = {quantity: _in_order(record, quantity, own) for quantity, own in ordered.items()}
    lines = [_order(record, quantity, orders[quantity], ordered[quantity]) for quantity in orders]
    found = [*_cheapest(record, ordered, orders), *lines, *found]
    unlike = conditions_of(record)
    below = [] if unlike is None else [Sentence(str(unlike), unlike=(unlike,))]
    return [replace(found[0], leads=True), *found[1:], *below]


def beside_rates(records: Sequence[ComparisonRecord], results: Sequence[Result]) -> list[Sentence]:
    """Return why costs may tell gateways apart that rates do not, where a page has both."""
    rated = {result.gateway for result in results if resource_of(result) in OF_CORES}
    compared = [{one.label for one in record.gateways} for record in records if record.by == "slices"]
    return [Sentence(_FINER)] if any(len(rated & labels) > 1 for labels in compared) else []


def _limit(record: ComparisonRecord) -> Sentence | None:
    """The answer to `--fail-above`; None where nobody asked."""
    if record.fail_above is None:
        return None
    limit = f"more than {given(record.fail_above)} above that of {record.baseline.label}"
    if not (record.decided or record.above):
        return Sentence(f"Cannot tell whether a cost is {limit}.", "cannot tell")
    return _as_sure(f"{'A' if record.above else 'No'} cost is {limit}.", doubts_of_answer(record))


def _ordered(record: ComparisonRecord) -> dict[Quantity, list[RatioEstimate]]:
    """Return the costs of several gateways, all with known ends of their intervals, by quantity."""
    found = grouped((estimate.quantity, estimate) for estimate in record.estimates)
    return {name: own for name, own in found.items() if len(own) > 1 and all(one.is_bounded for one in own)}


def _cheapest(
    record: ComparisonRecord, ordered: Mapping[Quantity, Sequence[RatioEstimate]], orders: Mapping[Quantity, _Order]
) -> Iterator[Sentence]:
    """Yield which gateway surely costs less than all others, by frame, where there are several frames."""
    every = dict.fromkeys(estimate.quantity for estimate in record.estimates)
    best: dict[str, list[Quantity]] = {}
    for quantity in every:
        (first, *others), *_ = orders.get(quantity) or [[None, None]]
        if not others:
            best.setdefault(record.baseline.label if first is None else first.gateway, []).append(quantity)
    if len(every) == 1 or not best:
        return
    own = {name: [_frames_of(frames)] for name, frames in best.items()}
    if [*best.items()] == [(record.baseline.label, [*every])]:
        ends = [estimate.ends for known in ordered.values() for estimate in known]
        low, high = min(low for low, _ in ends) - 1, max(high for _, high in ends) - 1
        share = f"{percent(low, 'down').removesuffix(' %')} to {percent(high, 'up')}"
        own[record.baseline.label].append(f": the others cost {share} more")
    text = "; ".join(f"{name} costs least for {''.join(said)}" for name, said in own.items())
    unknown = [quantity for quantity in every if not any(quantity in frames for frames in best.values())]
    text += f"; which costs least for {_frames_of(unknown)} is not sure" if unknown else ""
    yield Sentence(f"{text}.", "sure", leads=True)


def _frames_of(quantities: Sequence[Quantity]) -> str:
    return listed([f"a {FRAME_OF[quantity]}" for quantity in quantities])


def _order(record: ComparisonRecord, quantity: Quantity, order: _Order, own: Sequence[RatioEstimate]) -> Sentence:
    """The costs of several gateways for a frame, cheapest first, against the baseline's, and what order is not sure."""
    cost, name, what = _cost_of(record, quantity), record.baseline.label, capital(FRAME_OF[quantity])
    head = f"{what}, against {name}: " if cost is None else f"{what}: {name} {nanoseconds(cost)}; against it "
    costs = [f"{_through(one, record)} {interval(one)}" for group in order for one in group if one is not None]
    names = [[name if one is None else one.gateway for one in group] for group in order]
    unsure = "".join(f"; which of {listed(group)} costs less is not sure" for group in names if len(group) > 1)
    is_known = len(order) > 1 or any(estimate.verdict == "no difference" for estimate in own)
    certainty: Certainty | None = "sure" if is_known else "cannot tell"
    text = f"{head}{', '.join(costs)} ({_level(own)}s){unsure}."
    return Sentence(text, None if grave_doubts(record, own) else certainty, leads=True)


def _in_order(record: ComparisonRecord, quantity: Quantity, known: Sequence[RatioEstimate]) -> _Order:
    """The baseline and the gateways with known intervals by cost, in groups that surely cost less than those behind."""
    margin = control_margin(record, quantity)

    def middle(one: RatioEstimate | None) -> float:
        return 1.0 if one is None else math.prod(one.ends)

    def is_less(one: RatioEstimate | None, other: RatioEstimate | None) -> bool:
        if grave_doubts(record, [each for each in (one, other) if each is not None]):
            return False
        if one is None:
            return other is not None and other.verdict == "costs more"
        if other is None:
            return one.verdict == "costs less"
        return one.ends[1] * margin < other.ends[0]

    ordered = sorted([None, *known], key=middle)
    groups: _Order = [ordered[:1]]
    for at, one in enumerate(ordered[1:], start=1):
        if all(itertools.starmap(is_less, itertools.product(ordered[:at], ordered[at:]))):
            groups.append([])
        groups[-1].append(one)
    return groups


def conditions_of(record: ComparisonRecord) -> conditions.Unlike | None:
    """Return the conditions in which the gateways differ; None where there are none."""
    return conditions.unlike([conditions.cost_of(gateway) for gateway in (record.baseline, *record.compared)])


def _compared(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    """Gateways with the same verdict on the same frames, all with known ends of their intervals, or none."""
    verdict = group[0].verdict
    if _is_within(group[0]):
        return _within(record, group)
    if group[0].is_bounded:
        return _same_cost(record, group) if verdict == "no difference" else _costs(record, group)
    if verdict == "undecided" and len(group) > 1:
        return _unknown_costs(record, group)
    texts = "; ".join(estimate.text for estimate in group)
    if verdict == "undecided":
        return Sentence(f"Cannot tell: {texts}.", "cannot tell")
    return Sentence(f"{capital(texts)}.", "seen")


def _is_within(estimate: RatioEstimate) -> bool:
    """Whether a cost is surely not above the limit that was asked about, though maybe above or below the baseline's."""
    return estimate.verdict == "undecided" and estimate.above is False


def _within(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    """Costs that are not known to differ from the baseline's, where the question was whether they are above a limit."""
    control = control_margin(record, group[0].quantity)
    parts = []
    for estimate in group:
        most = estimate.ends[1] * (control if math.isfinite(control) else 1) - 1
        cost = f"at most {percent(most, 'up')} more" if most > 0 else "no more"
        parts.append(f"{cost} through {_through(estimate, record)} ({interval(estimate)})")
    against = _against(record, group[0].quantity)
    costs = f"a {FRAME_OF[group[0].quantity]} costs {', '.join(parts)} than {against}; {_level(group)}"
    return _as_sure(f"Within the limit of {given(record.fail_above or 0)}: {costs}.", grave_doubts(record, group))


def _against(record: ComparisonRecord, quantity: Quantity) -> str:
    """The baseline, and what a frame through it takes, where that is known."""
    cost = _cost_of(record, quantity)
    return f"through {record.baseline.label}{'' if cost is None else f' ({nanoseconds(cost)})'}"


def _cost_of(record: ComparisonRecord, quantity: Quantity) -> float | None:
    return next((each.nanoseconds for each in record.baseline_costs if each.quantity == quantity), None)


def _same_cost(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    largest = max(max(high - 1, 1 - low) for low, high in (one.ends for one in group))
    control = control_margin(record, group[0].quantity)
    # By rates a gateway that differs alike from both copies is judged although the control shows no noise.
    largest = max(largest, control - 1) if math.isfinite(control) else largest
    what, names = FRAME_OF[group[0].quantity], listed([_through(estimate, record) for estimate in group])
    within = f"at most {percent(largest, 'up')} ({_level(group)})"
    text = f"No practical difference between a {what} through {names} and through {record.baseline.label}: {within}."
    return _as_sure(text, grave_doubts(record, group))


def _as_sure(text: str, grave: tuple[NoteWord, ...]) -> Sentence:
    """A sure sentence, only seen where one of these doubts could change it."""
    return Sentence(text, "seen" if grave else "sure", doubts=grave)


def _unknown_costs(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    by = grouped((limit.limited_by, limit.gateway) for estimate in group for limit in estimate.limits)
    why = "; ".join(f"the bottleneck of {listed(list(dict.fromkeys(own)))} was {limit}" for limit, own in by.items())
    names = listed([_through(estimate, record) for estimate in group])
    costs = f"a {FRAME_OF[group[0].quantity]} through {names} costs compared with {record.baseline.label}"
    return Sentence(f"Cannot tell what {costs}{f': {why}' if why else ''}.", "cannot tell")


def _costs(record: ComparisonRecord, group: Sequence[RatioEstimate]) -> Sentence:
    """Differences of costs in percent, the least cost first."""
    what, verdict = FRAME_OF[group[0].quantity], group[0].verdict
    undecided = verdict == "undecided"
    sign = -1 if verdict == "costs less" else 1
    direction = "" if undecided else f"{verdict.removeprefix('costs ')} "
    parts = []
    for estimate in sorted(group, key=lambda each: each.ratio or each.ends[0]):
        low, high = sorted(sign * (end - 1) for end in estimate.ends)
        share = partial(percent, width=high - low, sign=undecided)
        middle = "" if estimate.ratio is None else f"{share(sign * (estimate.ratio - 1))} "
        ends = f"{share(low, 'down').removesuffix(' %')} to {share(high, 'up')}"
        parts.append(f"{middle}{direction}through {_through(estimate, record)} ({ends})")
    intervals = f"{_level(group)}{'s' if len(parts) > 1 else ''}"
    if len(parts) > MOST_NAMES:
        intervals += f"; {with_noun(len(parts) - 2, 'others lie', 'other lies')} between"
        parts = [parts[0], parts[-1]]
    against = _against(record, group[0].quantity)
    if undecided:
        head = f"Cannot tell whether a {what} costs more or less than {against}"
        return Sentence(f"{head}: {', '.join(parts)}; {intervals}.", "cannot tell")
    return _as_sure(f"A {what} costs {', '.join(parts)} than {against}; {intervals}.", grave_doubts(record, group))


def _level(group: Sequence[RatioEstimate]) -> str:
    return f"{math.floor(100 * min(estimate.level for estimate in group))} % interval"


def _through(estimate: RatioEstimate, record: ComparisonRecord) -> str:
    """The gateway, and its number of devices where that of the baseline is another."""
    devices, of_baseline = record.gateway(estimate.gateway).devices, record.baseline.devices
    chain = f" ({with_noun(devices, 'devices')}, the baseline has {of_baseline})" if devices != of_baseline else ""
    return f"{estimate.gateway}{chain}"


def comment(record: ComparisonRecord) -> str:
    """Return the comparison as a comment on a change, in Markdown: a headline, the answers, the table and its notes.

    The A/A control is folded: what it has to say is a sentence.
    """
    answers = [one.text for one in sentences(record, of_limit=False)]
    said = "\n".join(f"- {markup.escaped(text)}" for text in (*_undecided(record), *answers))
    shown = sheet(record)
    head, *lines = shown.lines
    costs = len(lines) - len(record.control)
    table = markup.render_markdown(replace(shown, lines=(head, *lines[:costs])))
    # What a reader needs first, with the doubts that could change it.
    grave = grave_doubts(record, [one for one in record.estimates if one.above or not record.above])
    headline = f"{_verdict(record)}{'; in doubt: ' if grave else ''}{', '.join(grave)}"
    parts = [f"### natgauge: {markup.escaped(headline)}", said, table]
    if record.control:
        control = markup.render_markdown(Sheet((head, *lines[costs:]), ()))
        title = "The baseline compared with itself (A/A control)"
        parts.append(f"<details><summary>{title}</summary>\n\n{control}\n\n</details>")
    return "\n\n".join(parts)


def _verdict(record: ComparisonRecord) -> str:
    """The costs above the limit, or the answer to `--fail-above`, or the verdicts."""
    if record.fail_above is None:
        return ", ".join(dict.fromkeys(estimate.verdict for estimate in record.estimates))
    limit = given(record.fail_above)
    if record.above:
        above = sorted((one for one in record.estimates if one.above), key=lambda one: -(one.ratio or one.ends[0]))
        costs = listed([_above(record, one) for one in above])
        return f"{costs} (limit {limit})"
    return f"{'not more' if record.decided else 'undecided whether more'} than {limit} above the baseline"


def _above(record: ComparisonRecord, estimate: RatioEstimate) -> str:
    """A cost above the limit, as part of a sentence, with the gateway's name where there are several."""
    through = f" through {estimate.gateway}" if len(record.compared) > 1 else ""
    low, high = estimate.ends
    least = f"at least {percent(low - 1, 'down')}"
    share = least if estimate.ratio is None else percent(estimate.ratio - 1, width=high - low)
    return f"a {FRAME_OF[estimate.quantity]}{through} costs {share} more"


def _undecided(record: ComparisonRecord) -> Iterator[str]:
    """Yield why the rounds ended before the answer; bottlenecks that leave none are in the sentences."""
    if record.decided or record.above:
        return
    ends = [note.text for note in record.notes if note.word in ENDS]
    yield from (f"{capital(end)}." for end in ends)
    if not ends and any(one.verdict == "undecided" and not one.limits for one in record.estimates):
        yield f"The time ended after {_length(record)}, before the costs were told apart; give more: --most-seconds."


def sheet(
    record: ComparisonRecord, *, brief: bool = True, short: bool = False, by_frame: bool = False, placed: bool = True
) -> Sheet:
    """Return the table of a comparison: a line for each gateway and quantity, the baseline first, the control last.

    Args:
        short: whether to have only the notes that a reader of a terminal needs.
        by_frame: whether a heading has the frame of the lines that follow, so that terminals have room for them.
    """
    lines = _lines_by_frame(record) if by_frame else _lines(record)
    notes = tuple(f"{sentence}." for sentence in _notes(record, short=short, placed=placed))
    named = named_doubts(record)
    doubts, in_papers = graded(named, _having, brief=brief, each=True), in_paper(named, _having)
    return Sheet(tuple(lines), notes, tuple(doubts), tuple(in_papers))


def _lines(record: ComparisonRecord) -> list[SheetRow]:
    head = ("frame", "vs. baseline", "interval", "verdict", "ns a frame", "x forwarding")
    lines = [SheetRow("gateway", head)]
    for cost in record.baseline_costs:
        line = (KIND_OF[cost.quantity], "-", "-", "-", *_absolute(cost))
        lines.append(SheetRow(f"{_named(record, record.baseline)} (baseline)", line))
    for estimate in (*record.estimates, *record.control):
        cells = (KIND_OF[estimate.quantity], *_cells(record, estimate))
        lines.append(SheetRow(_named(record, record.gateway(estimate.gateway)), cells))
    return lines


def _lines_by_frame(record: ComparisonRecord) -> list[SheetRow]:
    lines = [SheetRow("gateway", ("change", "interval", "verdict", "ns", "x forwarding"))]
    named = [(_named(record, record.gateway(one.gateway)), one) for one in record.estimates]
    named += [("A/A control", one) for one in record.control]
    for quantity in dict.fromkeys(one.quantity for one in record.estimates):
        lines.append(SheetRow(capital(FRAME_OF[quantity]), ()))
        lines += [
            SheetRow(_named(record, record.baseline), ("-", "-", "baseline", *_absolute(cost)))
            for cost in record.baseline_costs
            if cost.quantity == quantity
        ]
        lines += [SheetRow(name, _cells(record, one)) for name, one in named if one.quantity == quantity]
    return lines


def _cells(record: ComparisonRecord, estimate: RatioEstimate) -> tuple[str, ...]:
    """The change, its interval, the verdict, the nanoseconds, and the multiple of plain forwarding."""
    ratio = "-" if estimate.ratio is None else change(estimate, estimate.ratio)
    verdict = _of_control(estimate) if estimate in record.control else estimate.verdict
    return ratio, interval(estimate), verdict, *_absolute(estimate)


def _absolute(cost: BaselineCost | RatioEstimate) -> list[str]:
    """The nanoseconds, and the multiple of plain forwarding."""
    return ["-" if value is None else number(value) for value in (cost.nanoseconds, cost.ratio_to_forwarding)]


def change(estimate: RatioEstimate, end: float, way: Way = "near") -> str:
    """Return a ratio as the change in percent, with the digits that the interval of the estimate resolves."""
    low, high = estimate.ends
    # Within an interval that contains none, no change has more digits than others.
    is_none = way == "near" and low <= 1 <= high and abs(end - 1) < _LEAST_CHANGE
    return percent(0.0 if is_none else end - 1, way, width=high - low, sign=True)


def _of_control(estimate: RatioEstimate) -> str:
    """Whether the baseline compared with itself is as it should be: the interval contains 1, and excludes something."""
    if estimate.low is None:
        return "-"
    if says_nothing(estimate):
        return "cannot tell"
    low, high = estimate.ends
    return "as expected" if low <= 1 <= high else "seems to differ"


def _notes(record: ComparisonRecord, *, short: bool, placed: bool) -> Iterator[str]:
    yield from _short_notes(record) if short else _all_notes(record)
    where = "of searches in turn" if record.slices is None else f"on core {record.slices.core}"
    of_commit = "" if record.commit is None else f", commit {commit_of(record.commit)[0]}"
    evidence = f"; evidence: {record.results}" if placed else ""
    yield f"Measured for {_length(record)} {where}{_traffic(record)}{of_commit}{evidence}"
    yield from _unmatched(record)
    own = (record.baseline, *record.compared)
    if "new" in {one.quantity for one in record.estimates} and "tcp" in {_transport(each) for each in own}:
        yield "With TCP new is a whole handshake: SYN, SYN-ACK and ACK"
    yield from (
        estimate.text for estimate in (*record.estimates, *record.control) if estimate.limits and estimate.ratio is None
    )
    of_tester = [
        f"{FRAME_OF[cost.quantity]} {nanoseconds(cost.tester_nanoseconds)}"
        for cost in record.baseline_costs
        if cost.tester_nanoseconds is not None
    ]
    if of_tester and not short:
        yield f"The tester's own part, which is subtracted: {', '.join(of_tester)}"
    yield from _halves(record)
    doubts = doubts_of_all(record)
    yield from (str(note) for note in record.notes if note not in doubts)
    for gateway in record.gateways:
        rates = [_rate(record, gateway, quantity, rate) for quantity, rate in gateway.rates.items() if rate is not None]
        if rates:
            yield f"Rates of {gateway.label}: {', '.join(rates)}"


def _unmatched(record: ComparisonRecord) -> Iterator[str]:
    """Yield what rules name that no lab has: once what those of all gateways name, and else with the gateways."""
    every = (record.baseline, *record.compared)
    labels = grouped(((gateway.unmatched, gateway.unmatched_more), gateway.label) for gateway in every)
    for (names, more), own in labels.items():
        left = len(names[_SHOWN:]) + more
        shown = enumerated([*names[:_SHOWN], *([f"{left} more"] if left else [])])
        if names:
            of = "" if len(labels) == 1 else f" of {listed(own)}"
            yield f"Rules{of} for {shown} match no frame in a lab: costs are of frames that are checked and pass on"


def _transport(gateway: GatewayRecord) -> str:
    return str(gateway.parameters.get("transport", "udp"))


def _traffic(record: ComparisonRecord) -> str:
    """The test traffic, as the end of a sentence; with names where that of gateways differs."""
    labels = grouped((_traffic_of(gateway), gateway.label) for gateway in (record.baseline, *record.compared))
    texts = [f"{text} ({listed(own)})" if len(labels) > 1 else text for text, own in labels.items() if text]
    return f", with {'; '.join(texts)}" if texts else ""


def _traffic_of(gateway: GatewayRecord) -> str:
    """Connections and frames of a gateway; empty = not recorded."""
    known, transport = gateway.parameters.get, _transport(gateway)
    connections, octets = known("connections"), known("frame_octets")
    if not isinstance(connections, int):
        return ""
    text = f"{connections:,} {transport.upper()} connections"
    if sizes := known("frame_sizes"):
        return f"{text}, frames of {sizes} octets"
    if not isinstance(octets, dict):
        return text
    up, down = octets.get("initiator"), octets.get("responder")
    return f"{text}, frames of {up} octets" if up == down else f"{text}, frames of {up} octets up and {down} down"


def _short_notes(record: ComparisonRecord) -> Iterator[str]:
    forwarding = "; x forwarding: as a multiple of that of plain forwarding" if record.by == "slices" else ""
    yield f"ns: {_COSTS[record.by]}{forwarding}"
    yield "The A/A control shows how large the noise is. On another host nanoseconds differ, ratios less"


def _all_notes(record: ComparisonRecord) -> Iterator[str]:
    level = (*record.estimates, *record.control)[0].level
    forwarding = "; x forwarding: how many times the work of plain forwarding" if record.by == "slices" else ""
    yield f"Costs are {_COSTS[record.by]}, compared with {record.baseline.label}{forwarding}"
    yield (
        f"The intervals are {given(level)} confidence intervals. The A/A control "
        "compares the baseline with itself: what it shows is noise. Nanoseconds differ from host to host; "
        "ratios differ less"
    )


def _halves(record: ComparisonRecord) -> Iterator[str]:
    """Yield the costs of both halves of a chain, where both were compared: on shared cores their times add up."""
    costs = {(record.baseline.label, cost.quantity): cost.nanoseconds for cost in record.baseline_costs}
    costs |= {(estimate.gateway, estimate.quantity): estimate.nanoseconds for estimate in record.estimates}
    compared = [gateway for gateway in record.gateways if gateway.role != "control"]
    for chain in compared:
        kinds = kinds_of_halves(chain.parameters.get("kind")) or ()
        halves = [one.label for kind in kinds for one in compared if one.parameters.get("kind") == kind]
        if len(halves) != 2 or {chain.parameters.get("cores_of_devices")} != {None}:
            continue
        for quantity in dict.fromkeys(quantity for label, quantity in costs if label == chain.label):
            whole, *parts = (costs.get((label, quantity)) for label in (chain.label, *halves))
            if whole is not None and None not in parts:
                sum_of = " + ".join(nanoseconds(part or 0) for part in parts)
                together = nanoseconds(sum(part for part in parts if part))
                yield (
                    f"{chain.label}, {FRAME_OF[quantity]}: {nanoseconds(whole)}; its halves {' and '.join(halves)} "
                    f"take {sum_of} = {together}"
                )


def csv_table(every: Sequence[ComparisonRecord]) -> str:
    """Return comparisons as CSV (RFC 4180): a line for each estimate, figures in full, unknown ones empty."""
    rows: list[Sequence[object]] = [_COLUMNS]
    for record in every:
        of_record = {
            "baseline": record.baseline.label,
            "by": record.by,
            "rounds": record.rounds,
            "seconds": record.seconds,
        }
        for estimate in (*record.estimates, *record.control):
            doubts = "; ".join(map(str, doubts_of(record, estimate)))
            own = {"role": record.gateway(estimate.gateway).role, "doubts": doubts}
            cells = {**estimate.model_dump(), **of_record, **own}
            rows.append([cells[name] for name in _COLUMNS])
    return written(rows)


def named_doubts(record: ComparisonRecord) -> list[tuple[str, Sequence[Note]]]:
    """Return the doubts of all costs, and of each rate, with what they are doubts of."""
    of_rates = [
        (f"{gateway.label}, {quantity}", every)
        for gateway in record.gateways
        for quantity, every in gateway.doubts.items()
    ]
    return [("all costs", doubts_of_all(record)), *of_rates]


def _having(names: Sequence[str]) -> str:
    return f" ({'; '.join(names)})"


def interval(estimate: RatioEstimate) -> str:
    """Return both ends of the confidence interval, as differences to the baseline; "-" where none is known."""
    low = change(estimate, estimate.low, "down") if estimate.low else ""
    high = "" if estimate.high is None else change(estimate, estimate.high, "up")
    if estimate.is_bounded:
        return f"{low.removesuffix(' %')} to {high}"
    return f"{low} or more" if low else f"{high} or less" if high else "-"


def _named(record: ComparisonRecord, gateway: GatewayRecord) -> str:
    """A gateway's label, with its number of devices where the gateways have unequal numbers."""
    if len({gateway_record.devices for gateway_record in record.gateways}) == 1 or gateway.role == "control":
        return gateway.label
    return f"{gateway.label}, {with_noun(gateway.devices, 'devices')}"


def _rate(record: ComparisonRecord, gateway: GatewayRecord, quantity: Quantity, rate: float) -> str:
    """A rate, and whether the gateway may have a higher one: half of its searches or more did not end at it."""
    of_rate = [limit for limit in record.limits if (limit.gateway, limit.quantity) == (gateway.label, quantity)]
    limited = any(2 * sum(limit.searches for limit in of_rate) >= limit.of for limit in of_rate)
    # The middle between a rate that passed and a bound, and a rate that queues raised, are no lower bounds.
    rate = min([rate, *(limit.at_least for limit in of_rate)]) if limited else rate
    metric = "connection-rate" if quantity == "new" else "throughput"
    bits = bits_of_unit(metric, gateway.parameters.with_settings({"directions": quantity}))

    def written_rate(value: float) -> str:
        return f"at least {at_least(value)}" if limited else number(value)

    text = f"{quantity} {written_rate(rate)} {RATE_OF[quantity]}"
    if bits is None:
        return text
    wire, packets = (in_bits(written_rate(rate * each)) for each in (bits.wire, bits.packets))
    return f"{text} ({wire} on the wire, {packets} of IP packets{WAYS[bits.way]})"


def _length(record: ComparisonRecord) -> str:
    return f"{record.seconds:.0f} s, {with_noun(record.rounds, 'rounds')}"
