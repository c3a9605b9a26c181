# SPDX-License-Identifier: Apache-2.0
"""Records of comparisons made up for what shows and compares them: by a few words, everything else on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.unit.made_results import grouped

from natgauge.analysis.ratio_verdicts import above, is_decided, says_nothing, verdict_of
from natgauge.analysis.run_changes import control_margin
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate, Role, SearchLimit, SliceCounts
from natgauge.words import Quantity

BASELINE = "nftables-nat44"
CONTROL = f"{BASELINE} (A/A control)"


def estimate(
    gateway: str = "other",
    ratio: float | None = 1.1,
    low: float | None = 1.09,
    high: float | None = 1.11,
    *,
    quantity: Quantity = "up",
    **changed: Any,
) -> RatioEstimate:
    """An estimate with this ratio and interval; any other field by name."""
    verdict = "costs more" if low and low > 1 else "costs less" if high and high < 1 else "no difference"
    half = None if low is None or high is None or ratio is None else (high - low) / 2 / max(ratio, 1)
    fields = {
        "half_width": half,
        "level": 0.95,
        "verdict": "undecided" if ratio is None else verdict,
        "text": f"frame {quantity}: {gateway} has a cost",
        "above": None,
        "nanoseconds": 550.0,
        "ratio_to_forwarding": 1.4,
        "blocks": 720,
    }
    return RatioEstimate(gateway=gateway, quantity=quantity, ratio=ratio, low=low, high=high, **{**fields, **changed})


def gateway(label: str, role: Role, parameters: Mapping[str, Any] | None = None, **changed: Any) -> GatewayRecord:
    """A gateway of a comparison; parameters by their names, any other field by name."""
    known = grouped({"gateway": label.removesuffix(" (A/A control)"), **(parameters or {})})
    return GatewayRecord(**{"label": label, "role": role, "devices": 1, "parameters": known, **changed})


def compared(
    estimates: Sequence[RatioEstimate] | None = None,
    control: Sequence[RatioEstimate] | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    baseline: str = BASELINE,
    **changed: Any,
) -> ComparisonRecord:
    """A comparison by slices with these estimates; parameters of all gateways by name, any other field by name."""
    ours = tuple([estimate()] if estimates is None else estimates)
    again = f"{baseline} (A/A control)"
    quantities = list(dict.fromkeys(one.quantity for one in ours))
    if control is None:
        control = [estimate(again, 1.0, 0.995, 1.005, quantity=quantity) for quantity in quantities]
    labels = list(dict.fromkeys(one.gateway for one in ours))
    fields: dict[str, Any] = {
        "by": "slices",
        "gateways": (
            gateway(baseline, "baseline", parameters),
            *(gateway(label, "compared", parameters) for label in labels),
            gateway(again, "control", parameters),
        ),
        "estimates": ours,
        "control": tuple(control),
        "baseline_costs": [
            {"quantity": one, "nanoseconds": 500.0, "ratio_to_forwarding": 1.3, "tester_nanoseconds": 80.0}
            for one in quantities
        ],
        "forwarding_nanoseconds": dict.fromkeys(quantities, 400.0),
        "decided": all(is_decided(one, changed.get("fail_above")) for one in ours),
        "above": None if changed.get("fail_above") is None else any(one.above for one in ours),
        "resolve": 0.01,
        "fail_above": None,
        "seconds": 4.7,
        "rounds": 3,
        "seed": 7,
        "slices": SliceCounts(core=1, frames=128, slices=9000, interrupted=3, waited=0),
        "results": "results/2026-11-23-120000-compare",
        "began": 1_795_435_200.0,
    }
    return ComparisonRecord(**{**fields, **changed})


def compared_by_rates(limits: Sequence[SearchLimit | Mapping[str, object]] = (), **changed: Any) -> ComparisonRecord:
    """A comparison by rates of a gateway "nat", whose rate of new connections these limited."""
    one = estimate(
        "nat",
        None,
        None,
        None,
        quantity="new",
        ratio_to_forwarding=None,
        limits=tuple(map(SearchLimit.model_validate, limits)),
    )
    known = gateway("nat", "compared", {"placement": "isolated"}, rates={"new": 10.0})
    made = compared([one])
    gateways = (made.gateways[0], known, made.gateways[-1])
    fields: dict[str, Any] = {"by": "rates", "slices": None, "forwarding_nanoseconds": {}, "gateways": gateways}
    return compared([one], **{**fields, **changed})


def answered(record: ComparisonRecord) -> ComparisonRecord:
    """The same with the verdicts and answers that its intervals give, as a stored one must have them.

    By rates, where the control shows no noise, they are those of gateways that differ alike from both copies.
    """
    limit = record.fail_above
    quiet = {one.quantity for one in record.control if record.by == "rates" and says_nothing(one)}

    def judged(one: RatioEstimate, margin: float) -> RatioEstimate:
        if one.low is None:
            return one.model_copy(update={"verdict": "undecided", "above": None})
        answer = None if limit is None else above(*one.ends, margin, limit)
        return one.model_copy(update={"verdict": verdict_of(*one.ends, margin, record.resolve), "above": answer})

    margins = {
        one.quantity: 1.0 if one.quantity in quiet else control_margin(record, one.quantity) for one in record.estimates
    }
    ours = tuple(judged(one, margins[one.quantity]) for one in record.estimates)
    answers = {
        "estimates": ours,
        "control": tuple(judged(one, 1.0) for one in record.control),
        "decided": all(is_decided(one, limit) for one in ours),
        "above": None if limit is None else any(one.above for one in ours),
    }
    return record.model_copy(update=answers)
