# SPDX-License-Identifier: Apache-2.0
"""Two comparisons: by which factor each gateway's cost, relative to the baseline, changed from one to the other.

A ratio to a baseline is free of the speed of the host, so the ratio of two such ratios says whether a gateway changed.
It says so only where both comparisons have the same baseline, measured the same way: a changed baseline changes every
ratio.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from natgauge.analysis.change import Change, Changes, Conclusion, matched, side, split, verdict
from natgauge.analysis.comparing import Difference, different_parameters
from natgauge.analysis.conditions import COST
from natgauge.analysis.contrast import Contrast
from natgauge.analysis.ratio_verdicts import grave_doubts, margin_of
from natgauge.errors import UsageError
from natgauge.figure_text import in_percent
from natgauge.records.comparison import FRAME_OF, ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.parameters import describe
from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate
from natgauge.statistics.two_samples import ratio_of

_DEVICE: Final = "device"
_REMEDY: Final = (
    "the intervals contain what differs between rounds, not what differs between two runs; compare both versions in "
    "one natgauge compare, or say how far runs may differ: --margin"
)


def changes(
    first: Sequence[ComparisonRecord], second: Sequence[ComparisonRecord], *, about: Collection[str], margin: float
) -> Changes[RatioEstimate]:
    """Compare the comparison of each run, gateway by gateway and quantity by quantity.

    What belongs to the device may differ for a compared gateway, never for the baseline. Ratios are called better or
    worse only with a margin, because their intervals do not contain what differs between two runs.
    """
    if not first or not second:
        return Changes((), *(tuple(each for record in run for each in record.estimates) for run in (first, second)))
    for which, records in (("first", first), ("second", second)):
        if len(records) > 1:
            raise UsageError(f"diff: the {which} run has {len(records)} comparisons; name the folder of one")
    mine, its = first[0], second[0]
    _refuse(mine, its)
    pairs, *alone = matched(mine.estimates, its.estimates, lambda estimate: (estimate.gateway, estimate.quantity))
    if not pairs:
        raise UsageError(
            f"diff: the comparisons share no gateway and quantity: the first has {_named(mine)}, the second "
            f"{_named(its)}; name two comparisons of the same gateways"
        )
    return Changes(tuple(_change(mine, its, pair, about, margin) for pair in pairs), *alone)


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
    pair: tuple[RatioEstimate, RatioEstimate],
    about: Collection[str],
    margin: float,
) -> Change[RatioEstimate]:
    label, quantity = pair[0].gateway, pair[0].quantity
    kept, every = (_differences(first, second, label, allowed) for allowed in (about, ()))
    known = [_estimate(estimate) for estimate in pair]
    factor = None if known[0] is None or known[1] is None else ratio_of(known[0], known[1])
    found = None if factor is None else Contrast("ratio", factor.value, factor.interval)
    control = math.prod(control_margin(record, quantity) for record in (first, second))
    grave = dict.fromkeys((*grave_doubts(first, pair[:1]), *grave_doubts(second, pair[1:])))
    conclusion = _conclusion(pair, kept, found, control, margin)
    if grave and conclusion.outcome not in ("not compared", "cannot tell"):
        conclusion = Conclusion("cannot tell", "doubts", f"doubts could change the answer: {', '.join(grave)}")
    return Change(*pair, conclusion, found, *split(kept, every), control)


def _conclusion(
    pair: tuple[RatioEstimate, RatioEstimate],
    differences: Sequence[Difference],
    found: Contrast | None,
    control: float,
    margin: float,
) -> Conclusion:
    if differences:
        return Conclusion("not compared", "set up differently", "; ".join(map(str, differences)))
    if found is None:
        texts = zip(("first", "second"), pair, strict=True)
        unknown = "; ".join(f"{which}: {estimate.text}" for which, estimate in texts if _estimate(estimate) is None)
        return Conclusion("cannot tell", "limits", unknown)
    larger = side(found, margin)
    if not larger:
        return Conclusion("no difference seen")
    if not side(found, margin, control):
        far = "any factor" if math.isinf(control) else f"up to {in_percent(control - 1)}"
        why = f"the baseline compared with itself (A/A control) differs by {far}, too"
        return Conclusion("cannot tell", "control", why)
    # Two comparisons are made at different times.
    return Conclusion(verdict(larger, "lower")) if margin else Conclusion("cannot tell", "one sitting each", _REMEDY)


def _estimate(estimate: RatioEstimate) -> MedianEstimate | None:
    """The ratio with its interval; None where an end is not known."""
    if estimate.ratio is None or not estimate.low or estimate.high is None:
        return None
    return MedianEstimate(
        estimate.ratio, ConfidenceInterval(estimate.low, estimate.high, estimate.level), estimate.blocks
    )


def control_margin(record: ComparisonRecord, quantity: str) -> float:
    """Return the factor by which a true ratio of 1 seems to differ; 1 where the A/A control's interval contains 1.

    Infinite where the control has no interval: nothing is known of the noise.
    """
    control = next((estimate for estimate in record.control if estimate.quantity == quantity), None)
    if control is None or control.low is None:
        return math.inf
    return margin_of(*control.ends)


def _differences(
    first: ComparisonRecord, second: ComparisonRecord, label: str, about: Collection[str]
) -> list[Difference]:
    """Return the differences of the baselines, whose devices must not differ, then those of the gateways, each once."""
    strict = {name for name in about if name != _DEVICE and describe(name).group != _DEVICE}
    of_baseline = [
        replace(difference, label=f"baseline's {difference.label}")
        if describe(difference.name).group == _DEVICE
        else difference
        for difference in cost_differences(first.baseline, second.baseline, strict)
    ]
    own = cost_differences(first.gateway(label), second.gateway(label), about)
    return [*of_baseline, *(difference for difference in own if difference not in of_baseline)]


def cost_differences(first: GatewayRecord, second: GatewayRecord, about: Collection[str] = ()) -> list[Difference]:
    """Return the differences that move a cost; parameters and groups in `about` may differ."""
    return different_parameters(first.parameters, second.parameters, COST, except_for=about)


def _named(record: ComparisonRecord) -> str:
    return ", ".join(f"{estimate.gateway} ({FRAME_OF[estimate.quantity]})" for estimate in record.estimates)
