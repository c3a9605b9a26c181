# SPDX-License-Identifier: Apache-2.0
"""Whether the folder of a comparison agrees with itself: its ratios follow from its rounds, its verdicts from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from natgauge.analysis.ratio_verdicts import above, is_decided, says_nothing, verdict_of
from natgauge.analysis.run_changes import control_margin
from natgauge.errors import UsageError
from natgauge.file_access import is_there
from natgauge.paired.ratios import (
    PairedRatios,
    RateBounds,
    RateRounds,
    RoundPlace,
    Seat,
    Seating,
    pairs,
    ratio_of,
    work_of_block,
)
from natgauge.records.comparison import ComparisonRecord, CostVerdict, RatioEstimate
from natgauge.records.record import StoredPart, first_fault, read_document, read_lines
from natgauge.records.store import COMPARISON, PLAN, PLAN_SCHEMA, ROUND_SCHEMA, ROUNDS, TRIALS
from natgauge.statistics.rounds import possible_alphas
from natgauge.statistics.summary import MedianEstimate, finite, relative_half_width
from natgauge.stored.consistency import ContradictionError, check_trials, check_values, expect, same
from natgauge.words import Quantity

_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Rate = Annotated[float, Field(gt=0, le=1e15)]
#: Kind of a gateway that is its own plain forwarding.
_ROUTING: Final = "routing"
_SOURCE: Final = "its rounds give"
_Read = TypeVar("_Read", bound=StoredPart)


class _Block(StoredPart):
    quantity: Quantity
    order: list[_Count]
    ns: list[_Count]
    waited: _Count
    interrupted: _Count


class _Contestant(StoredPart):
    name: str


class _Slices(StoredPart):
    frames: Annotated[int, Field(ge=1)]


class _Request(StoredPart):
    cpu: _Count | None = None
    contestants: list[_Contestant]
    slices: _Slices


class _Result(StoredPart):
    blocks: list[_Block]


class _Round(StoredPart):
    request: _Request
    result: _Result
    void: dict[str, str] = Field(default_factory=dict)


class _RateRound(StoredPart):
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


def refuse_contradictions(record: ComparisonRecord, folder: Path) -> None:
    """Refuse a comparison that its own folder contradicts; files that are missing contradict nothing."""
    where, rounds, plan = folder / COMPARISON, folder / ROUNDS, folder / PLAN
    for estimate in (*record.estimates, *record.control):
        _check_width(estimate, where)
    _check_verdicts(record, where)
    for gateway in record.gateways:
        check_values(gateway.parameters, None, where)
    if is_there(folder / TRIALS):
        check_trials(folder / TRIALS, [gateway.label for gateway in record.gateways])
    if not is_there(rounds):
        return
    if record.by == "rates":
        _check_rates(record, _read(_RateRound, record, rounds, where), rounds, where)
    elif is_there(plan):
        read = _read(_Round, record, rounds, where)
        _check_slices(record, read, rounds, where)
        places = _places(record, read_document(plan, PLAN_SCHEMA))
        if places and read:
            _check_ratios(record, _ratios(record, read, places, rounds), where)


def _read(kind: type[_Read], record: ComparisonRecord, path: Path, where: Path) -> list[_Read]:
    """Read the rounds of a comparison, of which there are as many as its record says."""
    read = []
    for number, line in enumerate(read_lines(path, ROUND_SCHEMA, whole=True), start=1):
        try:
            read.append(kind.model_validate(line))
        except (ValidationError, RecursionError) as error:
            raise _damaged(f"{path}:{number}", first_fault(error)) from None
    expect("the number of rounds", record.rounds, len(read), f"{path} has", where)
    return read


def _damaged(where: str, why: str) -> UsageError:
    return UsageError(f"results: {where}: {why}; it is damaged, measure again")


def _check_width(estimate: RatioEstimate, where: Path) -> None:
    if None in (estimate.ratio, estimate.low, estimate.high, estimate.half_width):
        return
    width = relative_half_width(estimate.ratio or 0.0, estimate.low or 0.0, estimate.high or 0.0)
    name = f"{estimate.gateway}, {estimate.quantity}: half the width of the interval"
    expect(name, estimate.half_width, width, "its ends give", where)


def _check_slices(record: ComparisonRecord, rounds: Sequence[_Round], path: Path, where: Path) -> None:
    for at, each in enumerate(rounds, start=1):
        number = len(each.request.contestants)
        for block in each.result.blocks:
            if sorted(block.order) != list(range(number)) or len(block.ns) != 2 * number:
                raise _damaged(f"{path}:{at}", f"a block is not of its {number} contestants")
    if record.slices is None:
        return
    blocks = [block for each in rounds for block in each.result.blocks]
    for name, actual in (
        ("slices", sum(len(block.ns) for block in blocks)),
        ("interrupted", sum(block.interrupted for block in blocks)),
        ("waited", sum(block.waited for block in blocks)),
        ("frames", next((each.request.slices.frames for each in rounds), record.slices.frames)),
        ("core", next((each.request.cpu for each in rounds if each.request.cpu is not None), record.slices.core)),
    ):
        expect(f"{name} of the slices", getattr(record.slices, name), actual, "its rounds have", where)


def _places(record: ComparisonRecord, plan: Mapping[str, Any]) -> list[RoundPlace]:
    """Return the places of all gateways in a round, as the comparison chose them; none where the plan is of no use."""
    gateways = plan.get("gateways")
    labels = [gateway.label for gateway in (record.baseline, *record.compared)]
    if not isinstance(gateways, dict) or list(gateways) != labels:
        return []
    try:
        frames = [[tuple(sorted(one.items())) for one in gateways[label]["frames"]] for label in labels]
        hash(tuple(map(tuple, frames)))
    except (LookupError, TypeError, AttributeError):
        return []
    if not all(frames):
        return []
    seats = [
        Seat(gateway.label, own, gateway.parameters.get("kind") == _ROUTING)
        for gateway, own in zip((record.baseline, *record.compared), frames, strict=True)
    ]
    return Seating([*seats, Seat(record.gateways[-1].label, frames[0])]).places


def _ratios(
    record: ComparisonRecord, rounds: Sequence[_Round], places: Sequence[RoundPlace], path: Path
) -> PairedRatios:
    quantities = [cost.quantity for cost in record.baseline_costs]
    ratios = PairedRatios(places, quantities)
    most = max(position for place in places for position in (*place.positions, *place.cables, *place.forwarding))
    for number, each in enumerate(rounds, start=1):
        of_these = all(block.quantity in quantities for block in each.result.blocks)
        if len(each.request.contestants) <= most or not of_these:
            raise _damaged(f"{path}:{number}", "is not a round of these gateways")
        void = frozenset(int(position) for position in each.void if position.isdecimal())
        frames = each.request.slices.frames
        ratios.add((work_of_block(block.quantity, block.order, block.ns, frames) for block in each.result.blocks), void)
    return ratios


def _check_ratios(record: ComparisonRecord, ratios: PairedRatios, where: Path) -> None:
    places = {place.label: place for place in ratios.places}
    for estimate in (*record.estimates, *record.control):
        place, quantity = places[estimate.gateway], estimate.quantity
        name = f"{estimate.gateway}, {quantity}"
        expect(f"{name}: blocks", estimate.blocks, ratios.blocks(place, quantity), _SOURCE, where)
        expect(f"{name}: nanoseconds", estimate.nanoseconds, ratios.nanoseconds(place, quantity), _SOURCE, where)
        forwarding = finite(ratios.ratio_to_forwarding(place, quantity))
        expect(f"{name}: ratio to plain forwarding", estimate.ratio_to_forwarding, forwarding, _SOURCE, where)
        _check_ratio(estimate, partial(ratios.estimate, place, quantity), where)
    for cost in record.baseline_costs:
        name, baseline = f"{record.baseline.label}, {cost.quantity}", ratios.places[0]
        forwarding = finite(ratios.ratio_to_forwarding(baseline, cost.quantity))
        expect(f"{name}: nanoseconds", cost.nanoseconds, ratios.nanoseconds(baseline, cost.quantity), _SOURCE, where)
        expect(f"{name}: ratio to plain forwarding", cost.ratio_to_forwarding, forwarding, _SOURCE, where)
        expect(f"{name}: the tester's part", cost.tester_nanoseconds, ratios.tester(cost.quantity), _SOURCE, where)
    for quantity, nanoseconds in record.forwarding_nanoseconds.items():
        expect(f"plain forwarding, {quantity}", nanoseconds, ratios.forwarding(quantity), _SOURCE, where)


def _check_rates(record: ComparisonRecord, rounds: Sequence[_RateRound], path: Path, where: Path) -> None:
    """Check a comparison by rates: its figures are computed again of the searches of its rounds."""
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
        _check_ratio(estimate, partial(ratio_of, baseline, other), where)
    for gateway in record.gateways:
        for quantity, rate in gateway.rates.items():
            found = searched(gateway.label, quantity).rate
            expect(f"{gateway.label}, {quantity}: rate", rate, found, _SOURCE, where)
    for cost in record.baseline_costs:
        found = searched(record.baseline.label, cost.quantity).nanoseconds
        expect(f"{record.baseline.label}, {cost.quantity}: nanoseconds", cost.nanoseconds, found, _SOURCE, where)


def _check_ratio(estimate: RatioEstimate, at: Callable[[float], MedianEstimate | None], where: Path) -> None:
    """Check a ratio and its interval by what the rounds give at an interim analysis that spent so much alpha."""
    name = f"{estimate.gateway}, {estimate.quantity}"
    analyses = map(at, possible_alphas(1 - estimate.level))
    # The first one spent most, so that no other one has an interval where it has none.
    first, said = next(analyses), (estimate.low, estimate.high)
    if not any(all(map(same, said, _ends(found))) for found in chain([first], analyses)):
        shown = [" to ".join("none" if end is None else f"{end:.6g}" for end in ends) for ends in (said, _ends(first))]
        source = "its rounds give, at the first analysis,"
        raise ContradictionError(where, f"{name}: the interval of the ratio", shown[0], source, shown[1])
    # There is none where limits leave an end of its interval open.
    if estimate.ratio is not None:
        expect(f"{name}: ratio", estimate.ratio, first and finite(first.value), _SOURCE, where)


def _ends(found: MedianEstimate | None) -> tuple[float | None, float | None]:
    return (None, None) if found is None else (finite(found.lower), finite(found.upper))


def _check_verdicts(record: ComparisonRecord, where: Path) -> None:
    """Check the verdicts of a comparison by its ratios, and its answers by its verdicts."""
    open_controls = {control.quantity for control in record.control if says_nothing(control)}
    for estimate in (*record.estimates, *record.control):
        margins = [1.0 if estimate in record.control else control_margin(record, estimate.quantity)]
        # A control that shows no noise decides nothing where the gateway differs alike from both copies.
        margins += [1.0] if record.by == "rates" and estimate.quantity in open_controls else []
        found = [_judged(estimate, margin, record) for margin in margins]
        if (estimate.verdict, estimate.above) in found:
            continue
        name = f"{estimate.gateway}, {estimate.quantity}"
        expect(f"{name}: verdict", estimate.verdict, found[0][0], "its interval gives", where)
        expect(f"{name}: above", estimate.above, found[0][1], "its interval gives", where)
    decided = all(is_decided(estimate, record.fail_above) for estimate in record.estimates)
    expect("decided", record.decided, decided, "its verdicts give", where)
    any_above = None if record.fail_above is None else any(estimate.above for estimate in record.estimates)
    expect("above", record.above, any_above, "its verdicts give", where)


def _judged(estimate: RatioEstimate, margin: float, record: ComparisonRecord) -> tuple[CostVerdict, bool | None]:
    """Return the verdict, and the answer to `fail_above`; of too few blocks for an interval nothing follows."""
    if estimate.low is None:
        return "undecided", None
    answer = None if record.fail_above is None else above(*estimate.ends, margin, record.fail_above)
    return verdict_of(*estimate.ends, margin, record.resolve), answer
