# SPDX-License-Identifier: Apache-2.0
"""What results allow to claim: which figures may be ranked or share an axis, which gateway is best, what cores gain.

Figures may be ranked together, and share an axis, where nothing but the gateway differs, and gateways do the same work
on frames. All views ask this module, and add its sentence where figures have different conditions.

A claim is no stronger than the interval of its contrast: an interval that contains "no difference" allows none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, get_args

from pydantic import JsonValue

from natgauge.analysis.contrast import Contrast, Sitting, better, contrast, sitting_of
from natgauge.analysis.derived import (
    CORES,
    SESSIONS,
    Axis,
    comparable,
    is_of_gateway,
    lines,
    of_host,
    steady,
    varied_with,
)
from natgauge.analysis.unit_frames import mix_of
from natgauge.figure_text import given, with_noun
from natgauge.records.comparison import GatewayRecord
from natgauge.records.measurement import Result
from natgauge.records.parameters import TRANSPORT_NAMES, Parameters, describe, differing, separated, shown
from natgauge.statistics.summary import CONFIDENCE
from natgauge.words import SIDES, enumerated

#: Parameters of the machines, which together are the host.
_HOST: Final = (
    "cpu", "microcode", "cpus_online", "cpu_quota", "hypervisor", "kernel", "kernel_parameters", "governor", "smt",
    "mitigations", "clock_source", "device_cpu", "device_kernel", "device_governor", "emulated",
)  # fmt: skip
_FAMILIES: Final = ("initiator_family", "responder_family")
_FRAMES: Final = ("frame_size", "frame_side", "frame_sizes", "down_frame_sizes")
#: The metric whose parameters move a cost.
COST: Final = "cost"
#: Parameters of the device that are conditions: the work it does.
WORK: Final = frozenset({"kind", "chain", "responder_family"})
#: Ends of the sentence on different conditions: of an order of figures, and of figures that have none.
ORDERED: Final = "the order of these figures is not that of the gateways alone"
NOT_RANKED: Final = "they are not ranked"
NOT_ON_ONE_AXIS: Final = "they are not on one axis"
NOT_RANKED_BY_TABLES: Final = "tables do not rank them"
#: All of them, in the order of a sentence.
_ENDS: Final = (ORDERED, NOT_RANKED, NOT_ON_ONE_AXIS, NOT_RANKED_BY_TABLES)
#: A longer value is not shown.
_LONGEST: Final = 40
#: Of more conditions only their number is shown.
_MOST: Final = 6
#: Of more gateways with one value only their number is shown.
_MOST_NAMES: Final = 4


@dataclass(frozen=True, slots=True)
class RankedFigure:
    """A figure that is to be put into an order."""

    name: str
    metric: str
    parameters: Parameters
    devices: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a gateway does to frames. Only gateways with equal work are ranked together."""

    kind: str
    families: str
    devices: int

    @property
    def forwards(self) -> bool:
        """Whether the device only forwards: it is what gateways are compared with, and no rival of theirs."""
        return self.kind == "routing"

    def __str__(self) -> str:
        """Return, for example, "nat44, IPv4, 1 device"."""
        return f"{self.kind}, {self.families}, {with_noun(self.devices, 'devices')}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in which figures differ.

    Attributes:
        values: value of each figure, in words; empty = too long to be shown.
        names: names of the gateways, in the order of the values.
    """

    label: str
    values: tuple[str, ...]
    names: tuple[str, ...]
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        """Return, for example, "placement (shared: a; isolated: b and c)"."""
        own: dict[str, list[str]] = {value: [] for value in self.values}
        for value, name in zip(self.values, self.names, strict=True):
            if name not in own[value]:
                own[value].append(name)
        listed = [f"{len(names)} gateways" if len(names) > _MOST_NAMES else enumerated(names) for names in own.values()]
        texts = [f"{value}: {names}" for value, names in zip(own, listed, strict=True)]
        return f"{self.label} ({'; '.join(texts)})" if all(self.values) else self.label


@dataclass(frozen=True, slots=True)
class Unlike:
    """The different conditions of figures of one metric that a view shows together; `so` is one of `_ENDS`."""

    metric: str
    conditions: tuple[Condition, ...]
    so: str

    @property
    def values(self) -> frozenset[tuple[str, str, str]]:
        """The conditions with the value of each gateway."""
        every = self.conditions
        return frozenset((one.label, *pair) for one in every for pair in zip(one.values, one.names, strict=True))

    def __str__(self) -> str:
        """Return the sentence, such as "Under different conditions: cores (1: a; 2: b); so they are not ranked."."""
        return f"Under {self.followed_by(self.so)}"

    def followed_by(self, so: str) -> str:
        """Return the sentence without its first word, with what follows for all figures that have these conditions."""
        more = f", and {len(self.conditions) - _MOST} more" if len(self.conditions) > _MOST else ""
        named = f"{', '.join(map(str, self.conditions[:_MOST]))}{more}"
        return f"different conditions: {named}; so {so}."


def figure_of(result: Result) -> RankedFigure:
    """Return the figure of a measurement."""
    chain = result.parameter("chain")
    return RankedFigure(result.gateway, result.metric, result.parameters, len(chain) if isinstance(chain, list) else 1)


def work_of(figure: RankedFigure) -> Work:
    """Return the work of the figure's gateway."""
    return Work(_value("kind", figure), _families(figure), figure.devices)


def named_works(works: Collection[Work]) -> Mapping[Work, str]:
    """Return a name for each work: its kind, or, where another one has the same kind, everything."""
    kinds = Counter(work.kind for work in dict.fromkeys(works))
    return {work: work.kind if kinds[work.kind] == 1 else str(work) for work in works}


def cost_of(gateway: GatewayRecord) -> RankedFigure:
    """Return the cost of a gateway of a comparison as a figure."""
    return RankedFigure(gateway.label, COST, gateway.parameters, gateway.devices)


def unlike_conditions(figures: Sequence[RankedFigure], *, except_for: Collection[str] = ()) -> list[Condition]:
    """Return the conditions in which figures differ; empty where they may be ranked together.

    Everything that moves a figure is a condition, but for the gateway itself and its settings. The number of devices,
    the kind and the address families are conditions. The kind of a device that only forwards is none: gateways are
    compared with it.

    Args:
        except_for: parameters that may differ, such as those of an axis, or those that are shown next to each figure.
    """
    if len(figures) < 2:
        return []
    read: dict[tuple[str, ...], tuple[str, Callable[[RankedFigure], str]]] = {
        ("placement",): ("placement", partial(_value, "placement")),
        ("chain",): ("number of devices", lambda figure: str(figure.devices)),
        ("kind",): ("kind", partial(_value, "kind")),
        _FAMILIES: ("pair of address families", _families),
        ("transport",): ("transport", _transport),
        _FRAMES: ("frame size", _frames),
        _HOST: ("host", _host),
    }
    named = {name for names in read for name in names}
    for name in dict.fromkeys(_conditions_of(figures)):
        if name not in named:
            read[(name,)] = (describe(name).label, partial(_value, name))
    found = []
    translating = [figure for figure in figures if not work_of(figure).forwards]
    for names, (label, value) in read.items():
        own = _having(names[0], figures)
        if names == ("kind",):
            own = translating or figures
        kept = [name for name in names if name not in except_for]
        if kept and _differ(own, kept):
            texts = tuple(map(value, own))
            shown_values = texts if max(map(len, texts)) <= _LONGEST and len(set(texts)) > 1 else ("",) * len(texts)
            found.append(Condition(label, shown_values, tuple(figure.name for figure in own), tuple(kept)))
    return found


def unlike(figures: Sequence[RankedFigure], *, except_for: Collection[str] = (), so: str = ORDERED) -> Unlike | None:
    """Return the different conditions of figures of one metric, with what follows; None where they have none."""
    # The same figures in another order are the same sentence.
    found = unlike_conditions(sorted(figures, key=lambda figure: figure.name), except_for=except_for)
    return Unlike(figures[0].metric, tuple(found), so) if found else None


def sentence(figures: Sequence[RankedFigure], *, except_for: Collection[str] = ()) -> str:
    """Return the sentence on the different conditions of figures of one metric; empty where they have none."""
    found = unlike(figures, except_for=except_for)
    return "" if found is None else str(found)


def said_once(every: Iterable[Unlike]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the sentences on the conditions of several views, each once and without a capital, and their metrics.

    A sentence says what follows in all views of its metrics, and for each of them the same. Conditions that another
    view of the metric has beside more are left out.
    """
    views = list(every)

    def is_part(one: Unlike) -> bool:
        return any(one.metric == other.metric and one.values < other.values for other in views)

    found = []
    for values in dict.fromkeys(one.values for one in views if not is_part(one)):
        alike = [one for one in views if one.values == values and not is_part(one)]
        by_ends: dict[tuple[str, ...], list[str]] = {}
        for metric in dict.fromkeys(one.metric for one in alike):
            ends = {one.so for one in views if one.metric == metric and one.values <= values}
            if NOT_RANKED in ends:
                ends.discard(NOT_RANKED_BY_TABLES)
            by_ends.setdefault(tuple(end for end in _ENDS if end in ends), []).append(metric)
        for in_order, metrics in by_ends.items():
            found.append((f"under {alike[0].followed_by(enumerated(in_order))}", tuple(metrics)))
    return found


def _conditions_of(figures: Sequence[RankedFigure]) -> Iterator[str]:
    """Yield the parameters that are conditions: those that move a figure, and those of the device's work.

    Of a device's settings also those of its host, and those in which repetitions differ.
    """
    every = [figure.parameters for figure in figures]
    for figure in figures:
        for group, name, _ in figure.parameters.items():
            is_own = group == "device" and is_of_gateway(name, every)
            if name in WORK or (not is_own and describe(name).moves_figure_of(figure.metric)):
                yield name


def _having(name: str, figures: Sequence[RankedFigure]) -> Sequence[RankedFigure]:
    """The figures of which a parameter is a condition: of a device's setting, those whose device has it of its host.

    A setting in which repetitions differ is a condition of all that have it.
    """
    if name in WORK or describe(name).group != "device":
        return figures
    every = [figure for figure in figures if figure.parameters.get(name) is not None]
    mixed = any(differing(figure.parameters.get(name)) for figure in every)
    return every if mixed else [figure for figure in every if of_host(name, figure.parameters) is not None]


def _differ(figures: Sequence[RankedFigure], names: Sequence[str]) -> bool:
    """Whether figures differ in one of these parameters; repetitions with several values are like nothing."""
    if names == ["chain"]:
        return len({figure.devices for figure in figures}) > 1
    first, *others = figures
    return any(
        figure.parameters.get(name) != first.parameters.get(name) or bool(differing(first.parameters.get(name)))
        for figure in others
        for name in names
        if name in WORK or describe(name).moves_figure_of(first.metric)
    )


def _value(name: str, figure: RankedFigure) -> str:
    value, unit = figure.parameters.get(name), describe(name).unit
    if not unit or not isinstance(value, int | float):
        return _shown(value)
    return given(value) if unit == "share" else f"{_shown(value)} {unit}"


def _shown(value: JsonValue) -> str:
    several = differing(value)
    return " and ".join(map(separated, several)) if several else "not stated" if value is None else separated(value)


def _families(figure: RankedFigure) -> str:
    own = [_shown(figure.parameters.get(name)).replace("ip", "IP") for name in _FAMILIES]
    return " to ".join(own) if own[0] != own[1] else own[0]


def _transport(figure: RankedFigure) -> str:
    own = figure.parameters.get("transport")
    return next((name for one, name in TRANSPORT_NAMES.items() if one == own), _shown(own))


def _frames(figure: RankedFigure) -> str:
    size, side = (figure.parameters.get(name) for name in _FRAMES[:2])
    if mix := mix_of(figure.parameters):
        return f"{mix} {SIDES.get(str(side), side)}"
    return _shown(size) if side is None else f"{_shown(size)} octets {SIDES.get(str(side), side)}"


def _host(figure: RankedFigure) -> str:
    """The processor and the kernel, which are enough to tell most hosts apart."""
    return ", ".join(shown(value) for name in ("cpu", "kernel") if (value := figure.parameters.get(name)) is not None)


#: "sure": the interval excludes that nothing differs, at the confidence level, and nothing else could change that.
#: "seen": the interval excludes it, but covers less, or there are reasons against it; true of these repetitions alone.
Certainty = Literal["sure", "seen", "cannot tell"]
#: An interval that covers less is no reason for any claim.
LEAST_COVERAGE: Final = 0.5
#: Parameters of the device, which differ between gateways.
_DEVICE: Final = frozenset({"device"})
#: Axes along which devices are compared with themselves, and what may differ in addition: a large table takes longer.
AXES: Final[tuple[Axis, ...]] = (CORES, SESSIONS)
_TIME: Final = frozenset({"most_seconds"})


@dataclass(frozen=True, slots=True)
class Claim:
    """The difference of a second result from a first one, and what it allows to claim.

    Attributes:
        first: result that the second one is compared with.
        contrast: second against first, with its interval.
        sitting: variation between runs that the repetitions do not contain; "" where they contain it.
        among: number of claims that its interval should hold together with, as of `claim`.
    """

    first: Result
    second: Result
    contrast: Contrast
    sitting: Sitting
    doubts: tuple[str, ...]
    among: int = 1

    @property
    def holds_together(self) -> bool:
        """Whether there are enough repetitions for its interval to hold together with the others."""
        return self.contrast.interval.coverage >= _together(self.among)

    @property
    def certainty(self) -> Certainty:
        """The strongest claim that the interval allows."""
        functional = self.first.functional or self.second.functional
        if functional or not self.contrast.differs or self.contrast.interval.coverage < LEAST_COVERAGE:
            return "cannot tell"
        return "sure" if self.contrast.sure and not self.sitting and not self.doubts else "seen"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Comparable results of several gateways at one point.

    Attributes:
        claims: the first result against each result of another gateway, in their order.
    """

    results: tuple[Result, ...]
    claims: tuple[Claim, ...]

    @property
    def rivals(self) -> tuple[Result, ...]:
        """Results that may be as good as the first one."""
        return tuple(claim.first for claim in self.claims if claim.certainty == "cannot tell")

    @property
    def certainty(self) -> Certainty:
        """Certainty that the first one is the best: that of the weakest claim."""
        return weakest(self.claims)


def weakest(claims: Sequence[Claim]) -> Certainty:
    """Return the certainty of the weakest of several claims, at least one."""
    return max((claim.certainty for claim in claims), key=get_args(Certainty).index)


def claim(first: Result, second: Result, among: int = 1) -> Claim:
    """Return what is known of a second result against a first one of the same metric.

    `among` is the number of claims (1 or more) that hold together, because the same data chose one result of all: their
    intervals miss with 1 - CONFIDENCE in all (Bonferroni), where there are enough repetitions for that.
    """
    doubts = (doubt.word for result in (first, second) for doubt in result.doubts if doubt.grade == "answer")
    found = contrast(first, second, _together(among), seen=True)
    return Claim(first, second, found, sitting_of(first, second), tuple(dict.fromkeys(doubts)), among)


def _together(among: int) -> float:
    """The coverage of each of so many intervals that hold together at the confidence level."""
    return 1 - (1 - CONFIDENCE) / among


def held_together(rivals: int) -> int:
    """Return the number of pairs of a best result and so many rivals: the data chose the best one among them all."""
    return math.comb(rivals + 1, 2)


def routes(result: Result) -> bool:
    """Whether the device only forwards: it is what gateways are compared with, and no rival of theirs."""
    return work(result).forwards


def work(result: Result) -> Work:
    """Return the work of a result's gateway."""
    return work_of(figure_of(result))


def alike(results: Sequence[Result], about: Collection[str]) -> list[list[Result]]:
    """Return sets of results that differ in nothing that moves the figure, except for parameters named in `about`.

    Gateways of a set do the same work, even where `about` has the device. What is in a set does not depend on the order
    of the results.
    """

    def is_alike(first: Result, second: Result) -> bool:
        return work(first) == work(second) and not comparable(first, second, except_for=about)

    sets: list[list[Result]] = []
    for result in sorted(results, key=steady):
        # Of those that are alike to one without a table of its host, two may have different ones.
        own = next((each for each in sets if all(is_alike(one, result) for one in each)), None)
        if own is None:
            sets.append([result])
        else:
            own.append(result)
    place = {id(result): at for at, result in enumerate(results)}
    in_order = [sorted(each, key=lambda one: place[id(one)]) for each in sets]
    return sorted(in_order, key=lambda each: place[id(each[0])])


def on_one_axis(results: Sequence[Result], varied: Collection[str] = ()) -> list[list[Result]]:
    """Return sets of results of one metric that may be drawn on one axis: `alike`, but for what was varied on purpose.

    The drawing shows the parameters `varied`. A device that only forwards is in each set whose gateways are compared
    with it.
    """
    about = _DEVICE.union(_TIME, *map(varied_with, varied))
    sets = alike([result for result in results if not routes(result)], about)
    forwarding = [result for result in results if routes(result)]
    for result in forwarding:
        for each in sets:
            if not comparable(each[0], result, except_for=about):
                each.append(result)
    drawn = {id(result) for each in sets for result in each}
    return sets + alike([result for result in forwarding if id(result) not in drawn], about)


def series(results: Sequence[Result], axis: Axis) -> list[list[Result]]:
    """Return measurement series along an axis, each with two positions at least, in rising order of the positions.

    What varies with the axis follows it; else there is a series for each of its values.
    """
    known = [result for result in results if (at := result.number(axis.parameter)) or (at == 0 and axis.has_zero)]
    sets = alike(known, varied_with(axis.parameter) | _TIME)
    every = [line for each in sets for line in lines(each, axis)]
    rising = [sorted(each, key=lambda result: (result.number(axis.parameter) or 0, steady(result))) for each in every]
    return [each for each in rising if each[0].number(axis.parameter) != each[-1].number(axis.parameter)]


def rankings(results: Sequence[Result]) -> list[Ranking]:
    """Return a ranking for each point with several comparable gateways.

    Devices that only forward and results of emulated machines are left out.
    """
    real = [result for result in results if not result.functional]
    gateways = [result for result in real if not routes(result)] or real
    falling = better(results[0].metric) == "higher"
    found = []
    for point in alike(gateways, _DEVICE):
        if len({result.gateway for result in point}) > 1:
            best, *others = sorted(point, key=lambda result: result.median, reverse=falling)
            rivals = [other for other in others if other.gateway != best.gateway]
            # The data that chose the best one flatter it against each of the others.
            claims = tuple(claim(other, best, held_together(len(rivals))) for other in rivals)
            found.append(Ranking((best, *others), claims))
    return found


def growths(results: Sequence[Result], axis: Axis) -> list[Claim]:
    """Return the gain along an axis of each measurement series: of its last result against its first one."""
    return [claim(each[0], each[-1]) for each in series(results, axis)]
