# SPDX-License-Identifier: Apache-2.0
"""Cost: the device's work for one frame, compared with plain forwarding of the same frames.

docs/method/comparison.md has the method. Rates of the same gateway differ from hour to hour by as much as the host
does. Here device, plain forwarding and a cable are visited in turn, a fraction of a millisecond each, on one core: what
slows one slows all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.inputs.input import Text, chosen, wrong
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import COST, FORWARDING, HIGH, LOW, OWN, RATIO, TESTER
from natgauge.notes import Note
from natgauge.paired.ratios import PairedRatios, RoundSums, Seat, Seating, VoidRounds, disturbance_notes
from natgauge.paired.slices import (
    LEAST_FRAMES,
    MOST_FRAMES,
    USUAL_FRAMES,
    RoundPlan,
    TimedRound,
    blocks_of_round,
    least_opened,
    read_quantities,
)
from natgauge.procedures.kit.procedure import Procedure, Repetitions
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TimeUpError, TrialRunner, left_out
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.repetition import Row
from natgauge.statistics.rounds import LEAST_ROUNDS
from natgauge.statistics.summary import MedianEstimate
from natgauge.words import QUANTITIES, SENDING, Quantity

#: What the interval of a repetition errs with at most.
ALPHA: Final = 0.05


def _check_quantities(_name: str, text: str) -> None:
    read_quantities(text)


@dataclass(frozen=True, kw_only=True)
class CostSettings(TrialSettings):
    """Settings of the cost.

    The value is the cost of the last quantity, in the order new, up, down, both; new is left out where the connections
    fill no block of them. A confidence interval needs three rounds.
    """

    quantities: str | None = chosen(
        None,
        "costs to measure: of a new connection (new), and of a frame in each direction (up, down, both)",
        type=Text("QUANTITIES"),
        check=_check_quantities,
        default="all",
    )
    rounds: int = chosen(4, "rounds of one repetition", "rounds", (LEAST_ROUNDS, 1000))
    slice_frames: int = chosen(USUAL_FRAMES, "frames of a slice", "frames", (LEAST_FRAMES, MOST_FRAMES))
    hot_spots: bool = chosen(False, "list the kernel functions that take the time (requires perf)")

    def __post_init__(self) -> None:
        super().__post_init__()
        left_out = {
            "loss_tolerance": self.loss_tolerance,
            "frame_timeout_seconds": self.frame_timeout_seconds,
            "order": self.order if self.order != "permutation" else None,
        }
        for name, value in left_out.items():
            if value:
                raise wrong(name, f"{value} says nothing for slices, whose frames all come back; leave it out")
        self.blocks()

    @property
    def unused(self) -> dict[str, str]:
        """What belongs to trials: slices are not judged, and frames that do not come back make a round void."""
        return super().unused | dict.fromkeys(("zero_checksum", "invalid_repeats"), "slices are no trials")

    def needs(self) -> frozenset[Ability]:
        """Return the required abilities: slices, in addition to those of all trials."""
        return super().needs() | {Ability.COSTS}

    def timed_quantities(self) -> tuple[Quantity, ...]:
        """Return the quantities to time, in the order of `QUANTITIES`."""
        if self.quantities is None:
            return QUANTITIES[1:] if self.connections < least_opened(self.slice_frames) else QUANTITIES
        return read_quantities(self.quantities)

    def blocks(self) -> dict[Quantity, int]:
        """Return the number of blocks of each quantity in a round."""
        return blocks_of_round(self.timed_quantities(), self.connections, self.slice_frames)

    def parameters(self) -> dict[str, Any]:
        """The settings, each quantity by its name."""
        return {**super().parameters(), "quantities": ",".join(self.timed_quantities())}


class _Cost(Repetitions[CostSettings]):
    """The device's work for a frame / that of plain forwarding."""

    def __init__(self, runner: TrialRunner, settings: CostSettings) -> None:
        super().__init__(runner, settings)
        self._requested_rounds = 0
        self._sums: list[RoundSums] = []
        # First, so that a host without perf is refused before anything is measured.
        self._hot_spots = (
            [self._spots_of(quantity) for quantity in settings.timed_quantities()] if settings.hot_spots else []
        )

    def once(self, _known: float | None) -> Measurement:
        settings = self.settings
        notes: list[Note] = []
        sums: RoundSums | None = None
        done, longest = 0, 0.0
        while done < settings.rounds:
            left = self.runner.budget.left
            if left is not None and left <= longest:
                why = f"the time of {self.runner.budget.seconds:g} s is used up"
                if done < LEAST_ROUNDS:
                    raise TimeUpError(why)
                notes.append(left_out(f"rounds after {done} of {settings.rounds}", why))
                break
            began = time.monotonic()
            plan = self._plan(settings.blocks(), settle_seconds=settings.settle_seconds)
            timed = self.runner.measurer.costs(plan)
            sums = sums or self._begun(timed)
            done += sums.add(timed)
            longest = max(longest, time.monotonic() - began)
        ratios = self._sums[-1].ratios
        notes = [*self._sums[-1].voids.notes, *notes]
        costs = {quantity: QuantityCost.of(quantity, ratios) for quantity in settings.timed_quantities()}
        figures = {name: value for cost in costs.values() for name, value in cost.figures().items()}
        notes.extend(note for cost in costs.values() for note in cost.notes())
        last = costs[settings.timed_quantities()[-1]]
        return Measurement(
            value=last.share.upper if last.hidden else last.share.value,
            upper=None,
            limited_by="tester" if last.hidden else "device",
            trials={},
            figures=figures,
            notes=tuple(notes),
            series=tuple(cost.row() for cost in costs.values()),
        )

    def _plan(self, blocks: Mapping[Quantity, int], **others: Any) -> RoundPlan:
        """Return the plan of the next round, which has a seed of its own.

        No two repetitions, cells or runs have the same orders of visits, so that what favours an order shows as spread.
        """
        self._requested_rounds += 1
        settings, seed = self.settings, (self.runner.measurer.seed + self._requested_rounds) % 2**64
        return RoundPlan(settings.connections, blocks, frames=settings.slice_frames, seed=seed, **others)

    def _begun(self, first: TimedRound) -> RoundSums:
        """Return the sums of a repetition, to which its first round is to be added."""
        # A round visits the device, and plain forwarding and a cable of each address family.
        families = len(first.work[0].nanoseconds) // 2
        seating = Seating([Seat("device", range(families))])
        remedy = "only a gateway that forwards every frame has a cost: measure its throughput or frame-loss instead"
        ratios = PairedRatios([seating.plain(), *seating.places], self.settings.timed_quantities())
        self._sums.append(RoundSums(VoidRounds(COST.name, "round", lambda _: remedy), seating, ratios))
        return self._sums[-1]

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        what = _NAMES[self.settings.timed_quantities()[-1]]
        moves = "nanoseconds and ratios move from run to run by more than they move within a run"
        notes = [Note("method", f"the value is that of {what}; {moves}; see the series for all")]
        if len(self._sums[-1].ratios.places[0].cables) > 1:
            text = (
                "no cable carries frames between two address families: the tester's own work is the mean of a cable of "
                "each, the intervals contain what follows from either alone, and plain forwarding is the mean of both"
            )
            notes.append(Note("method", text))
        if self.settings.timed_quantities()[0] != "new" and self.settings.quantities is None:
            text = (
                f"{self.settings.connections} connections are too few for the cost of new ones, so it is not reported"
            )
            notes.append(Note("settings", text))
        others, interruptions = disturbance_notes(self._sums)
        return [*notes, *others, *interruptions, *self._hot_spots]

    def _spots_of(self, quantity: Quantity) -> Note:
        """Return the hot spots of a round that is only sampled: sampling takes time, so it gives no other figure."""
        blocks = self.settings.blocks()
        # Where connections do not limit it, far more than a round has: a thousandth of the work is to be seen.
        number = blocks[quantity] if quantity == "new" else 4 * sum(blocks.values())
        timed = self.runner.measurer.costs(self._plan({quantity: number}, alone=True, sampled=True))
        name = _NAMES[quantity]
        if timed.faults or not timed.hot_spots:
            why = f"device: {timed.faults[0]}" if timed.faults else "too few samples; use more connections"
            return Note("device", f"hot spots of {name}: {why}")
        shares = ", ".join(f"{spot.function} {in_percent(spot.share)}" for spot in timed.hot_spots)
        return Note("device", f"hot spots of {name}: {shares}")


_NAMES: Final[dict[Quantity, str]] = {
    "new": "the first frame of a connection",
    "up": f"a frame {SENDING['up']} over established connections",
    "down": f"a frame {SENDING['down']} over established connections",
    "both": "a frame over established connections, from inside and outside in turn",
}


@dataclass(frozen=True, slots=True)
class QuantityCost:
    """The cost of one quantity; medians over blocks.

    `hidden`: the device has no work above the tester's own in a round, so that the upper end of the interval is a bound
    on its cost, and the lower end is 0.
    """

    quantity: Quantity
    share: MedianEstimate
    device_ns: float
    forwarding_ns: float
    tester_ns: float
    hidden: bool = False

    @classmethod
    def of(cls, quantity: Quantity, ratios: PairedRatios) -> QuantityCost:
        """Read the blocks of all rounds."""
        plain_forwarding, device = ratios.places
        share = ratios.estimate(device, quantity, ALPHA)
        own, forwarding = (ratios.nanoseconds(place, quantity) for place in (device, plain_forwarding))
        tester = ratios.tester(quantity)
        if share is None or own is None or forwarding is None or tester is None:
            raise BrokenError(
                f"{COST}: {quantity}: {ratios.blocks(device, quantity)} blocks are too few for an interval; use "
                "more rounds, more connections or fewer --slice-frames"
            )
        if math.isfinite(share.upper):
            return cls(quantity, share, own, forwarding, tester)
        bound = ratios.bound(device, quantity, ALPHA)
        if bound is None:
            raise BrokenError(
                f"{COST}: {quantity}: in a round plain forwarding shows no work above the tester's own, so the ratio "
                "has no upper bound; use more --slice-frames, or measure while the host is idle"
            )
        bounded = replace(share, interval=replace(share.interval, lower=0.0, upper=max(bound, share.value)))
        return cls(quantity, bounded, own, forwarding, tester, hidden=True)

    def notes(self) -> list[Note]:
        """Return a note where the cost is a bound."""
        if not self.hidden:
            return []
        text = (
            f"{self.quantity}: the device's work does not show above the tester's own in every round: its cost is at "
            f"most {written(self.share.upper)} times that of plain forwarding"
        )
        return [Note("device", text)]

    def figures(self) -> dict[str, float]:
        """Return the figures by name; each name begins with the quantity."""
        share = self.share
        named = {RATIO: share.value, LOW: share.lower, HIGH: share.upper, OWN: self.device_ns}
        named |= {FORWARDING: self.forwarding_ns, TESTER: self.tester_ns}
        return {f"{self.quantity}_{name}": value for name, value in named.items()}

    def row(self) -> Row:
        """Return the row of the series: ratios of work, and times in ns per frame."""
        return {
            "frames": self.quantity,
            "x_forwarding": round(self.share.value, 4),
            "low": round(self.share.lower, 4),
            "high": round(self.share.upper, 4),
            "device_ns": round(self.device_ns, 1),
            "forwarding_ns": round(self.forwarding_ns, 1),
            "tester_ns": round(self.tester_ns, 1),
        }


PROCEDURE = Procedure(
    COST, settings=CostSettings, start=_Cost, profiles={"quick": {"rounds": LEAST_ROUNDS}, "standard": {"rounds": 8}}
)
