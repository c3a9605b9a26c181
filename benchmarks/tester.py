# SPDX-License-Identifier: Apache-2.0
"""natgauge's own trials for the benchmark: one engine process each, on one core, asked for more than it can do.

A trial whose intended rate is out of reach sends as fast as the tester can, and the engine tells how long that took.
The rate is frames received (each one checked and counted once) over the time of sending, so lost frames do not count.
"""

from __future__ import annotations

import ipaddress
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

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
from natgauge import trials

if TYPE_CHECKING:
    from collections.abc import Sequence

Family = Literal["ipv4", "ipv6"]

#: frames/s far above what one core can do, so that the tester is always behind its schedule.
UNREACHABLE = 100e6
SOURCE_PORTS = (1024, 65535)
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
    """

    family: Family = "ipv4"
    size: int = 64
    connections: int = 100_000
    frames: int = 10_000_000
    both: bool = True
    rate: float = UNREACHABLE
    delays: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One finished trial and the wall time of its process in seconds."""

    result: trials.TrialResult
    seconds: float

    @property
    def streams(self) -> Sequence[trials.StreamCounts]:
        """The directions of phase 2, or phase 1 alone when there was no phase 2."""
        if self.result.phase2 is None:
            return [trials.phase1_of(self.result)]
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
        return received / (max(stream.sending_ns or 0 for stream in self.streams) / 1e9)


def _addresses(first: str, count: int) -> trials.AddressRange:
    return trials.AddressRange(first=first, last=str(ipaddress.ip_address(first) + count - 1))


def _gateway(place: Place, mac: str, address: str) -> trials.GatewaySide:
    """On the cable nobody holds the gateway's address, so nobody can be asked for it."""
    return trials.GatewaySide(mac=mac, address=address if place.forwards else None)


def _phase2(load: Load, rate: float) -> trials.Phase2:
    return trials.Phase2(
        initiator=trials.InitiatorStream(rate=rate, frames=load.frames),
        responder=trials.ResponderStream(rate=rate, frames=load.frames) if load.both else None,
        grace_ms=200,
    )


def request(place: Place, load: Load, cpu: int) -> trials.TrialRequest:
    """The trial request for `load` in `place`, sent from `cpu`."""
    source, source_gateway, destination, destination_gateway = ADDRESSES[load.family]
    ports = SOURCE_PORTS[1] - SOURCE_PORTS[0] + 1
    destination_ports = min(-(-load.connections // ports), 65535)
    sources = -(-load.connections // (ports * destination_ports))
    per_direction = load.rate / (2 if load.both else 1)
    return trials.TrialRequest(
        mark=random.getrandbits(32) | 1,
        seed=1,
        initiator=trials.InitiatorSide(
            interface=INITIATOR,
            netns=TESTER,
            family=load.family,
            gateway=_gateway(place, place.ends.initiator_gateway, source_gateway),
            source_addresses=_addresses(source, sources),
            source_ports=trials.PortRange(first=SOURCE_PORTS[0], last=SOURCE_PORTS[1]),
            destination_addresses=_addresses(destination, 1),
            destination_ports=trials.PortRange(first=1, last=destination_ports),
        ),
        responder=trials.ResponderSide(
            interface=RESPONDER,
            netns=TESTER,
            family=load.family,
            gateway=_gateway(place, place.ends.responder_gateway, destination_gateway),
            addresses=_addresses(destination, 1),
        ),
        translation=trials.Translation(source="unchanged"),
        connections=load.connections,
        frame=trials.Frame(size=load.size, side="initiator"),
        phase1=trials.Phase1(rate=load.rate, grace_ms=200),
        phase2=_phase2(load, per_direction) if load.frames else None,
        record_delays=load.delays,
        senders=trials.Senders(cpus=(cpu,)),
    )


def run(place: Place, load: Load, cpu: int) -> Run:
    """Run one trial.

    Raises:
        natgauge.errors.NatgaugeError: the engine refused or broke.
    """
    started = time.monotonic()
    # A slow machine needs far longer than the unreachable rate promises.
    result = trials.run(request(place, load, cpu), seconds=3600)
    return Run(result, time.monotonic() - started)


def for_seconds(place: Place, load: Load, cpu: int, seconds: float) -> Load:
    """`load` with as many frames as this machine sends in about `seconds`, found by a short trial."""
    probe = run(place, replace(load, frames=500_000), cpu)
    directions = 2 if load.both else 1
    return replace(load, frames=max(500_000, int(probe.rate * seconds / directions)))
