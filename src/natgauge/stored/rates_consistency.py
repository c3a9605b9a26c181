# SPDX-License-Identifier: Apache-2.0
"""Whether a comparison by rates agrees with the searches of its rounds: its figures are computed again."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from natgauge.foreign import is_there
from natgauge.paired.rates import RateBounds, RateRounds, pairs, ratio_of
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.reading import read_lines
from natgauge.records.record import parsed
from natgauge.records.store import COMPARISON, ROUND_SCHEMA, ROUNDS
from natgauge.stored.contradiction import expect
from natgauge.stored.ratio_consistency import check_ratio
from natgauge.words import Quantity

_Rate = Annotated[float, Field(gt=0, le=1e15)]
_SOURCE: Final = "its rounds give"


class _Round(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore")

    rates: dict[str, dict[Quantity, Annotated[tuple[_Rate, _Rate | None], Field(strict=False)]]]
    passed: dict[str, dict[Quantity, _Rate]]
    failed: dict[str, dict[Quantity, _Rate]]

    @model_validator(mode="after")
    def _of_the_same_searches(self) -> Self:
        for label, of_label in self.rates.items():
            if of_label.keys() != self.passed.get(label, {}).keys():
                raise ValueError(f"the rates and the passed rates of {label} are of different searches")
        return self

    def bounds(self, label: str, quantity: Quantity) -> RateBounds | None:
        """Bounds of a search; None where nothing is known."""
        bounds, failed = self.rates.get(label, {}).get(quantity), self.failed.get(label, {}).get(quantity)
        if bounds is None:
            return None if failed is None else RateBounds(0.0, 0.0, failed)
        lower, upper = bounds
        return RateBounds(lower, self.passed[label][quantity], math.inf if upper is None else upper)


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

    def searched(label: str, quantity: Quantity) -> RateRounds:
        return RateRounds(label, quantity, [each.bounds(label, quantity) for each in rounds])

    for estimate in (*record.estimates, *record.control):
        baseline, other = (searched(label, estimate.quantity) for label in (record.baseline.label, estimate.gateway))
        name = f"{estimate.gateway}, {estimate.quantity}"
        expect(f"{name}: blocks", estimate.blocks, len(pairs(baseline, other)), _SOURCE, where)
        expect(f"{name}: ratio to plain forwarding", estimate.ratio_to_forwarding, None, "by rates it is", where)
        expect(f"{name}: nanoseconds", estimate.nanoseconds, other.nanoseconds, _SOURCE, where)
        check_ratio(estimate, partial(ratio_of, baseline, other), where)
    for gateway in record.gateways:
        for quantity, rate in gateway.rates.items():
            found = searched(gateway.label, quantity).rate
            expect(f"{gateway.label}, {quantity}: rate", rate, found, _SOURCE, where)
    for cost in record.baseline_costs:
        found = searched(record.baseline.label, cost.quantity).nanoseconds
        expect(f"{record.baseline.label}, {cost.quantity}: nanoseconds", cost.nanoseconds, found, _SOURCE, where)
