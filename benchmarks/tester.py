# SPDX-License-Identifier: Apache-2.0
"""natgauge's own trials for the benchmark: one engine process each, on one core, asked for more than it can do.

A trial whose intended rate is out of reach sends as fast as the tester can, and the engine tells how long that took.
The rate is frames received (each one checked and counted once) over the time of sending, so lost frames do not count.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.place import (
    DEVICE_INSIDE_ADDRESS,
    DEVICE_OUTSIDE_ADDRESS,
    INITIATOR,
    INITIATOR_ADDRESS,
    RESPONDER,
    RESPONDER_ADDRESS,
    TESTER,
    Place,
)
from natgauge.agreement import generated, process
from natgauge.agreement.trial import phase1_of
from natgauge.labs.contract import Port
from natgauge.tester.cable import untranslated_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from natgauge.words import Family

#: frames/s far above what one core can do, so that the tester is always behind its schedule.
UNREACHABLE = 100e6
ADDRESSES: dict[Family, tuple[str, str, str, str]] = {
    "ipv4": (INITIATOR_ADDRESS, DEVICE_INSIDE_ADDRESS, RESPONDER_ADDRESS, DEVICE_OUTSIDE_ADDRESS),
    "ipv6": ("2001:2:0:1::2", "2001:2:0:1::1", "2001:2:0:2::2", "2001:2:0:2::1"),
}


@dataclass(frozen=True, slots=True)
class Load:
    """What one trial sends.

    Attributes:
        family: of both sides.
        size: octets with FCS.
        connections: N, all of them opened in phase 1.
        frames: of phase 2, per active direction; 0 = phase 1 only.
        both: whether the Responder sends too, from its state table.
        rate: frames/s, all directions of a phase together.
        delays: whether each frame's delay is recorded.
        grace_ms: of waiting for the last frames of a phase.
    """

    family: Family = "ipv4"
    size: int = 64
    connections: int = 100_000
    frames: int = 10_000_000
    both: bool = True
    rate: float = UNREACHABLE
    delays: bool = False
    grace_ms: int = 200


@dataclass(frozen=True, slots=True)
class Run:
    """One finished trial and the wall time of its process in seconds."""

    result: generated.TrialResult
    seconds: float

    @property
    def streams(self) -> Sequence[generated.StreamCounts]:
        """The directions of phase 2, or phase 1 alone when there was no phase 2."""
        if self.result.phase2 is None:
            return [phase1_of(self.result)]
        both = (self.result.phase2.initiator, self.result.phase2.responder)
        return [stream for stream in both if stream is not None]

    @property
    def offered(self) -> int:
        """Frames that the ports accepted."""
        return sum(stream.offered_frames for stream in self.streams)

    @property
    def lost(self) -> int:
        """Frames that the ports accepted and that did not arrive."""
        return sum(stream.offered_frames - stream.received_frames for stream in self.streams)

    @property
    def rate(self) -> float:
        """Frames/s received, all directions together, over the longest direction's sending time."""
        received = sum(stream.received_frames for stream in self.streams)
        return received / (max(stream.sending_ns for stream in self.streams) / 1e9)


def _phase2(load: Load, rate: float) -> generated.Phase2:
    return generated.Phase2(
        initiator=generated.InitiatorStream(rate=rate, frames=load.frames),
        responder=generated.ResponderStream(rate=rate, frames=load.frames) if load.both else None,
        grace_ms=load.grace_ms,
    )


def request(place: Place, load: Load, *cpus: int) -> generated.TrialRequest:
    """The trial request for `load` in `place`, sent from `cpus`."""
    source, source_gateway, destination, destination_gateway = ADDRESSES[load.family]
    per_direction = load.rate / (2 if load.both else 1)
    # On the cable nobody holds the gateway's address, so nobody can be asked for it.
    gateways = (source_gateway, destination_gateway) if place.forwards else (None, None)
    return untranslated_request(
        Port(INITIATOR, TESTER, place.ends.initiator_gateway, gateways[0]),
        Port(RESPONDER, TESTER, place.ends.responder_gateway, gateways[1]),
        family=load.family,
        frame_size=load.size,
        connections=load.connections,
        phase1=generated.Phase1(rate=load.rate, grace_ms=load.grace_ms),
        phase2=_phase2(load, per_direction) if load.frames else None,
        sender_cpus=cpus,
        record_delays=load.delays,
        source=ipaddress.ip_address(source),
        destination=ipaddress.ip_address(destination),
    )


def run(place: Place, load: Load, *cpus: int) -> Run:
    """Run one trial, sent from `cpus`.

    Raises:
        natgauge.errors.NatgaugeError: the engine refused or broke.
    """
    started = time.monotonic()
    # A slow machine needs far longer than the unreachable rate promises.
    result = process.run(request(place, load, *cpus), seconds=3600)
    return Run(result, time.monotonic() - started)


def for_seconds(place: Place, load: Load, cpu: int, seconds: float) -> Load:
    """`load` with as many frames as this machine sends in about `seconds`, found by a short trial."""
    probe = run(place, replace(load, frames=500_000), cpu)
    directions = 2 if load.both else 1
    return replace(load, frames=max(500_000, int(probe.rate * seconds / directions)))
