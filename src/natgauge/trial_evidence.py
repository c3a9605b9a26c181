# SPDX-License-Identifier: Apache-2.0
"""The evidence of one trial for its verdict: counts of its phases, CPUs, ports, and the device's own reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from natgauge.agreement.generated import StreamCounts
from natgauge.causes.hops import NO_HOPS, TrialHops
from natgauge.measurer import LAG_SHARE, Direction
from natgauge.readings import NO_READINGS, Readings
from natgauge.words import Placement

Role = Literal["sender", "watched"]

#: A CPU that did nothing of its task for longer than this was disturbed. These are the gaps the engine starts to count
#: at: a sender is never without work, a watched CPU is sampled more coarsely. Where a ring before the device would be
#: full sooner, or the device needs longer for a single frame, the sender's follows (`trial/pacing.py`).
STALL_BOUND_SECONDS: Mapping[Role, float] = {"sender": 0.001, "watched": 0.005}
#: Stolen time is read from /proc/stat, whose grain is 10 ms: one tick is the least that can be seen.
STOLEN_BOUND_SECONDS = 0.010


@dataclass(frozen=True, slots=True)
class CpuStalls:
    """Time that one CPU of the sender or the device lost during the trial; seconds, all >= 0."""

    cpu: int
    role: Role
    stalls: int
    stalled_seconds: float
    worst_stall_seconds: float
    stolen_seconds: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the CPU was taken away: the engine counts only what is longer than the trial's bound."""
        return self.stalls > 0 or self.stolen_seconds >= STOLEN_BOUND_SECONDS

    @property
    def lost_seconds(self) -> float:
        """Seconds without work: the larger of what was seen as stalls and what the hypervisor admits."""
        return max(self.stalled_seconds, self.stolen_seconds)


@dataclass(frozen=True, slots=True)
class PortDrops:
    """Frames lost at one of the tester's own ports; all >= 0.

    Attributes:
        queue_full: frames that met a full queue before the device, where that queue is the port's own (taps).
    """

    refused: int = 0
    redirect_errors: int = 0
    rx_dropped: int = 0
    tx_dropped: int = 0
    queue_full: int = 0


@dataclass(frozen=True, slots=True)
class IcmpErrors:
    """ICMP errors about the tester's frames; all >= 0.

    Attributes:
        path_mtu: the least MTU that an error named, in octets; None = none did.
    """

    too_big: int = 0
    others: int = 0
    path_mtu: int | None = None

    def __str__(self) -> str:
        """As the end of a sentence; empty without errors."""
        mtu = "" if self.path_mtu is None else f", of an MTU of {self.path_mtu}"
        too_big = f"; {self.too_big} ICMP errors said that a frame is too big{mtu}" if self.too_big else ""
        others = f"; {self.others} ICMP errors were about other faults" if self.others else ""
        return f"{too_big}{others}"


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """All facts that decide a verdict.

    Attributes:
        connections: N, the connections phase 1 had to establish; 0 = there was no phase 1.
        stored: connections the Responder learned in phase 1.
        phase1: counts of phase 1.
        phase2: counts of each active direction of phase 2.
        preparation: phase 1 only prepares phase 2, so its own lag does not matter.
        each_once: every frame of phase 1 opens a connection of its own; False for enumeration with replacement.
        table_limit: the most connections the device is set to hold; None where unknown.
        lag_share: share of a phase's nominal length by which its sending may be behind at the end.
        loss_tolerance: share of the offered frames that may be lost; 0 <= share < 1.
        restarted: the device was restarted during phase 2, so its own count does not describe phase 1, and the loss of
            phase 2 is what the trial measures.
        closed: connections are closed before the trial ends, so the device's own count does not describe phase 1.
    """

    placement: Placement
    connections: int
    stored: int
    phase1: StreamCounts
    phase2: Mapping[Direction, StreamCounts] = field(default_factory=dict)
    readings: Readings = NO_READINGS
    preparation: bool = False
    each_once: bool = True
    table_limit: int | None = None
    cpus: tuple[CpuStalls, ...] = ()
    ports: Mapping[str, PortDrops] = field(default_factory=dict)
    lag_share: float = LAG_SHARE
    loss_tolerance: float = 0.0
    frame_timeout_seconds: float | None = None
    restarted: bool = False
    closed: bool = False
    hops: TrialHops = NO_HOPS
    icmp_errors: IcmpErrors = IcmpErrors()

    @property
    def dropped(self) -> dict[str, int]:
        """Frames dropped during the trial at the device's places of the lab, only where any were."""
        return {place: count for place, count in sorted(self.readings.dropped.items()) if count > 0}

    @property
    def established(self) -> int | None:
        """The device's own count, where it is that of phase 1."""
        return None if self.restarted or not self.connections else self.readings.count_after

    @property
    def left_open(self) -> int | None:
        """The device's own number of open TCP connections after connections were closed; None where it is not known."""
        return self.readings.established if self.closed else None
