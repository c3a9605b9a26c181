# SPDX-License-Identifier: Apache-2.0
"""The tester measured on a cable without a device: its rates of sending, receiving, judging and recording.

A device's figure means nothing unless the tester alone is clearly faster. Its rate is compared with the redirect floor:
a program that only redirects frames, and a receiver that only drops them. The floor uses the tester's ports and core,
in slices of a millisecond that alternate with the tester's. So the ratio is stable although both rates vary.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from natgauge.agreement.generated import (
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
from natgauge.errors import BrokenError, UsageError
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS, QUERY_OCTETS
from natgauge.host import programs
from natgauge.host.cpus import check_cpus, usable_cpus
from natgauge.paired.slices import LEAD_FRAMES
from natgauge.statistics.rounds import estimate_over_rounds
from natgauge.tester.cable import (
    Cable,
    CableFigures,
    CableLab,
    CableTester,
    FloorShare,
    FrameKind,
    untranslated_request,
)
from natgauge.tester.highest import cable_name
from natgauge.words import FAMILIES, QUANTITIES, Quantity, Transport

MAXIMUM_FRAMES: Final = 2**40 - 1

#: Further frame sizes of the full self-test, octets with FCS (RFC 2544 section 9).
FURTHER_SIZES: Final = (512, 1518)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The whole self-test.

    Attributes:
        cable: one entry per family, size and timing, and one per family of answered queries.
    """

    cable: tuple[CableFigures, ...]
    clock_source: str
    sender_cpus: tuple[int, ...]
    transport: Transport = "udp"


def run_selftest(
    *,
    frames_at_90: int | None = None,
    sender_cpus: Sequence[int] | None = None,
    quick: bool = False,
    transport: Transport = "udp",
    report: Callable[[CableFigures], None] | None = None,
) -> SelfTest:
    """Measure the tester on a cable of its own.

    Args:
        frames_at_90: frames of each loss check; default: the frames of 0.5 s.
        sender_cpus: CPUs to send from; by default the first usable CPU.
        quick: only the least frame size of each family.
        transport: what the frames are. TCP's frames of phase 2 are segments with data. DNS queries are measured with
            UDP only.
        report: called with the figures of each cell as it ends.

    Raises:
        UsageError: `frames_at_90` below 1 or above 2**40 - 1, or a CPU that cannot be used.
        HostError: a capability, the engine or a CPU is missing.
        BrokenError: the cable passed no frame, or the engine failed.
    """
    if frames_at_90 is not None and not 1 <= frames_at_90 <= MAXIMUM_FRAMES:
        raise UsageError(f"frames at 90 %: {frames_at_90} is outside of 1 to {MAXIMUM_FRAMES}")
    cpus = check_cpus(usable_cpus()[:1] if sender_cpus is None else sender_cpus, "sender cores", "sender_cores")
    programs.find("natgauge-engine")
    figures: list[CableFigures] = []
    clock = ""
    with CableLab(cable_name()) as cable:
        tester, floor = CableTester(cable, cpus), FloorTester(cable, cpus[0])
        for profile in _profiles(transport, quick=quick):
            share = floor.share(profile) if profile.query is None else None
            figures.append(tester.figures(profile, share, frames_at_90))
            clock = tester.clock_source
            if report is not None:
                report(figures[-1])
    return SelfTest(tuple(figures), clock, cpus, transport)


def _profiles(transport: Transport, *, quick: bool) -> list[FrameKind]:
    plain = [
        FrameKind(family, size, delays, transport=transport)
        for family in FAMILIES
        for least in (LEAST_OCTETS[transport] + IP_HEADER[family] - IP_HEADER["ipv4"],)
        for size in ((least,) if quick else (least, *FURTHER_SIZES))
        for delays in (False, True)
    ]
    if transport != "udp":
        return plain
    return plain + [FrameKind(family, octets, delays=False, query="aaaa") for family, octets in QUERY_OCTETS.items()]


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
