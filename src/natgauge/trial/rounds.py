# SPDX-License-Identifier: Apache-2.0
"""A round of slices through devices that run at the same time: the engine's request, and the verdict on its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from natgauge.agreement import (
    Block,
    ComparisonRequest,
    ComparisonResult,
    Contestant,
    ContestantCounts,
    Phase1,
    Slices,
    TrialLimits,
    TrialRequest,
    compare,
)
from natgauge.gateways.recipe import load
from natgauge.inputs.question import Cell
from natgauge.labs.common.cable import CableLab
from natgauge.other_traffic import OtherTraffic
from natgauge.paired.order import both_slices
from natgauge.paired.ratios import BlockWork
from natgauge.paired.slices import LEAD_FRAMES
from natgauge.tester.cable import untranslated_request
from natgauge.tester.highest import HighestRates
from natgauge.trial.question import ask
from natgauge.words import QUANTITIES, Family, Quantity, Transport

#: Requests have a rate, which slices do not keep.
RATE: Final = 1e6
NO_SEARCH: Final = HighestRates(RATE, RATE, own_ports=False)
#: Beyond what a round may take the engine gets this long to end.
_SLACK_SECONDS: Final = 15.0
_LONGEST_SECONDS: Final = 600.0
#: The longest name the engine takes.
_LONGEST_NAME: Final = 64

Runner = Callable[..., ComparisonResult]


class TimedFrames(NamedTuple):
    """Properties of frames on which the cost of the tester and of plain forwarding depends."""

    family: Family
    octets: int
    connections: int
    transport: Transport = "udp"


class Visited(Protocol):
    """A running device of a round.

    Attributes:
        label: name of the device in the round.
    """

    label: str

    def request(self) -> TrialRequest:
        """Return the device's part of the next round, with its own run mark."""

    def empty(self) -> None:
        """Empty the device's table, so that the round's connections are new to it."""

    def count(self) -> int | None:
        """Return the device's number of connections; None where it keeps none, or does not report it."""

    def found_changed(self) -> str:
        """Return which global setting was changed by others since it was set; empty = none was."""

    @property
    def udp_timeout(self) -> int | None:
        """Seconds after which the device forgets a connection; None where it keeps none."""


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """Plan of a round.

    Attributes:
        blocks: number of blocks of each quantity; 0 where it is left out.
        seed: seed of the order of devices in the blocks.
    """

    cpu: int
    frames: int
    blocks: Mapping[Quantity, int]
    seed: int


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round; positions are those of the devices, then of the cables.

    Attributes:
        faults: error by position of the contestant whose frames were wrong; its slices are void.
    """

    request: ComparisonRequest
    result: ComparisonResult
    faults: Mapping[int, str]

    @property
    def other_traffic(self) -> OtherTraffic:
        """Frames at the ports of all contestants that were not theirs."""
        counts = self.result.contestants
        offered = sum(one.offered_frames for one in counts)
        return OtherTraffic(sum(one.foreign for one in counts), offered, self.result.wall_ns / 1e9)

    def as_kept(self) -> dict[str, object]:
        """Return the round as a results folder stores it."""
        return {"request": self.request, "result": self.result, "void": self.faults}


def perform(plan: RoundPlan, devices: Sequence[Visited], cables: Sequence[Contestant], run: Runner = compare) -> Round:
    """Empty all tables, run the round, and judge every frame."""
    for device in devices:
        device.empty()
    timeouts = [device.udp_timeout for device in devices if device.udp_timeout is not None]
    # A round must end before the device forgets its first connection, also where time-outs are short.
    limit = min([_LONGEST_SECONDS, *(max(timeout - 1, timeout / 2) for timeout in timeouts)])
    blocks = {quantity: plan.blocks.get(quantity, 0) for quantity in QUANTITIES}
    own = [Contestant(name=device.label[-_LONGEST_NAME:], trial=device.request()) for device in devices]
    request = ComparisonRequest(
        seed=plan.seed % 2**64,
        cpu=plan.cpu,
        contestants=(*own, *cables),
        slices=Slices(frames=plan.frames, lead=LEAD_FRAMES, **blocks),
        limits=TrialLimits(seconds=limit),
    )
    result = run(request, seconds=limit + _SLACK_SECONDS)
    faults = {}
    for position, counts in enumerate(result.contestants):
        visited = devices[position] if position < len(devices) else None
        counted = None if visited is None else visited.count()
        changed = "" if visited is None else visited.found_changed()
        if fault := changed or fault_of(counts, request.contestants[position].trial.connections, counted):
            faults[position] = fault
    return Round(request, result, faults)


def work(block: Block) -> list[int]:
    """Return the duration of both slices of each contestant together, ns, by the contestant's position.

    A block visits each contestant twice, in counterbalanced order, within some milliseconds. The device's work is this
    duration minus that of the cable's two slices, which is the tester's own work.
    """
    return both_slices(block.order, block.ns)


def work_of_blocks(blocks: Iterable[Block], frames: int) -> Iterator[BlockWork]:
    """Return the work per frame in each block of a round; `frames` per slice."""
    for block in blocks:
        yield BlockWork(block.quantity, [nanoseconds / (2 * frames) for nanoseconds in work(block)])


def fault_of(counts: ContestantCounts, connections: int, counted: int | None) -> str:
    """Return the error of a contestant's frames in a round; empty = there is none.

    Args:
        counted: the device's number of connections after the round; None = not reported.
    """
    for name, stream in (("new", counts.new), ("up", counts.initiator), ("down", counts.responder)):
        kinds = ("duplicates", "late", "damaged", "untranslated", "mistranslated")
        wrong = {kind: getattr(stream, kind) for kind in kinds if getattr(stream, kind)}
        if stream.received_frames != stream.made_frames or wrong:
            more = "".join(f", {number} {kind}" for kind, number in wrong.items())
            return f"{name}: {stream.received_frames} of {stream.made_frames} frames came back{more}"
    if counts.refused_frames or counts.damaged_unmarked:
        return f"{counts.refused_frames} frames refused by the tester's ports, {counts.damaged_unmarked} damaged"
    if counts.stored != connections:
        return f"{counts.stored} of {connections} connections were learned"
    if counts.remapped:
        return f"{counts.remapped} frames of established connections came with another outside source"
    if counted is not None and counted < connections:
        return f"it counts {counted} connections after {connections} were opened"
    return ""


def forwarding_of(frames: TimedFrames, place: Mapping[str, object]) -> Cell:
    """Return the cell of plain forwarding of such frames, in a lab with these options."""
    traffic: Mapping[str, object] = {
        "connections": frames.connections,
        "frame_size": frames.octets,
        "transport": frames.transport,
    }
    return ask("throughput", load(f"linux-{frames.family}").origin, {**traffic, **place}).cell


def over_cable(frames: TimedFrames, lab: CableLab, cpu: int, connections: int | None = None) -> Contestant:
    """Return a cable's part of a round; `connections` None = the number of `frames`."""
    trial = untranslated_request(
        lab.initiator,
        lab.responder,
        family=frames.family,
        frame_size=frames.octets,
        connections=frames.connections if connections is None else connections,
        phase1=Phase1(rate=RATE),
        phase2=None,
        sender_cpus=(cpu,),
        transport=frames.transport,
    )
    return Contestant(name="cable", trial=trial)
