# SPDX-License-Identifier: Apache-2.0
"""Whether a comparison by rates agrees with the searches of its rounds: its ratios, rates and costs are computed again.

An earlier natgauge did not store which rate passed in a search, only a rate that the gateway surely sustains. The ratio
of such a comparison is somewhere between the ratios of its bounds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from natgauge.foreign import is_there
from natgauge.records.comparison import ComparisonRecord, RatioEstimate
from natgauge.records.reading import read_lines
from natgauge.records.record import parsed
from natgauge.records.store import COMPARISON, ROUND_SCHEMA, ROUNDS
from natgauge.statistics.interim import alpha_spent
from natgauge.statistics.interval import finite
from natgauge.statistics.order_statistics import median_estimate
from natgauge.stored.contradiction import ContradictionError, expect, same
from natgauge.words import Quantity

#: The most interim analyses that are tried: the rounds grow by half from one to the next.
_MOST_ANALYSES: Final = 40
#: Rounding of a value that lies exactly at its bound.
_ROUNDING: Final = 1e-9
_Rate = Annotated[float, Field(gt=0, le=1e15)]
_SOURCE: Final = "its rounds give"


class _Round(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore")

    rates: dict[str, dict[Quantity, Annotated[tuple[_Rate, _Rate | None], Field(strict=False)]]]
    passed: dict[str, dict[Quantity, _Rate]] = {}
    failed: dict[str, dict[Quantity, _Rate]] = {}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of a search, in frames/s: surely sustained, passed (None = not stored), failed (infinite = none).

    The first two are 0 where no rate passed.
    """

    lower: float
    passed: float | None
    upper: float

    @property
    def middle(self) -> float | None:
        """The rate that ratios are made of; None = not known."""
        if self.passed is None:
            return None
        return self.passed if math.isinf(self.upper) else math.sqrt(self.passed * self.upper)


_Searches = Sequence["_Bounds | None"]


def check_rates(record: ComparisonRecord, folder: Path) -> None:
    """Check a comparison by rates; a missing file of rounds contradicts nothing."""
    where, path = folder / COMPARISON, folder / ROUNDS
    if not is_there(path):
        return
    rounds = [
        parsed(_Round, line, f"{path}:{number}")
        for number, line in enumerate(read_lines(path, ROUND_SCHEMA, whole=True), start=1)
    ]
    expect("the number of rounds", record.rounds, len(rounds), f"{path} has", where)
    labels = [gateway.label for gateway in record.gateways]
    for number, each in enumerate(rounds, start=1):
        if set(each.rates) != set(labels):
            expect("the gateways", ", ".join(labels), ", ".join(each.rates), f"{path}:{number} has", where)
    for estimate in (*record.estimates, *record.control):
        baseline = _searches(rounds, record.baseline.label, estimate.quantity)
        _check_estimate(estimate, baseline, _searches(rounds, estimate.gateway, estimate.quantity), where)
    for gateway in record.gateways:
        for quantity, rate in gateway.rates.items():
            _check_rate(f"{gateway.label}, {quantity}: rate", rate, _searches(rounds, gateway.label, quantity), where)
    for cost in record.baseline_costs:
        name = f"{record.baseline.label}, {cost.quantity}: nanoseconds"
        searches = _searches(rounds, record.baseline.label, cost.quantity)
        _check_nanoseconds(name, cost.nanoseconds, cost.quantity, searches, where)


def _searches(rounds: Sequence[_Round], label: str, quantity: Quantity) -> list[_Bounds | None]:
    """Return the bounds of a gateway in each round; None where nothing is known."""
    found: list[_Bounds | None] = []
    for each in rounds:
        bounds = each.rates.get(label, {}).get(quantity)
        passed, failed = (of.get(label, {}).get(quantity) for of in (each.passed, each.failed))
        if bounds is None and failed is not None:
            found.append(_Bounds(0.0, 0.0, failed))
            continue
        found.append(bounds and _Bounds(bounds[0], passed, math.inf if bounds[1] is None else bounds[1]))
    return found


def _check_estimate(estimate: RatioEstimate, baseline: _Searches, other: _Searches, where: Path) -> None:
    name = f"{estimate.gateway}, {estimate.quantity}"
    both = [(one, two) for one, two in zip(baseline, other, strict=True) if one is not None and two is not None]
    expect(f"{name}: blocks", estimate.blocks, len(both), _SOURCE, where)
    expect(f"{name}: ratio to plain forwarding", estimate.ratio_to_forwarding, None, "by rates it is", where)
    _check_nanoseconds(f"{name}: nanoseconds", estimate.nanoseconds, estimate.quantity, other, where)
    lowest = [one.lower / two.upper for one, two in both]
    highest = [_quotient(one.upper, two.lower) for one, two in both]
    said = (estimate.low, estimate.high)
    possible = _intervals(lowest, highest, estimate.level)
    if possible and not any(all(map(same, said, ends)) for ends in possible):
        shown = [" to ".join("none" if end is None else f"{end:.6g}" for end in ends) for ends in (said, possible[0])]
        source = "its rounds give, at the first analysis,"
        raise ContradictionError(where, f"{name}: the interval of the ratio", shown[0], source, shown[1])
    if estimate.ratio is None:
        return
    # Where neither passed a rate, there is no ratio.
    both = [(one, two) for one, two in both if one.lower or two.lower]
    middles = [
        _quotient(one.middle, two.middle) for one, two in both if one.middle is not None and two.middle is not None
    ]
    if len(middles) == len(both) and both:
        expect(f"{name}: ratio", estimate.ratio, statistics.median(middles), _SOURCE, where)
    elif both:
        _check_between(f"{name}: ratio", estimate.ratio, statistics.median(lowest), statistics.median(highest), where)


def _quotient(one: float, two: float) -> float:
    return one / two if two else math.inf


def _passed(searches: _Searches) -> list[_Bounds]:
    """Return the bounds of the searches in which a rate passed."""
    return [each for each in searches if each is not None and each.lower]


def _intervals(
    lowest: Sequence[float], highest: Sequence[float], level: float
) -> list[tuple[float | None, float | None]]:
    """Return the ends of the interval at each analysis, from the first; none where there is nothing to compute."""
    found: dict[tuple[float | None, float | None], None] = {}
    for analysis in range(1, _MOST_ANALYSES):
        for last in (True, False):
            alpha = alpha_spent(analysis, 1 - level, last=last)
            low, high = median_estimate(lowest, alpha), median_estimate(highest, alpha)
            is_known = low is not None and high is not None
            found[(finite(low.lower), finite(high.upper)) if is_known and low and high else (None, None)] = None
    return list(found)


def _check_rate(name: str, rate: float | None, searches: _Searches, where: Path) -> None:
    bounds = _passed(searches)
    middles = [each.middle for each in bounds if each.middle is not None]
    if not bounds:
        expect(name, rate, None, _SOURCE, where)
    elif len(middles) == len(bounds):
        expect(name, rate, statistics.median(middles), _SOURCE, where)
    elif rate is not None:
        lower, upper = (statistics.median(getattr(each, end) for each in bounds) for end in ("lower", "upper"))
        _check_between(name, rate, lower, upper, where)


def _check_nanoseconds(
    name: str, nanoseconds: float | None, quantity: Quantity, searches: _Searches, where: Path
) -> None:
    """Check the time for a frame at the median of a gateway's rates; both directions have frames at that rate."""
    bounds = _passed(searches)
    if not bounds or math.isinf(statistics.median_high(each.upper for each in bounds)):
        expect(name, nanoseconds, None, _SOURCE, where)
        return
    directions = 2 if quantity == "both" else 1
    rate = None if nanoseconds is None or nanoseconds <= 0 else 1e9 / nanoseconds / directions
    if rate is None:
        expect(name, nanoseconds, 1e9 / directions / statistics.median(each.upper for each in bounds), _SOURCE, where)
    else:
        _check_rate(f"{name}, as a rate,", rate, searches, where)


def _check_between(name: str, value: float, lower: float, upper: float, where: Path) -> None:
    if not lower * (1 - _ROUNDING) <= value <= upper * (1 + _ROUNDING):
        source, end = ("its rounds give at least", lower) if value < lower else ("its rounds give at most", upper)
        raise ContradictionError(where, name, value, source, end)
