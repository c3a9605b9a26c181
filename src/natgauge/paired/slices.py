# SPDX-License-Identifier: Apache-2.0
"""Rounds of short slices that alternate between devices: the plan of a round and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from natgauge.errors import UsageError
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
class RoundPlan:
    """One round of slices; `connections` are those of the device, or the fewest of several gateways.

    Attributes:
        blocks: number of blocks of each quantity, >= 0; a block has two slices of each place that is measured. Two
            slices of each block of new connections, and their leads, must fit into the connections.
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


class BlockWork(NamedTuple):
    """Work of one block.

    Attributes:
        nanoseconds: for a frame, by position in the round; the tester's own work is included.
    """

    quantity: Quantity
    nanoseconds: Sequence[float]


class UnreadLog(NamedTuple):
    """A log of a gateway in slices, which nobody compares with the connections.

    Attributes:
        dropped: messages, of a record or more each, that found no room, as far as the gateway tells.
        connections: number of connections that its records are of, at least 1.
    """

    dropped: int
    connections: int


class HotSpot(NamedTuple):
    """A function of the kernel, and its own share of the device's work."""

    function: str
    share: float


@dataclass(frozen=True, slots=True)
class TimedRound:
    """The result of a round.

    Attributes:
        work: of each block, in the order of time; positions are those of the devices, then of the cables.
        faults: fault of the frames by the position of a void place; its work says nothing.
        slices: number of slices; `waited` of them began late, and in `interrupted` the core was taken away for more
            than 1 ms.
        hot_spots: functions that take most of the device's work; empty if the round was not sampled, or the samples
            were too few.
        unread_logs: records that the log of a gateway dropped, by position; empty = no gateway has a log.
    """

    work: tuple[BlockWork, ...]
    faults: Mapping[int, str]
    slices: int
    interrupted: int
    waited: int = 0
    hot_spots: tuple[HotSpot, ...] = ()
    other_traffic: OtherTraffic = NO_OTHER_TRAFFIC
    unread_logs: Mapping[int, UnreadLog] = field(default_factory=dict)


#: Blocks of new connections in a round: with the usual slices, nearly all of 100,000.
_OPENING_BLOCKS: Final = 240
#: Two rounds of fewer make no interval of 95 %.
_LEAST_OPENING_BLOCKS: Final = 3
#: Blocks over established connections in a round, all quantities together: about as long as it takes to open them.
_ESTABLISHED_BLOCKS: Final = 240


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
