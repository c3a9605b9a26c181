# SPDX-License-Identifier: Apache-2.0
"""The tester compared with the redirect floor: the share of the kernel's own rate that the tester reaches.

The floor is a program that only redirects frames, and a receiver that only drops them. It uses the tester's ports and
core, in slices of a millisecond that alternate with the tester's. So the ratio is stable although both rates vary.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from natgauge.agreement import (
    Block,
    ComparisonRequest,
    ComparisonResult,
    Contestant,
    InitiatorStream,
    Phase1,
    Phase2,
    Slices,
    TrialLimits,
)
from natgauge.agreement.process import compare
from natgauge.errors import BrokenError
from natgauge.paired.slices import LEAD_FRAMES
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.tester.cable import Cable, FloorShare, FrameKind, untranslated_request
from natgauge.words import QUANTITIES, Quantity

#: N: a state table of 0.8 MB.
CONNECTIONS: Final = 100_000
#: Frames of one slice: each sending call costs some 10 us, which must be negligible.
SLICE_FRAMES: Final = 4_096
#: Blocks of a round; each has two slices of the tester and two of the floor.
BLOCKS: Final = 40
#: Rounds; the programs are loaded again for each, because their place in memory affects the rate.
ROUNDS: Final = 4
#: Error probability of the confidence interval.
ALPHA: Final = 0.05
_SECONDS: Final = 120.0
_SLACK_SECONDS: Final = 15.0

Comparer = Callable[..., ComparisonResult]


class FloorPair(NamedTuple):
    """Durations of the tester's and of the floor's two slices in one block, ns."""

    tester: int
    floor: int


@dataclass(frozen=True, slots=True)
class FloorTester:
    """Measures the floor on a cable."""

    cable: Cable
    cpu: int
    run: Comparer = compare
    connections: int = CONNECTIONS
    quantity: Quantity = "both"

    def share(self, kind: FrameKind, rounds: int = ROUNDS) -> FloorShare:
        """Return the tester's share of the floor for frames of this kind, over `rounds` rounds."""
        return share_of([self.round(kind) for _ in range(rounds)])

    def round(self, kind: FrameKind, blocks: int = BLOCKS) -> list[FloorPair]:
        """Run a round of `blocks` blocks."""
        result = self.run(self._request(kind, blocks), seconds=_SECONDS + _SLACK_SECONDS)
        _check(result)
        return [_pair(block) for block in result.blocks]

    def _request(self, kind: FrameKind, blocks: int) -> ComparisonRequest:
        # Slices are not paced, and phase 2 is not run: it says that its frames are the ones to be timed.
        rate = 1e6
        trial = untranslated_request(
            self.cable.initiator,
            self.cable.responder,
            family=kind.family,
            frame_size=kind.frame_size,
            connections=self.connections,
            phase1=Phase1(rate=rate),
            phase2=Phase2(initiator=InitiatorStream(rate=rate, frames=1)),
            sender_cpus=(self.cpu,),
            record_delays=kind.delays,
            record_variation=kind.variation,
            frames=kind.frames,
        )
        wanted = {quantity: blocks if quantity == self.quantity else 0 for quantity in QUANTITIES}
        return ComparisonRequest(
            seed=secrets.randbits(64),
            cpu=self.cpu,
            contestants=(Contestant(name="cable", trial=trial),),
            floor=0,
            slices=Slices(frames=SLICE_FRAMES, lead=LEAD_FRAMES, **wanted),
            limits=TrialLimits(seconds=_SECONDS),
        )


def share_of(rounds: list[list[FloorPair]]) -> FloorShare:
    """Return the share over all rounds."""
    shares = [[pair.floor / pair.tester for pair in pairs] for pairs in rounds]
    share = estimate_over_rounds(shares, ALPHA)
    if share is None:
        raise BrokenError("selftest: too few slices for an interval")
    floor = statistics.median(pair.floor for pairs in rounds for pair in pairs)
    return FloorShare(2 * SLICE_FRAMES * 1e9 / floor, share.value, share.lower, share.upper)


def _pair(block: Block) -> FloorPair:
    """Return the durations of a block, which visits the tester (0), the floor (1), then both in reverse order."""
    first, second, third, fourth = block.ns
    took = {block.order[0]: first + fourth, block.order[1]: second + third}
    return FloorPair(took[0], took[1])


def _check(result: ComparisonResult) -> None:
    (counts,) = result.contestants
    streams = (counts.new, counts.initiator, counts.responder)
    sent, received = (sum(getattr(stream, f"{what}_frames") for stream in streams) for what in ("made", "received"))
    if received != sent:
        raise BrokenError(f"selftest: {received} of the tester's {sent} frames came over its own cable")
    if result.floor is None or result.floor.received_frames != result.floor.made_frames:
        raise BrokenError(f"selftest: frames of the redirect floor were lost on the tester's own cable: {result.floor}")
