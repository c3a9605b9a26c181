# SPDX-License-Identifier: Apache-2.0
"""Which results are comparable, and figures that follow from comparable ones, as published tables print them.

Two results are comparable where they share all parameters that move the figure. Figures follow from unrounded medians:
of a step of a measurement series and another one, whose results of one metric and one device differ only in the
parameters of one axis; of a chain and both its halves, each measured alone (RFC 8219 section 4.2); and of the loads of
one result, over all repetitions.

Formulas are pure arithmetic. Their arguments have one unit, and a reference of 0 raises ZeroDivisionError: nothing is
relative to nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from pydantic import JsonValue

from natgauge.analysis import contrast
from natgauge.figure_text import at_least, at_most, with_noun
from natgauge.figure_text import number as written
from natgauge.metrics.metric import Better
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.records.parameters import OF_HOST, Parameters, describe, differing, shown
from natgauge.statistics.summary import FigureSummary, summarize


@dataclass(frozen=True, slots=True)
class Difference:
    """One parameter that two results do not share; None = a result has no such value.

    Attributes:
        name: name of the parameter; "metric" or "unit" where the results differ in these.
        label: name for people, with its unit.
    """

    name: str
    label: str
    first: JsonValue
    second: JsonValue

    def __str__(self) -> str:
        """Return, for example, "trial seconds 2 against 60"; for tables only the entries that differ."""
        first, second = self.first, self.second
        if isinstance(first, dict) and isinstance(second, dict):
            names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
            first, second = ({name: table.get(name) for name in names} for table in (first, second))
        return f"{self.label} {shown(first)} against {shown(second)}"


def comparable(first: Result, second: Result, *, except_for: Collection[str] = ()) -> list[Difference]:
    """Return the differences that forbid a comparison of two results; empty where they are comparable.

    `except_for` are names of parameters, or of whole groups, that may differ.
    """
    differences = [
        Difference(name, name, mine, its)
        for name, mine, its in (("metric", first.metric, second.metric), ("unit", first.unit, second.unit))
        if mine != its
    ]
    return differences + different_parameters(first.parameters, second.parameters, first.metric, except_for=except_for)


def is_of_gateway(name: str, every: Sequence[Parameters]) -> bool:
    """Whether a parameter may differ where only the gateways do.

    It may not where repetitions differ in it, nor where it is a setting of a machine that had several values before.
    """
    before = [value for parameters in every if (value := of_host(name, parameters)) is not None]
    is_mixed = any(differing(parameters.get(name)) for parameters in every)
    return not is_mixed and all(value == before[0] for value in before)


def of_host(name: str, parameters: Parameters) -> JsonValue:
    """Return the value that a setting of the whole machine had before; None = the user chose it, or it is none."""
    found = parameters.get(OF_HOST)
    return found.get(name) if isinstance(found, dict) else None


def different_parameters(
    first: Parameters, second: Parameters, metric: str, *, except_for: Collection[str] = ()
) -> list[Difference]:
    """Return the parameters that move a figure of this metric and that two results do not share; see `comparable`."""
    differences = []
    mine, its = first.flat(), second.flat()
    groups = {name: group for parameters in (first, second) for group, name, _ in parameters.items()}
    for name, group in groups.items():
        described = describe(name)
        is_excepted = group in except_for and is_of_gateway(name, (first, second))
        if name in except_for or is_excepted or not described.moves_figure_of(metric):
            continue
        # A series of several devices or machines is like nothing, not even like another such series.
        if mine.get(name) != its.get(name) or differing(mine.get(name)):
            differences.append(Difference(name, described.heading, mine.get(name), its.get(name)))
    return differences


def relative_scale_up(performance: float, cores: float, one_core: float) -> float:
    """S(n) = P(n) / (n * P(1)): 1 when n cores do n times as much as one (RFC 9693 section 5.2)."""
    return performance / (cores * one_core)


def percent_of_forwarding(performance: float, forwarding: float) -> float:
    """Return the rate of a gateway as a percentage of the rate at which the same machine only forwards.

    Source: row "throughput ratio (%)" of figure 2 of draft-lencse-v6ops-transition-scalability-05.
    """
    return 100 * performance / forwarding


def times_previous(median: float, previous: float) -> float:
    """Median / previous median: how many times the step before it in a measurement series.

    Source: tables 2 to 7 of 10.1016/j.comcom.2023.08.009.
    """
    return median / previous


def table_per_connection(table_size: float, connections: float) -> float:
    """Places of the connection tracking table for each connection ("c.t.s/num.conn." of the draft's figure 2)."""
    return table_size / connections


def connections_per_bucket(connections: float, hash_size: float) -> float:
    """Connections in each bucket of the hash table, on average (RFC 9693 section 6; the draft's figure 4)."""
    return connections / hash_size


def percent_degraded(single: float, several: float, better: Better) -> float:
    """Performance degradation Xpd, in percent of X1 (RFC 8219 section 10.2.1).

    (Xn - X1) / X1 * 100 where lower is better, (X1 - Xn) / X1 * 100 where higher is better: in both cases a worse Xn
    gives a positive percentage, and a better one a negative. `single` is X1, for one network flow.
    """
    worse = several - single if better == "lower" else single - several
    return 100 * worse / single


def rate_in_turns(first: float, second: float) -> float:
    """Rate of a chain whose devices take turns on the same cores, so that their times for a frame add up."""
    together = 1 / first + 1 / second if first and second else math.inf
    return 1 / together if together else math.inf


def four_tuples(source_ports: float, destination_ports: float) -> float:
    """Four tuples of one pair of addresses: source ports times destination ports (RFC 9693 section 4.1)."""
    return source_ports * destination_ports


def new_connection_share(connections: float, tuples: float) -> float:
    """Return the percentage of unused four tuples after `connections` of `tuples` have been opened.

    Source: row "ending new connection ratio (%)" of table 23 of 10.1016/j.comcom.2023.08.009.
    """
    return 100 * (1 - connections / tuples)


#: Ranges grow with what is made of them.
RANGES: Final = frozenset(
    {"source_address_count", "source_port_count", "destination_address_count", "destination_port_count"}
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter that varies in a measurement series.

    Attributes:
        about: parameters that may vary with it.
        has_zero: whether 0 is a position; elsewhere it says that the parameter is not known.
    """

    name: str
    parameter: str
    about: frozenset[str]
    has_zero: bool = False

    def about_of(self, result: Result) -> frozenset[str]:
        """Return the parameters that may differ between this result and others of its measurement series."""
        shared = self.parameter == "device_cores" and result.placement == "shared"
        return self.about | ({"sender_cores"} if shared else frozenset())


#: A card has a queue for each core.
CORES: Final = Axis("cores", "device_cores", frozenset({"device_cores", "device_queues", "cores"}))
#: A larger table asks for a larger limit, more buckets, and a longer time until it is full (RFC 9693 section 5.1).
SESSIONS: Final = Axis("sessions", "connections", RANGES | {"connections", "table_size", "hash_size", "udp_timeout"})
#: Clients share the same number of connections as before.
HOSTS: Final = Axis("hosts", "source_address_count", RANGES)
#: Connections that are opened while frames are sent.
NEW: Final = Axis("new", "new_rate", frozenset({"new_rate", "four_tuples"}), has_zero=True)
AXES: Final = (CORES, SESSIONS, HOSTS)
#: What else differs between two steps of an axis: in `shared` placement the senders have the device's cores, and more
#: connections need more four tuples.
_ALSO_VARIED: Final = {
    CORES.parameter: frozenset({"sender_cores"}),
    SESSIONS.parameter: frozenset({"four_tuples"}),
    HOSTS.parameter: frozenset({"four_tuples"}),
}
#: Axes along which a device gets more to do (RFC 8219 section 10).
_LOADS: Final = (SESSIONS, HOSTS)


def varied_with(name: str) -> frozenset[str]:
    """Return the parameters that may differ between results that vary `name` on purpose; some grow with it."""
    grown = next((axis.about for axis in AXES if axis.parameter == name), frozenset())
    return frozenset({name}) | grown | _ALSO_VARIED.get(name, frozenset())


def lines(results: Sequence[Result], axis: Axis) -> list[list[Result]]:
    """Split alike results so that along each line whatever varies with the axis follows it: one value at each position.

    Of the parameters that do not, each line has one value, as of a series over two parameters. Neither the lines nor
    what is in them depend on the order of the results.
    """
    values = {
        name: [str(result.parameter(name)) for result in results]
        for name in sorted(varied_with(axis.parameter) - {axis.parameter})
    }
    positions = [_position(result, axis) for result in results]
    free = [name for name, own in values.items() if len(set(zip(positions, own, strict=True))) > len(set(positions))]
    if not free:
        return [list(results)]

    def alone(name: str) -> tuple[int, int]:
        """How many values have a single position, which makes no line, and how many there are."""
        counts = Counter(value for value, _ in set(zip(values[name], positions, strict=True)))
        return sum(count == 1 for count in counts.values()), len(counts)

    own = values[min(free, key=alone)]
    parts = ([one for one, at in zip(results, own, strict=True) if at == value] for value in dict.fromkeys(own))
    return [line for part in parts for line in lines(part, axis)]


def steady(result: Result) -> tuple[str, str, tuple[float, ...]]:
    """Return a key that puts results into the same order, however they were named."""
    return str(sorted(result.parameters.flat().items())), result.results or "", result.values


#: The remark on a share of forwarding of which both rates contain the tester's own work.
WITH_TESTER: Final = (
    "in shared placement both rates contain the tester's own work, so that the device's share of plain forwarding is "
    "farther from 100 %; natgauge measure cost measures it without that"
)
_OF_BOTH: Final = "is what both rates allow, and in shared placement both contain the tester's own work"
#: Whether the true value is equal to the given value, at most it, or at least it.
Bound = Literal["", "<=", ">="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A derived figure of a result compared with another result.

    Attributes:
        value: None where there is no result to compare with, or where limits allow no statement.
        bound: whether the true value is equal to `value` (""), at most or at least it, where something other than the
            device limited one of the results.
        doubt: reason for a missing value although a result of the right kind exists; empty otherwise.
        other: index, from 0, of the result that has this reason; None = the result itself.
        differing: names of the parameters that are the reason; empty = it is another one.
    """

    value: float | None = None
    bound: Bound = ""
    doubt: str = ""
    other: int | None = None
    differing: tuple[str, ...] = ()
    note: str = ""
    reference: Result | None = None


@dataclass(frozen=True, slots=True)
class DerivedRow:
    """A derived figure of each result, by its name in tables; the unit of ratios is empty."""

    name: str
    unit: str
    comparisons: tuple[Comparison, ...]


def derived_rows(results: Sequence[Result]) -> list[DerivedRow]:
    """Return all figures that follow from comparisons of the results, computed from unrounded medians.

    Each result is compared only with comparable ones. Rows without a value for any result are included.
    """

    def row(name: str, unit: str, compare: Callable[[Result, Sequence[Result]], Comparison]) -> DerivedRow:
        return DerivedRow(name, unit, tuple(compare(result, results) for result in results))

    return [
        row("relative scale-up", "", scale_up),
        row("share of plain forwarding", "%", of_forwarding),
        *(row(f"median / previous median over {axis.name}", "", partial(to_previous, axis=axis)) for axis in AXES),
        *(row(f"degradation over {axis.name}", "%", partial(degradation, axis=axis)) for axis in _LOADS),
    ]


def scale_up(result: Result, results: Sequence[Result]) -> Comparison:
    """The relative scale-up against the same device on one core."""
    cores = result.device_cores
    if cores < 2 or not _is_rate(result):
        return Comparison()

    def compute(value: float, reference: float) -> float:
        return relative_scale_up(value, cores, reference)

    references = [other for other in _beside(result, results, CORES) if other.device_cores == 1]
    return _compare(result, results, references, CORES.about_of(result), compute)


def of_forwarding(result: Result, results: Sequence[Result]) -> Comparison:
    """The share of plain forwarding, in percent."""
    if _routes(result) or not _is_rate(result):
        return Comparison()
    routing = [other for other in results if _routes(other)]
    # It is about all that belongs to the device.
    share = _compare(result, results, routing, {"device"}, percent_of_forwarding)
    if result.placement != "shared" or share.value is None:
        return share
    # The tester's own work is the same in both, and makes them more alike.
    own: Bound = "<=" if share.value <= 100 else ">="
    if share.bound in ("", own):
        return replace(share, bound=own, note=WITH_TESTER)
    # What limited one of both leaves the other end: nothing is certain of the device's share.
    known = f"at least {at_least(share.value)}" if share.bound == ">=" else f"at most {at_most(share.value)}"
    place = next(at for at, other in enumerate(results) if other is share.reference)
    return Comparison(doubt=f"its own share is not known: {known} % {_OF_BOTH}", other=place)


def to_previous(result: Result, results: Sequence[Result], axis: Axis) -> Comparison:
    """Return the ratio of the median to the median one step earlier on the axis.

    There is no value where that step was measured with other parameters: the value of an even earlier step would be
    mistaken for it.
    """
    earlier = _earlier(result, results, axis)
    if not earlier:
        return Comparison()
    step = max(_position(other, axis) for other in earlier)
    references = [other for other in earlier if _position(other, axis) == step]
    return _compare(result, results, references, axis.about_of(result), times_previous)


def degradation(result: Result, results: Sequence[Result], axis: Axis) -> Comparison:
    """Return how much worse the result is than the first step of the axis, in percent (RFC 8219 section 10.2.1).

    RFC 8219 begins with one network flow. A note reports a measurement series that begins with more.
    """
    better, earlier = contrast.better(result.metric), _earlier(result, results, axis)
    if better is None or not earlier:
        return Comparison()
    first = min(_position(other, axis) for other in earlier)

    def compute(value: float, reference: float) -> float:
        return percent_degraded(reference, value, better)

    references = [other for other in earlier if _position(other, axis) == first]
    comparison = _compare(result, results, references, axis.about_of(result), compute)
    # One host with many sessions is no single flow.
    if comparison.value is None or (axis is SESSIONS and first == 1):
        return comparison
    note = (
        f"{result.gateway}, {result.metric}: degradation over {axis.name} is relative to the result with "
        f"{with_noun(written(first), axis.name)}; RFC 8219 section 10.2.1 starts from one network flow"
    )
    return replace(comparison, note=note)


def _position(result: Result, axis: Axis) -> float:
    return result.number(axis.parameter) or 0.0


def _earlier(result: Result, results: Sequence[Result], axis: Axis) -> list[Result]:
    """Return results of this metric and device at lower positions on this axis and equal positions on other axes."""
    here = _position(result, axis)
    fixed = [other for other in AXES if other.parameter not in axis.about_of(result)]
    if not here:
        return []
    return [
        other
        for other in _beside(result, results, axis)
        if 0 < _position(other, axis) < here
        and all(_position(other, each) == _position(result, each) for each in fixed)
    ]


def _beside(result: Result, results: Sequence[Result], axis: Axis) -> list[Result]:
    """Return results of this metric and device: those of its line, and those that it is not comparable with."""
    own = [other for other in results if (other.metric, other.gateway) == (result.metric, result.gateway)]
    about = axis.about_of(result)
    alike = [other for other in own if other is result or not comparable(result, other, except_for=about)]
    line = next(line for line in lines(alike, axis) if any(one is result for one in line))
    apart = {id(one) for one in alike} - {id(one) for one in line}
    return [other for other in own if id(other) not in apart]


def _routes(result: Result) -> bool:
    return result.parameters.device.get("kind") == "routing"


def _is_rate(result: Result) -> bool:
    return result.unit.endswith("/s")


def _compare(
    result: Result,
    results: Sequence[Result],
    references: Collection[Result],
    about: Collection[str],
    compute: Callable[[float, float], float],
) -> Comparison:
    """Hold a result against the one it differs least from of those it is comparable with; else the nearest says why.

    `compute` makes the figure of this result's value and the reference's. It depends on their ratio alone, and rises or
    falls steadily with it.
    """
    candidates = [
        (place, other, comparable(result, other, except_for=about))
        for place, other in enumerate(results)
        if other is not result and other.metric == result.metric and any(other is each for each in references)
    ]
    if not candidates:
        return Comparison()
    if result.functional:
        return Comparison(doubt=FUNCTIONAL)

    def apart(candidate: tuple[int, Result, list[Difference]]) -> tuple[object, ...]:
        _, other, differences = candidate
        return len(differences), len(comparable(result, other)), steady(other)

    place, other, differences = min(candidates, key=apart)
    if differences:
        names = tuple(difference.name for difference in differences)
        return Comparison(doubt="; ".join(map(str, differences)), other=place, differing=names)
    if contrast.bounds(other)[1] <= 0:
        return Comparison(doubt="its median is 0", other=place)
    return _bounded(result, other, place, compute)


def _bounded(result: Result, other: Result, place: int, compute: Callable[[float, float], float]) -> Comparison:
    """The figure, or the bound that limits and grave doubts leave of one of both results."""
    mine, its = contrast.left_bounds(result), contrast.left_bounds(other)
    if mine[0] == mine[1] and its[0] == its[1]:
        return Comparison(compute(result.median, other.median), reference=other)
    least = mine[0] / its[1]
    most = mine[1] / its[0] if its[0] else math.inf
    if (least > 0) == math.isfinite(most):
        limits = dict.fromkeys(compared.limited_by for compared in (result, other))
        words = dict.fromkeys(word for each in (result, other) for word in contrast.left(each).opened)
        named = f"the bottleneck was {' and '.join(limits)}"
        if words and set(limits) == {"device"}:
            named = f"doubts make it a bound ({', '.join(words)})"
        left = f"it may be between {written(least)} and {written(most)} times as much"
        return Comparison(doubt=f"{named}: {left if least else 'their ratio is not known'}", other=place)
    rises = compute(2.0, 1.0) > compute(1.0, 1.0)
    bound: Bound = "<=" if rises == math.isfinite(most) else ">="
    return Comparison(compute(most if math.isfinite(most) else least, 1.0), bound, reference=other)


#: Kinds of the customers' half and of the provider's half, by kind of the chain.
_HALVES: Final = {
    "464xlat": ("siit", "nat64"),
    "ds-lite": ("b4", "aftr"),
    "lw4o6": ("lwb4", "lwaftr"),
    "map-e": ("map-e-ce", "map-e-br"),
    "map-t": ("map-t-ce", "map-t-br"),
}
#: May differ between a chain and a half: the device, the division of a chain's cores, and whether there is a phase 1.
_ABOUT: Final = frozenset({"device", "cores_of_devices", "stateless", "connection_rate"})
#: Parameters of the device that may not differ.
_SHARED: Final = ("psid_length", "psid_offset")
#: The frames before the provider's half are those of customer edges, in IPv6: it may differ in these as well.
_ABOUT_PROVIDER: Final = _ABOUT | {
    "initiator_family", "frame_size", "connections", "source_port_count", "destination_port_count",
}  # fmt: skip


def kinds_of_halves(kind: object) -> tuple[str, str] | None:
    """Return the kinds of the customers' half and of the provider's half of a chain; None = no such chain."""
    return _HALVES.get(str(kind))


def rows_of_halves(results: Sequence[Result]) -> list[DerivedRow]:
    """Return what both halves alone let expect of each chain among the results.

    If the devices of a chain have cores of their own, the rate is the smaller one of the halves. If they share cores,
    their times for a frame add up.
    """
    in_turns = [
        _compare_halves(result, results, rate_in_turns)
        if result.parameter("cores_of_devices") is None
        else Comparison()
        for result in results
    ]
    return [
        DerivedRow("minimum of the halves", "", tuple(_compare_halves(result, results, min) for result in results)),
        DerivedRow("1 / (1/CE + 1/PE) of the halves", "", tuple(in_turns)),
    ]


def _compare_halves(result: Result, results: Sequence[Result], compute: Callable[[float, float], float]) -> Comparison:
    kinds = kinds_of_halves(result.parameter("kind"))
    if kinds is None or not _is_rate(result):
        return Comparison()
    halves = []
    for kind, about in zip(kinds, (_ABOUT, _ABOUT_PROVIDER), strict=True):
        found = [
            (_differences(result, other, about), place)
            for place, other in enumerate(results)
            if (other.metric, other.parameter("kind")) == (result.metric, kind)
        ]
        found.sort(key=lambda candidate: len(candidate[0]))
        if not found:
            return Comparison()
        differences, place = found[0]
        if differences:
            return Comparison(doubt="; ".join(map(str, differences)), other=place)
        if len(found) > 1 and not found[1][0]:
            return Comparison(doubt=f"several results are of kind {kind}")
        halves.append(results[place])
    if any(each.functional for each in (result, *halves)):
        return Comparison(doubt=FUNCTIONAL)
    return _of_halves(result, halves, compute)


def _of_halves(result: Result, halves: Sequence[Result], compute: Callable[[float, float], float]) -> Comparison:
    """The figure of both halves, or the bound that limits and grave doubts leave of it."""
    least, most = (compute(*ends) for ends in zip(*map(contrast.left_bounds, halves), strict=True))
    rates = " and ".join(f"{half.gateway} {written(half.median)} {half.unit}" for half in halves)
    note = f"{result.gateway}, {result.metric}: the halves are {rates}"
    # In `shared` placement each half contains the tester's own work, which the chain has once.
    is_shared = result.placement == "shared"
    if least < most and not least:
        doubts = ", ".join(dict.fromkeys(word for half in halves for word in contrast.left(half).opened))
        reason = f"doubts leave no such bound of a half: {doubts}"
        return Comparison(doubt=reason) if is_shared or math.isinf(most) else Comparison(most, "<=", note=note)
    return Comparison(least, ">=" if is_shared or least < most else "", note=note)


def _differences(chain: Result, half: Result, about: frozenset[str]) -> list[Difference]:
    """Return the differences that forbid to compare a half with the chain, in the frames of IPv4, too."""
    differences = comparable(chain, half, except_for=about)
    for name in _SHARED:
        mine, its = chain.parameter(name), half.parameter(name)
        # DS-Lite as a chain has no port sets, its halves have one for each host.
        if None not in (mine, its) and mine != its:
            differences.append(Difference(name, name.replace("_", " "), mine, its))
    mine, its = _ipv4_octets(chain), _ipv4_octets(half)
    return differences if mine == its else [*differences, Difference("frame_octets", "frames over IPv4", mine, its)]


def _ipv4_octets(result: Result) -> float | None:
    octets = result.parameter("frame_octets")
    sizes = octets.values() if isinstance(octets, dict) else ()
    return min((size for size in sizes if isinstance(size, int | float)), default=None)


#: Columns of a series that contain the load, in percent. A series without such a column is not one over loads.
LOADS: Final = ("offered_percent", "load_percent")
#: Column of a frame loss series: the share of the frames that the device lost (RFC 2544 section 26.3).
LOST: Final = "lost_percent"


@dataclass(frozen=True, slots=True)
class ByLoad:
    """A series over loads.

    Attributes:
        at: summary of each other number of the rows, by load in percent and by name, in the order of the rows.
    """

    column: str
    at: Mapping[float, Mapping[str, FigureSummary]]
    of_value: float


def loss_figure(result: Result) -> str:
    """Return the column of a frame loss series that its value is from.

    RFC 2544 section 26.3 counts lost frames. In shared placement a busy device slows the sender, so they are not all
    that is missing there.
    """
    return "shortfall_percent" if result.placement == "shared" else LOST


def by_load(result: Result) -> ByLoad | None:
    """Return a result's series over loads, summarized over all repetitions; None where it has no such series."""
    rows = [row for repetition in result.repetitions for row in repetition.series]
    column = next((name for name in LOADS if rows and name in rows[0]), None)
    if column is None:
        return None
    values: dict[float, dict[str, list[float]]] = {}
    for row in rows:
        load = row.get(column)
        if not isinstance(load, int | float):
            continue
        at_load = values.setdefault(load, {})
        for name, value in row.items():
            if name != column and isinstance(value, int | float):
                at_load.setdefault(name, []).append(value)
    summaries = {load: {name: summarize(each) for name, each in at_load.items()} for load, at_load in values.items()}
    return ByLoad(column, summaries, next(iter(values))) if values else None
