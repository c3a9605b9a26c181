# SPDX-License-Identifier: Apache-2.0
"""Whether the folder of a comparison agrees with itself: its ratios follow from its rounds, its verdicts from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from natgauge.analysis.ratio_changes import control_margin
from natgauge.analysis.ratio_verdicts import above, is_decided, says_nothing, verdict_of
from natgauge.foreign import is_there
from natgauge.paired.ratios import PairedRatios, RoundPlace, Seat, Seating, work_of_block
from natgauge.records.comparison import ComparisonRecord, CostVerdict, RatioEstimate
from natgauge.records.reading import read_document, read_lines
from natgauge.records.record import damaged, parsed
from natgauge.records.store import COMPARISON, PLAN, PLAN_SCHEMA, ROUND_SCHEMA, ROUNDS, TRIALS
from natgauge.statistics.interval import finite, relative_half_width
from natgauge.stored.contradiction import expect
from natgauge.stored.parameter_consistency import check_values
from natgauge.stored.rates_consistency import check_rates
from natgauge.stored.ratio_consistency import check_ratio
from natgauge.stored.trial_consistency import check_trials
from natgauge.words import Quantity

_Count = Annotated[int, Field(ge=0, lt=2**63)]
#: Kind of a gateway that is its own plain forwarding.
_ROUTING: Final = "routing"


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore")


class _Block(_Part):
    quantity: Quantity
    order: list[_Count]
    ns: list[_Count]
    waited: _Count
    interrupted: _Count


class _Contestant(_Part):
    name: str


class _Slices(_Part):
    frames: Annotated[int, Field(ge=1)]


class _Request(_Part):
    cpu: _Count | None = None
    contestants: list[_Contestant]
    slices: _Slices


class _Result(_Part):
    blocks: list[_Block]


class _Round(_Part):
    request: _Request
    result: _Result
    void: dict[str, str] = {}


def refuse_contradictions(record: ComparisonRecord, folder: Path) -> None:
    """Refuse a comparison that its own folder contradicts; files that are missing contradict nothing."""
    where = folder / COMPARISON
    for estimate in (*record.estimates, *record.control):
        _check_width(estimate, where)
    check_verdicts(record, where)
    for gateway in record.gateways:
        check_values(gateway.parameters, None, where)
    if is_there(folder / TRIALS):
        check_trials(folder / TRIALS, [gateway.label for gateway in record.gateways])
    if record.by == "rates":
        check_rates(record, folder)
    rounds, plan = folder / ROUNDS, folder / PLAN
    if record.by != "slices" or not is_there(rounds) or not is_there(plan):
        return
    read = [
        _checked(line, f"{rounds}:{at}")
        for at, line in enumerate(read_lines(rounds, ROUND_SCHEMA, whole=True), start=1)
    ]
    expect("the number of rounds", record.rounds, len(read), f"{rounds} has", where)
    _check_slices(record, read, where)
    places = _places(record, read_document(plan, PLAN_SCHEMA))
    if places and read:
        _check_ratios(record, _ratios(record, read, places, rounds), where)


def _check_width(estimate: RatioEstimate, where: Path) -> None:
    if None in (estimate.ratio, estimate.low, estimate.high, estimate.half_width):
        return
    width = relative_half_width(estimate.ratio or 0.0, estimate.low or 0.0, estimate.high or 0.0)
    name = f"{estimate.gateway}, {estimate.quantity}: half the width of the interval"
    expect(name, estimate.half_width, width, "its ends give", where)


def _checked(line: Mapping[str, Any], where: str) -> _Round:
    found = parsed(_Round, line, where)
    number = len(found.request.contestants)
    for block in found.result.blocks:
        if sorted(block.order) != list(range(number)) or len(block.ns) != 2 * number:
            raise damaged(where, f"a block is not of its {number} contestants")
    return found


def _check_slices(record: ComparisonRecord, rounds: Sequence[_Round], where: Path) -> None:
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
            raise damaged(f"{path}:{number}", "is not a round of these gateways")
        void = frozenset(int(position) for position in each.void if position.isdecimal())
        frames = each.request.slices.frames
        ratios.add((work_of_block(block.quantity, block.order, block.ns, frames) for block in each.result.blocks), void)
    return ratios


def _check_ratios(record: ComparisonRecord, ratios: PairedRatios, where: Path) -> None:
    places = {place.label: place for place in ratios.places}
    source = "its rounds give"
    for estimate in (*record.estimates, *record.control):
        place, quantity = places[estimate.gateway], estimate.quantity
        name = f"{estimate.gateway}, {quantity}"
        expect(f"{name}: blocks", estimate.blocks, ratios.blocks(place, quantity), source, where)
        expect(f"{name}: nanoseconds", estimate.nanoseconds, ratios.nanoseconds(place, quantity), source, where)
        forwarding = finite(ratios.ratio_to_forwarding(place, quantity))
        expect(f"{name}: ratio to plain forwarding", estimate.ratio_to_forwarding, forwarding, source, where)
        check_ratio(estimate, partial(ratios.estimate, place, quantity), where)
    for cost in record.baseline_costs:
        name, baseline = f"{record.baseline.label}, {cost.quantity}", ratios.places[0]
        forwarding = finite(ratios.ratio_to_forwarding(baseline, cost.quantity))
        expect(f"{name}: nanoseconds", cost.nanoseconds, ratios.nanoseconds(baseline, cost.quantity), source, where)
        expect(f"{name}: ratio to plain forwarding", cost.ratio_to_forwarding, forwarding, source, where)
        expect(f"{name}: the tester's part", cost.tester_nanoseconds, ratios.tester(cost.quantity), source, where)
    for quantity, nanoseconds in record.forwarding_nanoseconds.items():
        expect(f"plain forwarding, {quantity}", nanoseconds, ratios.forwarding(quantity), source, where)


def check_verdicts(record: ComparisonRecord, where: Path) -> None:
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
