# SPDX-License-Identifier: Apache-2.0
"""From blocks to figures: ratios collected over rounds, their intervals at a look, and verdicts in words."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from natgauge.bench.rounds import work
from natgauge.comparisons.asked import Goal
from natgauge.paired import ratio
from natgauge.records.comparison import CostVerdict, RatioEstimate, SearchLimit
from natgauge.statistics.interval import Estimate
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.trials import Block
from natgauge.words import Quantity

_FRAMES_OF: Final[dict[Quantity, str]] = {
    "new": "new connection",
    "up": "frame up",
    "down": "frame down",
    "both": "frame, both ways",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A contestant among those of a round: its own position, its cable's, and that of plain forwarding."""

    label: str
    position: int
    cable: int
    forwarding: int


@dataclass(slots=True)
class Ratios:
    """What all rounds so far told of one contestant and quantity."""

    rounds: list[list[float]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    nanoseconds: list[float] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        """Ratios in all."""
        return sum(len(one) for one in self.rounds)

    def interval(self, alpha: float) -> Estimate | None:
        """Of the median of all ratios, wider where rounds disagree; None where they are too few."""
        return estimate_over_rounds(self.rounds, alpha)


class Ledger:
    """Collects blocks.

    Attributes:
        places: of the gateways, the baseline first, its twin last.
    """

    def __init__(self, places: Sequence[Place], quantities: Sequence[Quantity], slice_frames: int) -> None:
        """Start with nothing."""
        self.places = list(places)
        self._quantities = tuple(quantities)
        self._frames = 2 * slice_frames
        self._kept = {(place.label, quantity): Ratios() for place in places for quantity in quantities}
        self._tester: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}
        self._forwarding: dict[Quantity, list[float]] = {quantity: [] for quantity in quantities}

    def add(self, blocks: Sequence[Block], void: frozenset[int] = frozenset()) -> None:
        """Take a round's blocks; those of void positions say nothing."""
        baseline = self.places[0]
        if void & {baseline.position, baseline.cable}:
            return
        for kept in self._kept.values():
            kept.rounds.append([])
        for block in blocks:
            took = work(block)
            self._tester[block.quantity].append(took[baseline.cable] / self._frames)
            if baseline.forwarding not in void:
                forwarding = took[baseline.forwarding] - took[baseline.cable]
                self._forwarding[block.quantity].append(forwarding / self._frames)
            for place in self.places:
                if void & {place.position, place.cable}:
                    continue
                kept = self._kept[place.label, block.quantity]
                own, tester = took[place.position], took[place.cable]
                kept.nanoseconds.append((own - tester) / self._frames)
                _keep(kept.rounds[-1], ratio(own, took[baseline.position], tester, took[baseline.cable]))
                if place.forwarding not in void:
                    _keep(kept.shares, ratio(own, took[place.forwarding], tester, tester))

    def estimates(self, goal: Goal, alpha: float) -> list[RatioEstimate]:
        """All but the baseline's own, each interval erring with `alpha` at most; its twin's last."""
        return [
            self._estimate(place, quantity, goal, alpha) for place in self.places[1:] for quantity in self._quantities
        ]

    def baseline(self, quantity: Quantity) -> tuple[float | None, float | None]:
        """The baseline's own ns a frame, and its share of plain forwarding."""
        kept = self._kept[self.places[0].label, quantity]
        return _median(kept.nanoseconds), _median(kept.shares)

    def tester(self, quantity: Quantity) -> float | None:
        """The tester's own ns a frame beside the baseline."""
        return _median(self._tester[quantity])

    def forwarding(self, quantity: Quantity) -> float | None:
        """Work of plain forwarding for a frame like the baseline's: ns, median over blocks; None = not known."""
        return _median(self._forwarding[quantity])

    def _estimate(self, place: Place, quantity: Quantity, goal: Goal, alpha: float) -> RatioEstimate:
        kept = self._kept[place.label, quantity]
        found = kept.interval(alpha)
        twin = self._kept[self.places[-1].label, quantity]
        bias = None if place is self.places[-1] else twin.interval(alpha)
        subject = Subject(place.label, quantity, _median(kept.nanoseconds), _median(kept.shares), kept.blocks)
        return estimate_of(subject, found, bias, goal)


class Subject(NamedTuple):
    """What an estimate is of, and what it contains in addition to its ratio; fields as those of `RatioEstimate`."""

    gateway: str
    quantity: Quantity
    nanoseconds: float | None
    ratio_to_forwarding: float | None
    blocks: int
    limits: tuple[SearchLimit, ...] = ()


def estimate_of(subject: Subject, found: Estimate | None, bias: Estimate | None, goal: Goal) -> RatioEstimate:
    """Return the estimate of one gateway and quantity; arguments as those of `judge`.

    Where limits leave an end of the interval open, the ratio is not known: the verdict is undecided, and nobody may
    conclude that it costs no more than was allowed.
    """
    above = _above(found, margin_of(bias), goal)
    if found is not None and subject.limits and not 0 < found.lower <= found.upper < math.inf:
        ratio = half_width = None
        verdict, text = _open(subject, found)
        above = above or None
    else:
        ratio = None if found is None else found.value
        half_width = None if found is None else found.half_width
        verdict, text = judge(subject.gateway, subject.quantity, found, bias, goal)
    return RatioEstimate(
        **subject._asdict(),
        ratio=ratio,
        low=None if found is None else _finite(found.lower),
        high=None if found is None else _finite(found.upper),
        half_width=None if half_width is None else _finite(half_width),
        level=goal.level,
        verdict=verdict,
        text=text,
        above=above,
    )


def is_decided(one: RatioEstimate, goal: Goal) -> bool:
    """Whether the question about a gateway and quantity is answered."""
    if goal.fail_above is not None:
        return one.above is not None
    return one.verdict != "undecided" and one.half_width is not None and one.half_width <= goal.resolve


def _open(subject: Subject, found: Estimate) -> tuple[CostVerdict, str]:
    """What is known of a ratio of which only one end is, or none."""
    if found.lower > 0:
        known = f"its cost is at least {found.lower:.3g} times the baseline's"
    elif found.upper < math.inf:
        known = f"its cost is at most {found.upper:.3g} times the baseline's"
    else:
        known = "nothing is known of the ratio of costs"
    why = "; ".join(limit.text for limit in subject.limits)
    return "undecided", f"{_FRAMES_OF[subject.quantity]}: {subject.gateway}: {known}: {why}"


def judge(
    label: str, quantity: Quantity, found: Estimate | None, bias: Estimate | None, goal: Goal
) -> tuple[CostVerdict, str]:
    """A verdict on an interval, and its text.

    Args:
        label: the gateway's.
        quantity: of what.
        found: its interval; None = too few blocks.
        bias: that of the baseline's twin. Where nothing against nothing seems to differ, a difference counts only
            beyond that.
        goal: how narrow "no difference" must be.
    """
    what = _FRAMES_OF[quantity]
    if found is None:
        return "undecided", f"{what}: {label}: too few rounds or blocks"
    margin = margin_of(bias)
    if found.lower > margin:
        more = f"{_percent(found.value - 1)} more ({_percent(found.lower - 1)} to {_percent(found.upper - 1)})"
        return "costs more", f"{what}: {label} costs {more}"
    if found.upper < 1 / margin:
        less = f"{_percent(1 - found.value)} less ({_percent(1 - found.upper)} to {_percent(1 - found.lower)})"
        return "costs less", f"{what}: {label} costs {less}"
    if margin > 1 and (margin > 1 + goal.resolve or 1 not in found.interval):
        itself = "may differ by any factor" if math.isinf(margin) else f"differs by up to {_percent(margin - 1)}"
        return "undecided", (
            f"{what}: {label}: {_signed(found.lower - 1)} to {_signed(found.upper - 1)}, but the first gateway against "
            f"itself {itself}, too"
        )
    seen = max(found.upper - 1, 1 - found.lower, margin - 1)
    if found.half_width <= goal.resolve:
        return "no difference", f"{what}: {label}: no difference larger than {_percent(seen)} seen"
    return "undecided", f"{what}: {label}: between {_signed(found.lower - 1)} and {_signed(found.upper - 1)}"


def margin_of(bias: Estimate | None) -> float:
    """By which factor nothing may differ from nothing, as the first gateway's twin shows; 1 where it shows none."""
    if bias is None or 1 in bias.interval:
        return 1.0
    return max(bias.upper, 1 / bias.lower if bias.lower > 0 else math.inf)


def _above(found: Estimate | None, margin: float, goal: Goal) -> bool | None:
    if found is None or goal.fail_above is None:
        return None
    limit = 1 + goal.fail_above
    return True if found.lower > limit * margin else False if found.upper * margin <= limit else None


def _finite(value: float) -> float | None:
    """The value; None where it is infinite, for JSON has no infinity."""
    return value if math.isfinite(value) else None


def _keep(values: list[float], value: float | None) -> None:
    if value is not None:
        values.append(value)


def _median(values: Sequence[float]) -> float | None:
    return plain.median(values) if values else None


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _signed(share: float) -> str:
    return f"{share * 100:+.1f} %"
