# SPDX-License-Identifier: Apache-2.0
"""What both methods of comparing gateways share: estimates of cost ratios, and how a round is made.

`by_slices` and `by_rates` have the same methods. Within the `with` block of a method labs and gateways may be up.
`round` measures each gateway once, stores the evidence and adds it to the estimates; NotMadeAgainError of a later round
than the first leaves what the rounds before it gave, any other error ends the comparison. `first_analysis` rounds are
measured before the first interim analysis. `estimates` has the A/A control's last. `findings` is asked while the labs
are up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from natgauge.analysis import ratio_verdicts
from natgauge.analysis.ratio_verdicts import verdict_of
from natgauge.comparisons.request import ComparisonGoal
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.figure_text import at_least, at_most
from natgauge.gateways.limits import shares_table
from natgauge.gateways.recipe import Recipe
from natgauge.interval_text import percent
from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios
from natgauge.records.comparison import (
    FRAME_OF,
    BaselineCost,
    CostVerdict,
    Method,
    RatioEstimate,
    SearchLimit,
    SliceCounts,
)
from natgauge.records.parameters import Parameters
from natgauge.statistics.summary import MedianEstimate, finite
from natgauge.words import Quantity


def estimates_of(ratios: PairedRatios, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
    """Return estimates for all places except the baseline; estimates for the last place, the A/A control, are last.

    Args:
        alpha: largest probability that an interval misses the true value.
    """
    estimates, control = list[RatioEstimate](), ratios.places[-1]
    for place, quantity in itertools.product(ratios.places[1:], ratios.quantities):
        margin = 1.0 if place is control else margin_of(ratios.estimate(control, quantity, alpha))
        to_forwarding, blocks = ratios.ratio_to_forwarding(place, quantity), ratios.blocks(place, quantity)
        subject = Subject(place.label, quantity, ratios.nanoseconds(place, quantity), to_forwarding, blocks)
        estimates.append(estimate_of(subject, ratios.estimate(place, quantity, alpha), margin, goal))
    return estimates


class Subject(NamedTuple):
    """The subject of an estimate, and fields other than the ratio; names as in `RatioEstimate`."""

    gateway: str
    quantity: Quantity
    nanoseconds: float | None
    ratio_to_forwarding: float | None
    blocks: int
    limits: tuple[SearchLimit, ...] = ()


def estimate_of(
    subject: Subject, estimate: MedianEstimate | None, margin: float, goal: ComparisonGoal, failures: str = ""
) -> RatioEstimate:
    """Return the estimate for one gateway and quantity; arguments as in `judge`.

    If limits or failures leave an end of the interval open, the ratio is unknown, and the known end decides the
    verdict. An open upper end never makes `above` False, because the cost may exceed what was allowed.

    Args:
        failures: searches in which a gateway passed no rate, as a sentence without its full stop; empty = none.
    """
    why = "; ".join([*(limit.text for limit in subject.limits), *([failures] if failures else [])])
    above = None
    if estimate is not None and goal.fail_above is not None:
        above = ratio_verdicts.above(estimate.lower, estimate.upper, margin, goal.fail_above)
    if estimate is not None and why and not 0 < estimate.lower <= estimate.upper < math.inf:
        ratio = half_width = None
        verdict, text = _open(subject, estimate, margin, why)
    else:
        ratio = None if estimate is None else estimate.value
        half_width = None if estimate is None else estimate.half_width
        verdict, text = judge(subject.gateway, subject.quantity, estimate, margin, goal)
    return RatioEstimate(
        **{**subject._asdict(), "ratio_to_forwarding": finite(subject.ratio_to_forwarding)},
        ratio=finite(ratio),
        low=None if estimate is None else finite(estimate.lower),
        high=None if estimate is None else finite(estimate.upper),
        half_width=finite(half_width),
        level=goal.level,
        verdict=verdict,
        text=text,
        above=above,
    )


def _open(subject: Subject, estimate: MedianEstimate, margin: float, why: str) -> tuple[CostVerdict, str]:
    """Return the verdict on a ratio with one known end, or none, and why; margin as of `margin_of`."""
    verdict: CostVerdict = "undecided"
    if estimate.lower > margin:
        verdict, known = "costs more", f" costs at least {percent(estimate.lower - 1, 'down')} more"
    elif estimate.upper < 1 / margin:
        verdict, known = "costs less", f" costs at least {percent(1 - estimate.upper, 'down')} less"
    elif estimate.lower > 0:
        known = f": its cost is at least {at_least(estimate.lower)} times the baseline's"
    elif estimate.upper < math.inf:
        known = f": its cost is at most {at_most(estimate.upper)} times the baseline's"
    else:
        known = ": the ratio of costs is unknown"
    return verdict, f"{FRAME_OF[subject.quantity]}: {subject.gateway}{known}: {why}"


def judge(
    label: str, quantity: Quantity, estimate: MedianEstimate | None, margin: float, goal: ComparisonGoal
) -> tuple[CostVerdict, str]:
    """Return the verdict on an interval, and its text.

    Args:
        estimate: median ratio with its interval; None = too few blocks.
        margin: factor by which the A/A control may differ from the baseline, as of `margin_of`; 1 for the control
            itself. The two are the same gateway, so a difference counts only beyond that.
    """
    what = FRAME_OF[quantity]
    if estimate is None:
        return "undecided", f"{what}: {label}: too few rounds or blocks"
    ends = [percent(estimate.lower - 1, "down", sign=True), percent(estimate.upper - 1, "up", sign=True)]
    verdict = verdict_of(estimate.lower, estimate.upper, margin, goal.resolve)
    if verdict in ("costs more", "costs less"):
        shares = [estimate.value - 1, estimate.lower - 1, estimate.upper - 1]
        if verdict == "costs less":
            shares = [1 - estimate.value, 1 - estimate.upper, 1 - estimate.lower]
        middle, least, most = percent(shares[0]), percent(shares[1], "down"), percent(shares[2], "up")
        return verdict, f"{what}: {label} costs {middle} {verdict.removeprefix('costs ')} ({least} to {most})"
    if margin > 1 and (margin > 1 + goal.resolve or 1 not in estimate.interval):
        itself = "may differ by any factor" if math.isinf(margin) else f"differs by up to {percent(margin - 1, 'up')}"
        return verdict, f"{what}: {label}: {' to '.join(ends)}, but the A/A control {itself}, too"
    largest = max(estimate.upper - 1, 1 - estimate.lower, margin - 1)
    if verdict == "no difference":
        return verdict, f"{what}: {label}: no difference larger than {percent(largest, 'up')} seen"
    return verdict, f"{what}: {label}: between {ends[0]} and {ends[1]}"


def margin_of(control: MedianEstimate | None) -> float:
    """Return the factor by which the A/A control may differ from the baseline; 1 if its interval contains 1.

    Infinite without an interval, as after void rounds: nothing is known of the noise, so no difference counts.
    """
    return math.inf if control is None else ratio_verdicts.margin_of(control.lower, control.upper)


class NotMadeAgainError(BrokenError):
    """The labs of a later round could not be made; the text is that of the error that prevented it."""


@contextmanager
def making_again(number: int) -> Iterator[None]:
    """Make the labs of round `number`, counted from 0, within the block."""
    try:
        yield
    except NatgaugeError as error:
        if not number:
            raise
        raise NotMadeAgainError(str(error)) from error


@contextmanager
def named(label: str, recipe: str) -> Iterator[None]:
    """Put a gateway's label in front of each error of the block, unless its recipe has the same name.

    Two versions of a gateway have recipes of the same name, and messages name the recipe.
    """
    try:
        yield
    except NatgaugeError as error:
        if label != recipe:
            error.args = (f"{label}: {error}",)
        raise


def sharing(recipes: Iterable[Recipe]) -> int:
    """Return the number of gateways that share a table of the whole machine, at least 1.

    The table gets that many times the buckets, so that each gateway has the buckets that it has alone.
    """
    return max(1, sum(map(shares_table, recipes)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """Results of all rounds in addition to ratios; fields as those of `ComparisonRecord` and `GatewayRecord`.

    Attributes:
        parameters: all that was set for each gateway, by its label: the baseline first, the A/A control last.
        rates: highest rates by the label of the gateway; empty by slices.
    """

    by: Method
    parameters: Mapping[str, Parameters]
    baseline_costs: tuple[BaselineCost, ...]
    forwarding_nanoseconds: dict[Quantity, float | None] = field(default_factory=dict)
    slices: SliceCounts | None = None
    rates: Mapping[str, dict[Quantity, float | None]] = field(default_factory=dict)
    doubts: Mapping[str, dict[Quantity, tuple[Note, ...]]] = field(default_factory=dict)
