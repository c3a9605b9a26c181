# SPDX-License-Identifier: Apache-2.0
"""The tester measured on a cable without a device: its rates of sending, receiving, judging and recording.

A device's figure means nothing unless the tester alone is clearly faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.errors import UsageError
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS, QUERY_OCTETS
from natgauge.host import programs
from natgauge.host.cpus import check_cpus, usable_cpus
from natgauge.tester.cable import CableFigures, CableTester, FrameKind
from natgauge.tester.cable_lab import CableLab
from natgauge.tester.floor import FloorTester
from natgauge.tester.highest import cable_name
from natgauge.words import FAMILIES, Transport

MAXIMUM_FRAMES: Final = 2**40 - 1

#: Further frame sizes of the full self-test, octets with FCS (RFC 2544 section 9).
FURTHER_SIZES: Final = (512, 1518)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The whole self-test.

    Attributes:
        cable: one entry per family, size and timing, and one per family of answered queries.
        clock_source: the kernel's clock source.
        sender_cpus: the tester's sending CPUs.
        transport: what the frames are.
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
