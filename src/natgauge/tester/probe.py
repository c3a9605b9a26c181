# SPDX-License-Identifier: Apache-2.0
"""The shortest real trial: a few frames over a virtual cable. It shows that this host has all that the tester needs."""

from __future__ import annotations

import os
from dataclasses import dataclass

from natgauge.agreement import Phase1, phase1_of
from natgauge.agreement.process import run
from natgauge.host.cpus import usable_cpus
from natgauge.tester.cable import untranslated_request
from natgauge.tester.cable_lab import CableLab

_FRAMES = 1000
_RATE = 100_000.0
_GRACE_MS = 50
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CableProof:
    """Frame counts of the probe."""

    offered: int
    received: int


def send_over_a_cable() -> CableProof:
    """Make a cable, send 1000 IPv4 frames over it at 100000 frames/s, and remove the cable."""
    # The name contains the process: two processes may probe a host at the same time.
    with CableLab(f"doctor-{os.getpid()}") as cable:
        request = untranslated_request(
            cable.initiator,
            cable.responder,
            family="ipv4",
            frame_size=64,
            connections=_FRAMES,
            phase1=Phase1(rate=_RATE, grace_ms=_GRACE_MS),
            phase2=None,
            sender_cpus=usable_cpus()[:1],
        )
        counts = phase1_of(run(request, seconds=_SECONDS))
    return CableProof(counts.offered_frames, counts.received_frames)
