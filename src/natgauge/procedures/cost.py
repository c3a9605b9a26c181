# SPDX-License-Identifier: Apache-2.0
"""Cost: how long the device works for one frame, beside plain forwarding of the same frames.

It is in no standard. Rates of the same gateway differ from hour to hour by as much as the host does. Here device, plain
forwarding and a cable are visited in turn, a fraction of a millisecond each, on one core: what slows one slows all. The
cable is the tester's own work; it is taken off both. What is left of the device, over what is left of plain forwarding,
is the answer: 1.62 says that the device works 1.62 times as long for a frame as plain forwarding does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability
from natgauge.notes import Note
from natgauge.paired import ratio
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.repetitions import Repetitions
from natgauge.procedures.kit.results import Measurement, Row
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import TrialSettings, about
from natgauge.procedures.kit.time_budget import TimeUpError, left_out
from natgauge.procedures.kit.values import whole
from natgauge.slices import (
    LEAST_FRAMES,
    MOST_FRAMES,
    USUAL_FRAMES,
    CostBlock,
    CostPlan,
    CostRound,
    blocks_of_round,
    interruption_notes,
    least_opened,
    read_quantities,
)
from natgauge.statistics.interval import Estimate
from natgauge.statistics.rounds import LEAST_ROUNDS, estimate_over_rounds
from natgauge.words import QUANTITIES, Quantity

METRIC = "cost"
UNIT = "x forwarding"
#: A device whose frames did not all come back, and come back right, has so many rounds to do better.
MOST_FAULTS: Final = 3
#: What the interval of a repetition errs with at most.
ALPHA: Final = 0.05
#: What the figures of a quantity are called behind its name.
SHARE, LOW, HIGH = "share_of_forwarding", "share_low", "share_high"
OWN, FORWARDING, TESTER = "ns", "forwarding_ns", "tester_ns"


def _check_quantities(_name: str, text: str) -> None:
    read_quantities(text)


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings):
    """Settings of the cost.

    Attributes:
        quantities: which frames, of new, up, down and both; the value is that of the last one in this order. None = all
            of them, but new only where the connections fill a block of them.
        rounds: of one repetition; 3 to 1000, because a confidence interval takes three.
        slice_frames: frames of one slice, 64 to 65536.
        hot_spots: whether a further round of each quantity, in which nothing is timed, is to tell in which functions of
            the kernel the device's work is done; it needs perf.
    """

    quantities: str | None = field(
        default=None,
        metadata=about("costs of a new connection, of a frame up, down, both; all of them", check=_check_quantities),
    )
    rounds: int = field(
        default=4,
        metadata=about(
            "rounds of one repetition", "rounds", partial(whole, lowest=LEAST_ROUNDS, highest=1000, unit="rounds")
        ),
    )
    slice_frames: int = field(
        default=USUAL_FRAMES,
        metadata=about(
            "frames of one slice", "frames", partial(whole, lowest=LEAST_FRAMES, highest=MOST_FRAMES, unit="frames")
        ),
    )

    hot_spots: bool = field(
        default=False, metadata=about("tell in which functions of the kernel the work is done (needs perf)")
    )

    def __post_init__(self) -> None:
        """Refuse what slices do not do."""
        super().__post_init__()
        left_out = {
            "loss tolerance": self.loss_tolerance,
            "frame timeout": self.frame_timeout_seconds,
            "order": self.order if self.order != "permutation" else None,
        }
        for name, value in left_out.items():
            if value:
                raise UsageError(f"{name}: {value} says nothing for slices, whose frames all come back; leave it out")
        self.blocks()

    def needs(self) -> frozenset[Ability]:
        """Slices."""
        return super().needs() | {Ability.COSTS}

    def asked(self) -> tuple[Quantity, ...]:
        """The quantities in the usual order."""
        if self.quantities is None:
            return QUANTITIES[1:] if self.connections < least_opened(self.slice_frames) else QUANTITIES
        return read_quantities(self.quantities)

    def blocks(self) -> dict[Quantity, int]:
        """Of each quantity in a round.

        Raises:
            UsageError: there are too few connections for new ones.
        """
        return blocks_of_round(self.asked(), self.connections, self.slice_frames)

    def parameters(self) -> dict[str, Any]:
        """The settings, each quantity by its name."""
        return {**super().parameters(), "quantities": ",".join(self.asked())}


class _Cost(Repetitions[Settings]):
    """The device's work for a frame / that of plain forwarding."""

    def __init__(self, runner: TrialRunner, settings: Settings) -> None:
        super().__init__(runner, settings)
        self._asked_rounds = 0
        self._slices = 0
        self._interrupted = 0
        # First, so that a host without perf is told before anything is measured.
        self._hot_spots = [self._spots_of(quantity) for quantity in settings.asked()] if settings.hot_spots else []

    def once(self, _known: float | None) -> Measurement:
        settings = self.settings
        done: list[CostRound] = []
        notes: list[Note] = []
        longest = 0.0
        while len(done) < settings.rounds:
            left = self.runner.budget.left
            if left is not None and left <= longest:
                why = f"the time of {self.runner.budget.seconds:g} s is used up"
                if len(done) < LEAST_ROUNDS:
                    raise TimeUpError(why)
                notes.append(left_out(f"rounds after {len(done)} of {settings.rounds}", why))
                break
            began = time.monotonic()
            done.append(self._round(notes))
            longest = max(longest, time.monotonic() - began)
        told = {quantity: Told.of(quantity, done) for quantity in settings.asked()}
        figures = {name: value for one in told.values() for name, value in one.figures().items()}
        return Measurement(
            value=told[settings.asked()[-1]].share.value,
            upper=None,
            limited_by="device",
            trials={},
            figures=figures,
            notes=tuple(notes),
            series=tuple(one.row() for one in told.values()),
        )

    def _round(self, notes: list[Note]) -> CostRound:
        for faults in range(1, MOST_FAULTS + 1):
            self._asked_rounds += 1
            settings = self.settings
            plan = CostPlan(
                settings.connections,
                settings.blocks(),
                frames=settings.slice_frames,
                seed=self._asked_rounds,
                settle_seconds=settings.settle_seconds,
            )
            found = self.runner.measurer.costs(plan)
            if not found.fault:
                self._slices += found.slices
                self._interrupted += found.interrupted
                return found
            if faults < MOST_FAULTS:
                notes.append(Note("trials", f"a round is void: {found.fault}"))
        raise BrokenError(
            f"{METRIC}: {found.fault}, in {MOST_FAULTS} rounds; only a device that forwards every frame has a cost: "
            "see what it does with throughput or frame-loss"
        )

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        del measurements
        what = _NAMES[self.settings.asked()[-1]]
        moves = "nanoseconds and ratios move from run to run by more than they move within a run"
        found = [Note("method", f"the value is that of {what}; {moves}; see the series for all")]
        if self.settings.asked()[0] != "new" and self.settings.quantities is None:
            text = f"{self.settings.connections} connections are too few for the cost of new ones, so it is not told"
            found.append(Note("settings", text))
        return [*found, *interruption_notes(self._interrupted, self._slices), *self._hot_spots]

    def _spots_of(self, quantity: Quantity) -> Note:
        """Of a round that is only sampled: samples cost time, so no figure comes of it."""
        settings = self.settings
        self._asked_rounds += 1
        # Where connections do not limit it, far more than a round has: a thousandth of the work is to be seen.
        blocks = settings.blocks()
        number = blocks[quantity] if quantity == "new" else 4 * sum(blocks.values())
        plan = CostPlan(
            settings.connections,
            {quantity: number},
            frames=settings.slice_frames,
            alone=True,
            seed=self._asked_rounds,
            sampled=True,
        )
        found = self.runner.measurer.costs(plan)
        name = _NAMES[quantity]
        if found.fault or not found.hot_spots:
            why = found.fault or "too few samples; use more connections"
            return Note("device", f"hot spots of {name}: {why}")
        shares = ", ".join(f"{spot.function} {spot.share:.1%}" for spot in found.hot_spots)
        return Note("device", f"hot spots of {name}: {shares}")


_NAMES: Final[dict[Quantity, str]] = {
    "new": "the first frame of a connection",
    "up": "a frame from the Initiator over standing connections",
    "down": "a frame from the Responder over standing connections",
    "both": "a frame over standing connections, from either side in turn",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What rounds told of one quantity; medians over blocks.

    Attributes:
        quantity: which frames.
        share: the device's work / that of plain forwarding, with its interval.
        device_ns: the device's work for a frame.
        forwarding_ns: the work of plain forwarding for a frame.
        tester_ns: the tester's own work for a frame, which is taken off both.
    """

    quantity: Quantity
    share: Estimate
    device_ns: float
    forwarding_ns: float
    tester_ns: float

    @classmethod
    def of(cls, quantity: Quantity, rounds: Sequence[CostRound]) -> Told:
        """Read the blocks.

        Raises:
            BrokenError: they are too few, or plain forwarding shows no work above the tester's own.
        """
        by_round = [_Blocks.of(one.blocks, quantity) for one in rounds]
        shares = [one.shares for one in by_round]
        found = estimate_over_rounds(shares, ALPHA)
        if found is None:
            raise BrokenError(
                f"{METRIC}: {quantity}: {sum(map(len, shares))} blocks are too few for an interval; use more rounds, "
                "more connections or fewer --slice-frames"
            )

        return cls(
            quantity,
            found,
            device_ns=statistics.median(value for one in by_round for value in one.device),
            forwarding_ns=statistics.median(value for one in by_round for value in one.forwarding),
            tester_ns=statistics.median(value for one in by_round for value in one.tester),
        )

    def figures(self) -> dict[str, float]:
        """By name, the quantity's first."""
        share = self.share
        named = {SHARE: share.value, LOW: share.lower, HIGH: share.upper, OWN: self.device_ns}
        named |= {FORWARDING: self.forwarding_ns, TESTER: self.tester_ns}
        return {f"{self.quantity}_{name}": value for name, value in named.items()}

    def row(self) -> Row:
        """Of the series."""
        return {
            "frames": self.quantity,
            "x_forwarding": round(self.share.value, 4),
            "low": round(self.share.lower, 4),
            "high": round(self.share.upper, 4),
            "device_ns": round(self.device_ns, 1),
            "forwarding_ns": round(self.forwarding_ns, 1),
            "tester_ns": round(self.tester_ns, 1),
        }


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A round's blocks of one quantity, the tester's own work taken off."""

    shares: list[float]
    device: list[float]
    forwarding: list[float]
    tester: list[float]

    @classmethod
    def of(cls, blocks: Sequence[CostBlock], quantity: Quantity) -> _Blocks:
        found = cls([], [], [], [])
        for block in blocks:
            if block.quantity != quantity or block.forwarding is None or block.tester is None:
                continue
            found.device.append(block.device - block.tester)
            found.forwarding.append(block.forwarding - block.tester)
            found.tester.append(block.tester)
            share = ratio(block.device, block.forwarding, block.tester, block.tester)
            if share is not None:
                found.shares.append(share)
        return found


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    better="lower",
    summary="work of the device for a frame, beside plain forwarding",
    source="RFC 9693 sections 4.4, 4.7 (trials replaced by slices beside plain forwarding)",
    settings=Settings,
    start=_Cost,
    profiles={
        "quick": {"rounds": LEAST_ROUNDS},
        "standard": {"rounds": 8},
    },
)
