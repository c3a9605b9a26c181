# SPDX-License-Identifier: Apache-2.0
"""The shortest real trial: a few frames over a virtual cable. It needs all that the tester needs, and proves it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from natgauge.host.cpus import usable_cpus
from natgauge.labs import addresses
from natgauge.labs.cable import CableLab
from natgauge.trials import (
    AddressRange,
    Frame,
    GatewaySide,
    InitiatorSide,
    Phase1,
    PortRange,
    ResponderSide,
    Senders,
    Translation,
    TrialRequest,
    phase1_of,
    run,
)

_FRAMES = 1000
_RATE = 100_000.0
_GRACE_MS = 50
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CableProof:
    """What went over the cable.

    Attributes:
        offered: frames the port accepted.
        received: frames that came as they should.
    """

    offered: int
    received: int


def send_over_a_cable() -> CableProof:
    """Make a cable, send 1000 IPv4 frames over it at 100000 frames/s, undo the cable.

    Raises:
        NatgaugeError: of whatever is missing or broke on the way.
    """
    # A name of this process: two of them may look at one host at a time.
    with CableLab(f"doctor-{os.getpid()}") as cable:
        counts = phase1_of(run(_request(cable), seconds=_SECONDS))
    return CableProof(counts.offered_frames, counts.received_frames)


def _request(cable: CableLab) -> TrialRequest:
    source = AddressRange(first=str(addresses.INSIDE["ipv4"].host(0)), last=str(addresses.INSIDE["ipv4"].host(0)))
    other = AddressRange(first=str(addresses.OUTSIDE["ipv4"].host(0)), last=str(addresses.OUTSIDE["ipv4"].host(0)))
    return TrialRequest(
        mark=secrets.randbelow(0xFFFF_FFFF) + 1,
        seed=secrets.randbits(64),
        initiator=InitiatorSide(
            interface=cable.initiator.interface,
            netns=cable.initiator.netns,
            family="ipv4",
            gateway=GatewaySide(mac=cable.initiator.gateway_mac),
            source_addresses=source,
            source_ports=PortRange(first=1024, last=65535),
            destination_addresses=other,
            destination_ports=PortRange(first=1, last=1),
        ),
        responder=ResponderSide(
            interface=cable.responder.interface,
            netns=cable.responder.netns,
            family="ipv4",
            gateway=GatewaySide(mac=cable.responder.gateway_mac),
            addresses=other,
        ),
        translation=Translation(source="unchanged"),
        connections=_FRAMES,
        frame=Frame(size=64, side="initiator"),
        phase1=Phase1(rate=_RATE, grace_ms=_GRACE_MS),
        senders=Senders(cpus=usable_cpus()[:1]),
    )
