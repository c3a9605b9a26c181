# SPDX-License-Identifier: Apache-2.0
"""What a procedure may ask for (a trial) and what it gets back (counts and a verdict).

This is the whole of a procedure's world: it knows no lab, no device and no engine. The real measurer lives in
`natgauge.campaigns`; the tests hand in simulated gateways.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

ReadingOrder = Literal["pseudorandom", "increasing", "once"]
Order = Literal["permutation", "increasing", "decreasing", "with-replacement"]


class Verdict(StrEnum):
    """How one trial ended.

    PASS and FAIL speak of the device. INVALID speaks of the tester: the trial is repeated and never counted for or
    against the device. COLLAPSED: the device is gone (it no longer answers, or its controls fail).
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    COLLAPSED = "COLLAPSED"


class Direction(StrEnum):
    """Who sent the frames of a direction (RFC 9693 section 3: Initiator opens, Responder answers)."""

    INITIATOR = "initiator"
    RESPONDER = "responder"


@dataclass(frozen=True, slots=True)
class Phase2Plan:
    """The real test of a trial (RFC 9693 section 4.7).

    Attributes:
        initiator_rate: frames/s the Initiator sends; 0 = it is silent.
        responder_rate: frames/s the Responder sends; 0 = it is silent.
        seconds: nominal duration of sending, > 0. Ignored by the Responder when `reading_order` is "once".
        reading_order: how the Responder reads its state table (RFC 9693 section 4.10); "once" sends exactly one
            frame per stored connection (validation, RFC 9693 section 4.6).
    """

    initiator_rate: float
    responder_rate: float
    seconds: float
    reading_order: ReadingOrder = "pseudorandom"


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One elementary test: empty table in, phase 1, gap, phase 2, one outcome out.

    Attributes:
        connections: N, frames of phase 1, one per connection; 1 to 2**31.
        phase1_rate: R, frames/s of phase 1; > 0.
        phase2: None when phase 1 is all (maximum connection establishment rate, RFC 9693 section 4.5).
        order: in which order phase 1 enumerates the four tuples (RFC 9693 section 4.4).
        record_delays: time every frame of phase 2 (of phase 1 when there is no phase 2).
        frame_timeout_seconds: a frame later than this counts as lost; None = no per-frame limit.
        loss_tolerance: share of the offered frames of a direction that a passing trial may lose; 0 <= share < 1.
            RFC 9693 wants 0; anything else must be told with the result.
    """

    connections: int
    phase1_rate: float
    phase2: Phase2Plan | None = None
    order: Order = "permutation"
    record_delays: bool = False
    frame_timeout_seconds: float | None = None
    loss_tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Raw frame counts of one direction of one phase; all >= 0.

    `received` holds each expected frame once; `reordered` is a part of `received`; the others are not in it.
    `skipped` frames were intended, but could not be made because no connection was stored where the Responder read.
    """

    intended: int
    offered: int
    received: int
    duplicates: int = 0
    reordered: int = 0
    late: int = 0
    damaged: int = 0
    untranslated: int = 0
    mistranslated: int = 0
    skipped: int = 0
    nominal_seconds: float = 0.0
    sending_seconds: float = 0.0
    worst_lag_seconds: float = 0.0
    final_lag_seconds: float = 0.0

    @property
    def lost(self) -> int:
        """Frames that the port accepted and that did not come back as they should: offered - received."""
        return self.offered - self.received


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays of one direction, in seconds. `buckets`: (lower, upper, frames), relative width <= 1 %."""

    frames: int
    minimum: float
    maximum: float
    mean: float
    negative: int
    buckets: tuple[tuple[float, float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a trial showed.

    Attributes:
        verdict: see `Verdict`.
        reason: one sentence with the figures that decided it; empty only for PASS.
        phase1: counts of phase 1 (Initiator to Responder).
        phase2: counts per active direction of phase 2; empty when there was none.
        stored: connections the Responder learned (our state table).
        table_count: the device's own count after phase 1; None where the device cannot tell.
        delays: per direction, when asked for.
        disturbed: True when stalls or stolen time were seen, whatever the verdict.
        limited_by: for FAIL: "device", "table", "port pool"; for INVALID: "tester" or "host"; else None.
        failed_phase: the phase a FAIL speaks of. A FAIL of phase 1 says nothing about the rate of phase 2.
        notes: remarks with figures that a reader of the result should see.
    """

    verdict: Verdict
    reason: str
    phase1: Counts
    phase2: dict[Direction, Counts] = field(default_factory=dict)
    stored: int = 0
    table_count: int | None = None
    delays: dict[Direction, Delays] = field(default_factory=dict)
    disturbed: bool = False
    limited_by: str | None = None
    failed_phase: Literal[1, 2] | None = None
    notes: tuple[str, ...] = ()


class Measurer(Protocol):
    """Performs trials. A procedure gets one and knows nothing else of the world."""

    @property
    def highest_rate(self) -> float:
        """The tester's own highest rate for this profile in frames/s, all directions together; the search's ceiling."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial: the device's table is emptied first, its own count is read after phase 1.

        Raises:
            NatgaugeError: the trial could not be run at all (host or lab broke).
        """
