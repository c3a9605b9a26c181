# SPDX-License-Identifier: Apache-2.0
"""Two comparisons: by which factor each gateway's cost, relative to the baseline, changed from one to the other.

A ratio to a baseline is free of the speed of the host, so the ratio of two such ratios says whether a gateway changed.
It says so only where both comparisons have the same baseline, measured the same way: a changed baseline changes every
ratio.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from natgauge.analysis.comparing import Difference, different_parameters
from natgauge.errors import UsageError
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.parameters import describe
from natgauge.statistics.independent_ratios import ratio_of
from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate

#: The metric whose parameters move a cost.
_METRIC: Final = "cost"
_DEVICE: Final = "device"


@dataclass(frozen=True, slots=True)
class RatioChange:
    """The cost of one gateway for one quantity in two comparisons.

    Attributes:
        first: its ratio to the baseline in the first comparison.
        second: its ratio in the second one.
        differences: parameters that keep the two from being compared.
        about: parameters that differ, and may.
        factor: second ratio / first ratio, with its confidence interval; None = one of them is not known.
        margin: factor (1 or more) by which the A/A controls of both comparisons differ from 1; infinite = not known.
    """

    first: RatioEstimate
    second: RatioEstimate
    differences: tuple[Difference, ...]
    about: tuple[Difference, ...]
    factor: MedianEstimate | None
    margin: float


@dataclass(frozen=True, slots=True)
class RatioChanges:
    """All changes between two comparisons, and estimates that only one of them has."""

    lines: tuple[RatioChange, ...]
    only_first: tuple[RatioEstimate, ...]
    only_second: tuple[RatioEstimate, ...]


def changes(first: ComparisonRecord, second: ComparisonRecord, *, about: Collection[str] = ()) -> RatioChanges:
    """Compare two comparisons, gateway by gateway.

    Args:
        first: a comparison.
        second: a later one, for example.
        about: names of parameters, or of whole groups, that may differ; what belongs to the device may differ for a
            compared gateway, never for the baseline.

    Raises:
        UsageError: the comparisons are of different kinds of cost, have different baselines, or share no gateway.
    """
    _refuse(first, second)
    ours = {(estimate.gateway, estimate.quantity): estimate for estimate in first.estimates}
    theirs = {(estimate.gateway, estimate.quantity): estimate for estimate in second.estimates}
    common = [key for key in ours if key in theirs]
    if not common:
        raise UsageError(
            f"diff: the comparisons share no gateway and quantity: the first has {_named(first)}, the second "
            f"{_named(second)}; name two comparisons of the same gateways"
        )
    baseline = _differences(first.baseline, second.baseline, _without_device(about))
    unfiltered = _differences(first.baseline, second.baseline, ())
    lines = []
    for key in common:
        label, _ = key
        pair = first.gateway(label), second.gateway(label)
        kept = _each_once([*_of_baseline(baseline), *_differences(*pair, about)])
        every = _each_once([*_of_baseline(unfiltered), *_differences(*pair, ())])
        allowed = tuple(difference for difference in every if difference not in kept)
        lines.append(_change(first, second, ours[key], theirs[key], (kept, allowed)))
    return RatioChanges(
        tuple(lines),
        tuple(estimate for key, estimate in ours.items() if key not in theirs),
        tuple(estimate for key, estimate in theirs.items() if key not in ours),
    )


def _refuse(first: ComparisonRecord, second: ComparisonRecord) -> None:
    if first.by != second.by:
        raise UsageError(
            f"diff: the first comparison is by {first.by}, the second by {second.by}, which are different costs; run "
            "both with the same --by"
        )
    if first.baseline.label != second.baseline.label:
        raise UsageError(
            f"diff: the baselines are {first.baseline.label} and {second.baseline.label}; ratios to different "
            "baselines cannot be compared: run both comparisons with one baseline"
        )


def _change(
    first: ComparisonRecord,
    second: ComparisonRecord,
    mine: RatioEstimate,
    its: RatioEstimate,
    differences: tuple[tuple[Difference, ...], tuple[Difference, ...]],
) -> RatioChange:
    known = [_estimate(estimate) for estimate in (mine, its)]
    factor = None if known[0] is None or known[1] is None else ratio_of(known[0], known[1])
    margin = math.prod(_control_margin(record, mine) for record in (first, second))
    return RatioChange(mine, its, *differences, factor, margin)


def _estimate(estimate: RatioEstimate) -> MedianEstimate | None:
    """The ratio with its interval; None where an end is not known."""
    if estimate.ratio is None or not estimate.low or estimate.high is None:
        return None
    return MedianEstimate(
        estimate.ratio, ConfidenceInterval(estimate.low, estimate.high, estimate.level), estimate.blocks
    )


def _control_margin(record: ComparisonRecord, of: RatioEstimate) -> float:
    """The factor by which a true ratio of 1 seems to differ from 1; 1 where the A/A control's interval contains 1."""
    control = next((estimate for estimate in record.control if estimate.quantity == of.quantity), None)
    if control is None or control.low is None or (control.low <= 1 and (control.high is None or control.high >= 1)):
        return 1.0
    lower = 1 / control.low if control.low > 0 else math.inf
    return max(lower, math.inf if control.high is None else control.high)


def _differences(first: GatewayRecord, second: GatewayRecord, about: Collection[str]) -> list[Difference]:
    return different_parameters(first.parameters, second.parameters, _METRIC, except_for=about)


def _without_device(about: Collection[str]) -> set[str]:
    """Return the parameters that may differ for the baseline: none of the device itself."""
    return {name for name in about if name != _DEVICE and describe(name).group != _DEVICE}


def _of_baseline(differences: Sequence[Difference]) -> list[Difference]:
    """Return differences of the device under the names that they have for the baseline."""
    return [
        replace(difference, label=f"baseline's {difference.label}")
        if describe(difference.name).group == _DEVICE
        else difference
        for difference in differences
    ]


def _each_once(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    unlike: list[Difference] = []
    for difference in differences:
        if difference not in unlike:
            unlike.append(difference)
    return tuple(unlike)


def _named(record: ComparisonRecord) -> str:
    return ", ".join(f"{estimate.gateway} ({estimate.quantity})" for estimate in record.estimates)
