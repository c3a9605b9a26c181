# SPDX-License-Identifier: Apache-2.0
"""Figures derived from one result and another one of its measurement series, or the reason why there is none.

A measurement series contains results of one metric and one device that differ only in the parameters of one axis.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from natgauge.analysis import contrast, derived
from natgauge.analysis.comparing import Difference, comparable
from natgauge.figure_text import at_least, at_most, with_noun
from natgauge.figure_text import number as written
from natgauge.records.measurement import FUNCTIONAL, Result

#: Parameters that a scale-up varies. A card has a queue for each core. A device on the senders' cores has the same
#: number of cores as the senders.
_CORES: Final = frozenset({"device_cores", "device_queues", "cores"})
#: What the share of forwarding is about: all that belongs to the device.
_DEVICE: Final = frozenset({"device"})
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


CORES: Final = Axis("cores", "device_cores", _CORES)
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

    references = [other for other in _beside(result, results, CORES) if other.device_cores == 1]

    def compute(value: float, reference: float) -> float:
        return derived.relative_scale_up(value, cores, reference)

    return _compare(result, results, references, CORES.about_of(result), compute)


def of_forwarding(result: Result, results: Sequence[Result]) -> Comparison:
    """The share of plain forwarding, in percent."""
    if _routes(result) or not _is_rate(result):
        return Comparison()
    routing = [other for other in results if _routes(other)]
    share = _compare(result, results, routing, _DEVICE, derived.percent_of_forwarding)
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
    return _compare(result, results, references, axis.about_of(result), derived.to_previous)


def degradation(result: Result, results: Sequence[Result], axis: Axis) -> Comparison:
    """Return how much worse the result is than the first step of the axis, in percent (RFC 8219 section 10.2.1).

    RFC 8219 begins with one network flow. A note reports a measurement series that begins with more.
    """
    better, earlier = contrast.better(result.metric), _earlier(result, results, axis)
    if better is None or not earlier:
        return Comparison()
    first = min(_position(other, axis) for other in earlier)

    def compute(value: float, reference: float) -> float:
        return derived.degradation(reference, value, better)

    references = [other for other in earlier if _position(other, axis) == first]
    comparison = _compare(result, results, references, axis.about_of(result), compute)
    # One host with many sessions is no single flow.
    if comparison.value is None or (axis is SESSIONS and first == 1):
        return comparison
    reference = f"{with_noun(written(first), axis.name)}"
    note = (
        f"{result.gateway}, {result.metric}: degradation over {axis.name} is relative to the result with {reference}; "
        "RFC 8219 section 10.2.1 starts from one network flow"
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
        left = f"between {written(least)} and {written(most)} times as much" if least else ""
        return Comparison(doubt=f"{named}: {f'it may be {left}' if left else 'their ratio is not known'}", other=place)
    rises = compute(2.0, 1.0) > compute(1.0, 1.0)
    bound: Bound = "<=" if rises == math.isfinite(most) else ">="
    return Comparison(compute(most if math.isfinite(most) else least, 1.0), bound, reference=other)
