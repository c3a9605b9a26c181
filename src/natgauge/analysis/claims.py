# SPDX-License-Identifier: Apache-2.0
"""What results allow to claim: which gateway is best at a point, and what a device gains along an axis.

A claim is no stronger than the interval of its contrast: an interval that contains "no difference" allows none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.analysis.between_runs import Sitting, sitting_of
from natgauge.analysis.comparing import comparable
from natgauge.analysis.conditions import Work, figure_of, work_of
from natgauge.analysis.contrast import Contrast, better, contrast
from natgauge.analysis.scalability import CORES, SESSIONS, Axis, lines, steady, varied_with
from natgauge.records.measurement import Result
from natgauge.statistics.interval import CONFIDENCE

#: "sure": the interval excludes that nothing differs, at the confidence level, and nothing else could change that.
#: "seen": the interval excludes it, but covers less, or there are reasons against it; true of these repetitions alone.
Certainty = Literal["sure", "seen", "cannot tell"]
CERTAINTIES: Final[tuple[Certainty, ...]] = ("sure", "seen", "cannot tell")
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


@dataclass(frozen=True, slots=True)
class Growth:
    """The last result of a measurement series against its first one."""

    axis: Axis
    claim: Claim


def weakest(claims: Sequence[Claim]) -> Certainty:
    """Return the certainty of the weakest of several claims, at least one."""
    return max((claim.certainty for claim in claims), key=CERTAINTIES.index)


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


def growths(results: Sequence[Result], axis: Axis) -> list[Growth]:
    """Return the gain along an axis of each measurement series."""
    return [Growth(axis, claim(each[0], each[-1])) for each in series(results, axis)]
