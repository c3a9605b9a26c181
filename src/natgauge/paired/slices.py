# SPDX-License-Identifier: Apache-2.0
"""Rounds of short slices that alternate between devices: the plan of a round and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from natgauge.errors import BrokenError, UsageError
from natgauge.notes import Note
from natgauge.other_traffic import NO_OTHER_TRAFFIC, OtherTraffic
from natgauge.words import QUANTITIES, Quantity

#: Fewest and most frames of a slice: enough to be timed, and few enough to end soon.
LEAST_FRAMES: Final = 64
MOST_FRAMES: Final = 65_536
#: Short, so that few slices have a tick of the kernel or a frozen core in them.
USUAL_FRAMES: Final = 128
#: Frames ahead of each slice that are not timed, a batch: they find in the caches what other devices left there.
LEAD_FRAMES: Final = 64


@dataclass(frozen=True, slots=True)
class CostPlan:
    """One round of slices.

    Attributes:
        blocks: number of blocks of each quantity, >= 0; a block has two slices of each place that is measured. Two
            slices of each block of new connections, and their leads, must fit into N.
        alone: whether only the device is measured; else plain forwarding of the same frames and a cable, too.
        seed: seed of the orders within blocks, 0 to 2**64 - 1.
        sampled: whether the round samples the functions of the device's work; only with one quantity, and `alone`.
    """

    connections: int
    blocks: Mapping[Quantity, int]
    frames: int = USUAL_FRAMES
    alone: bool = False
    seed: int = 0
    settle_seconds: float = 0.0
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class CostBlock:
    """Work per frame on the core in one block, in ns, including the tester's own work.

    Attributes:
        forwarding: work through plain forwarding, for each address family of the frames; empty = not measured.
        tester: work over a cable, which is the tester's own work, for each of these families; empty = not measured.
    """

    quantity: Quantity
    device: float
    forwarding: tuple[float, ...] = ()
    tester: tuple[float, ...] = ()


class HotSpot(NamedTuple):
    """A function of the kernel, and its own share of the device's work."""

    function: str
    share: float


@dataclass(frozen=True, slots=True)
class CostRound:
    """The result of a round.

    Attributes:
        blocks: in the order of time; none where a frame was lost or wrong.
        fault: fault of the frames; empty = none.
        interrupted: slices in which the core was taken away for more than 1 ms.
        hot_spots: functions that take most of the device's work; empty if the round was not sampled, or the samples
            were too few.
    """

    blocks: tuple[CostBlock, ...]
    fault: str
    slices: int
    interrupted: int
    hot_spots: tuple[HotSpot, ...] = ()
    other_traffic: OtherTraffic = NO_OTHER_TRAFFIC


#: A larger share of interrupted slices makes intervals visibly wider.
_MANY_INTERRUPTED: Final = 0.05
#: Blocks of new connections in a round: with the usual slices, nearly all of 100,000.
_OPENING_BLOCKS: Final = 240
#: Two rounds of fewer make no interval of 95 %.
_LEAST_OPENING_BLOCKS: Final = 3
#: Blocks over established connections in a round, all quantities together: about as long as it takes to open them.
_ESTABLISHED_BLOCKS: Final = 240


def interruption_notes(interrupted: int, slices: int) -> list[Note]:
    """Return a note on slices with an interruption of more than 1 ms, if there are many."""
    if interrupted <= _MANY_INTERRUPTED * slices:
        return []
    share = interrupted / slices
    text = f"the core was taken away for more than 1 ms in {share:.0%} of all slices; intervals are wider"
    return [Note("trials", text, interrupted)]


def read_quantities(text: str) -> tuple[Quantity, ...]:
    """The quantities of "new,up", in the usual order."""
    named = [part.strip() for part in text.split(",")]
    for quantity in named:
        if quantity not in QUANTITIES:
            raise UsageError(f"quantities: {quantity!r} is unknown; choose of {', '.join(QUANTITIES)}", at="quantities")
    return tuple(quantity for quantity in QUANTITIES if quantity in named)


def connections_of_block(frames: int) -> int:
    """Return the connections that a block opens through each device, with slices of `frames` frames."""
    return 2 * (LEAD_FRAMES + frames)


def least_opened(frames: int) -> int:
    """Return the fewest connections with which a round has enough blocks of new connections."""
    return _LEAST_OPENING_BLOCKS * connections_of_block(frames)


def blocks_of_round(quantities: Sequence[Quantity], connections: int, frames: int) -> dict[Quantity, int]:
    """Return the number of blocks of each quantity in a round; the connections limit those of new connections."""
    established: list[Quantity] = [quantity for quantity in quantities if quantity != "new"]
    blocks: dict[Quantity, int] = {quantity: _ESTABLISHED_BLOCKS // len(established) for quantity in established}
    if "new" in quantities:
        if connections < least_opened(frames):
            raise UsageError(
                f"connections: {connections} are too few for the cost of new ones in slices of {frames} frames; use at "
                f"least {least_opened(frames)} connections, fewer --slice-frames, or leave new out of --quantities",
                at="connections",
            )
        blocks["new"] = min(_OPENING_BLOCKS, connections // connections_of_block(frames))
    return blocks


#: A gateway that is void in this many rounds in a row ends the measurement.
MOST_VOID: Final = 3


@dataclass(slots=True)
class VoidRounds:
    """Notes void rounds, and counts those in a row.

    A message that ends the measurement begins with the command and ends with the remedy; `what` is void: "round" or
    "search".
    """

    command: str
    what: str
    remedy: str
    notes: list[Note] = field(default_factory=list)
    _in_a_row: dict[str, int] = field(default_factory=dict)

    def judge(self, gateway: str, why: str) -> None:
        """Take a round into account: `why` it is void, or empty; `gateway` is empty where there is only one.

        A gateway whose rounds are void `MOST_VOID` times in a row ends the measurement.
        """
        if not why:
            self._in_a_row.pop(gateway, None)
            return
        self._in_a_row[gateway] = self._in_a_row.get(gateway, 0) + 1
        if self._in_a_row[gateway] >= MOST_VOID:
            named = f"{gateway}: " if gateway else ""
            plural = "searches" if self.what == "search" else f"{self.what}s"
            raise BrokenError(f"{self.command}: {named}{why}, in {MOST_VOID} {plural} in a row; {self.remedy}")
        of = f" of {gateway}" if gateway else ""
        self.notes.append(Note("trials", f"a {self.what}{of} is void: {why}"))
