# SPDX-License-Identifier: Apache-2.0
"""What a procedure may ask for (a trial) and what it gets back (counts and a verdict).

This is the whole of a procedure's world: it knows no lab, no device and no engine. The real measurer lives in
`natgauge.bench`; the tests hand in simulated gateways.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from natgauge.errors import UsageError
from natgauge.paired.slices import CostPlan, CostRound
from natgauge.words import Order, Query, ReadingOrder

#: Share of the nominal sending time by which a sender may be behind at the end. Ten times below the usual error of a
#: search (1 %), so it does not blur the answer; far above the few batches a healthy sender is ever behind.
LAG_SHARE = 0.001
#: Floor of the lag that is tolerated, in seconds: two batches.
LEAST_LAG_SECONDS = 200e-6
#: The most frames that leave together, and the most seconds that a device in `shared` placement may need for them at
#: the rate asked for.
MOST_TOGETHER = 64
BATCH_SECONDS = 100e-6


class Verdict(StrEnum):
    """How one trial ended.

    PASS and FAIL speak of the device. INVALID speaks of the tester, of its host or of the way on which the device is
    controlled: the trial is repeated and never counted for or against the device. COLLAPSED: the device is gone, no
    single frame comes back any more.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    COLLAPSED = "COLLAPSED"


class Direction(StrEnum):
    """Who sent the frames of a direction (RFC 9693 section 3: Initiator opens, Responder answers)."""

    INITIATOR = "initiator"
    RESPONDER = "responder"


class Ability(StrEnum):
    """What not every measurer can do. A procedure names what it needs, and is refused before anything starts."""

    EMPTY_TIMED = "timing how long the device takes to empty its table"
    WATCH_COUNT = "watching the device's own count fall"
    RESTART = "restarting the device"
    RESTART_IN_TRIAL = "restarting the device in the middle of a trial"
    VARIATION = "differences between the delays of consecutive frames"
    LOSS_TIMES = "the sending times of lost frames"
    RATE_STEP = "a change of the rate in the middle of phase 2"
    TAGGED_DELAYS = "timing only a few tagged frames from a given time on"
    STATELESS = "trials without a state table"
    OWN_DELAYS = "the tester's own delay"
    COSTS = "timing the frames of a device that works on the sender's core"
    QUERIES = "DNS queries and their answers"
    REAL_SERVER = "a place for a real server behind the device (a lab of kind netns has one)"
    BACKGROUND = "native IPv6 beside the frames under test"


@dataclass(frozen=True, slots=True)
class RateStep:
    """A change of all rates of phase 2 (RFC 2544 section 26.5): `share` of them is sent for `seconds` more, > 0."""

    share: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Phase2Plan:
    """The real test of a trial (RFC 9693 section 4.7).

    Attributes:
        initiator_rate: frames/s the Initiator sends; 0 = it is silent.
        responder_rate: frames/s the Responder sends; 0 = it is silent.
        seconds: nominal duration of sending, > 0. Ignored by the Responder when `reading_order` is "once".
        reading_order: how the Responder reads its state table (RFC 9693 section 4.10); "once" sends exactly one
            frame per stored connection (validation, RFC 9693 section 4.6).
        step: what follows at once after `seconds`; None = nothing (`Ability.RATE_STEP`).
    """

    initiator_rate: float
    responder_rate: float
    seconds: float
    reading_order: ReadingOrder = "pseudorandom"
    step: RateStep | None = None


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
        stateless: no phase 1, and the Responder makes its four tuples itself (RFC 4814 section 4.5): for devices that
            keep no connections (`Ability.STATELESS`).
        foreground_share: share of the frames of phase 2 that are under test, 0.001 to 1; the others are native IPv6,
            which the device only routes (RFC 8219 section 5.3); below 1 only with `Ability.BACKGROUND`.
        delays_from_seconds: frames of phase 2 that are sent earlier are not timed (RFC 8219 section 7.2 wants 60 s);
            above 0 only with `Ability.TAGGED_DELAYS`.
        delay_samples: so many frames of each direction are timed, evenly spread over the rest; None = every frame.
        record_variation: tell the differences between the delays of frames sent one after the other, too; needs
            `record_delays` of every frame (`Ability.VARIATION`).
        record_loss_times: tell when the last lost frame had been sent, and when none came for longest
            (`Ability.LOSS_TIMES`).
        restart_at_seconds: the device is restarted this long after the start of phase 2 (RFC 6201 section 4); None =
            it is left alone (`Ability.RESTART_IN_TRIAL`).
        settle_seconds: the device is left alone for so long before the first frame, its table empty (RFC 2544
            section 23 wants 5 s between trials); >= 0.
        single_frames: in `shared` placement each frame leaves alone, so none waits for another; costs the tester speed.
        lag_share: share of a phase's nominal length by which its sending may be behind at the end; > 0.
        query: the Initiator sends DNS queries of this type in both phases and the Responder answers each, so what is
            received are right answers at the Initiator; None = plain frames (`Ability.QUERIES`).
        handed_on: a real server answers the queries, to which the Responder hands them on (`Ability.REAL_SERVER`).
    """

    connections: int
    phase1_rate: float
    phase2: Phase2Plan | None = None
    order: Order = "permutation"
    record_delays: bool = False
    frame_timeout_seconds: float | None = None
    loss_tolerance: float = 0.0
    stateless: bool = False
    foreground_share: float = 1.0
    delays_from_seconds: float = 0.0
    delay_samples: int | None = None
    record_variation: bool = False
    record_loss_times: bool = False
    restart_at_seconds: float | None = None
    settle_seconds: float = 0.0
    single_frames: bool = False
    lag_share: float = LAG_SHARE
    query: Query | None = None
    handed_on: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """Raw frame counts of one direction of one phase; all >= 0.

    `received` holds each expected frame once; `reordered` is a part of `received`; the others are not in it.
    `final_lag_seconds`: how late the last frame was made. `settled_lag_seconds`: how late its batch had been handed
    over, and in `shared` placement worked off by the device; None = not known.
    `stalled_seconds`: how long a sender stood still in this phase, longer than its bound each time; None = not known.
    `lost_in_stalls`: those of `lost` that were due while a core of the tester or the device stood still, or right
    behind; None = not known.
    Of DNS queries `received` are those answered right; `wrong_answers` came whole and say something else, and
    `questions` of them had reached the far side (None = not known).
    `background` and `background_received` are those of `offered` and `received` that were native IPv6.
    `skipped` frames were intended, but could not be made because no connection was stored where the Responder read.
    Where loss times were asked for, in seconds since the start of the phase's schedule: `last_lost_seconds`, when the
    last frame that was lost had been sent (None = none was lost); `longest_silence`, the arrivals between which the
    receiver waited longest (None = fewer than two frames came). They and all counts are of both parts of a phase 2 with
    a step.
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
    wrong_answers: int = 0
    questions: int | None = None
    background: int = 0
    background_received: int = 0
    nominal_seconds: float = 0.0
    sending_seconds: float = 0.0
    worst_lag_seconds: float = 0.0
    final_lag_seconds: float = 0.0
    settled_lag_seconds: float | None = None
    stalled_seconds: float | None = None
    lost_in_stalls: int | None = None
    last_lost_seconds: float | None = None
    longest_silence: tuple[float, float] | None = None

    @property
    def lost(self) -> int:
        """Frames that the port accepted and that did not come back as they should: offered - received."""
        return self.offered - self.received

    @property
    def busy_seconds(self) -> float:
        """How long the sending took; in `shared` placement the device's work, too."""
        settled = self.nominal_seconds + (self.settled_lag_seconds or 0.0)
        return max(self.nominal_seconds, self.sending_seconds, settled)


@dataclass(frozen=True, slots=True)
class Variation:
    """D(i) - D(i-1) of frames sent one after the other that both came (RFC 5481 section 4.1), in seconds, signed.

    Attributes:
        pairs: of frames, > 0.
        minimum: exact.
        maximum: exact.
        buckets: (lower, upper, pairs) in rising order, relative width <= 1 %; lower <= difference < upper, but for
            negative ones lower < difference <= upper.
    """

    pairs: int
    minimum: float
    maximum: float
    buckets: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays of one direction, in seconds.

    Attributes:
        frames: that were timed, > 0.
        minimum: exact.
        maximum: exact.
        mean: exact.
        negative: frames that seemed to arrive before they were sent: the clocks are wrong.
        buckets: (lower, upper, frames) in rising order, lower <= delay < upper, relative width <= 1 %.
        variation: between frames; None where it was not recorded, or no two neighbours came (`Ability.VARIATION`).
        due_in_stalls: frames to be timed that were due while a core of the tester or the device stood still, or right
            behind, so that their delays may be the host's; None = not known.
    """

    frames: int
    minimum: float
    maximum: float
    mean: float
    negative: int
    buckets: tuple[tuple[float, float, int], ...] = ()
    variation: Variation | None = None
    due_in_stalls: int | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """When the device was told to stop, and when it stood again; seconds of phase 2, to a few milliseconds."""

    began: float
    ended: float


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
        restart: of the device in the middle of the trial; None when there was none.
        disturbed: True when stalls or stolen time were seen, whatever the verdict.
        excused: True when the trial would have failed, and is INVALID because disturbances explain that.
        excused_frames: lost frames that disturbances explain, whatever the verdict; >= 0.
        excused_by_direction: those of phase 2, by the direction that lost them; only where there are any.
        asked_again: tries of commands to the device that failed in this trial; >= 0.
        device_stalled_seconds: how long the device's cores stood still since phase 2 began; >= 0.
        limited_by: for FAIL: "device", "table", "port pool", "server"; for INVALID: "tester" or "host"; else None.
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
    restart: Restart | None = None
    disturbed: bool = False
    excused: bool = False
    excused_frames: int = 0
    excused_by_direction: dict[Direction, int] = field(default_factory=dict)
    asked_again: int = 0
    device_stalled_seconds: float = 0.0
    limited_by: str | None = None
    failed_phase: Literal[1, 2] | None = None
    notes: tuple[str, ...] = ()

    @property
    def begun(self) -> bool:
        """Whether any frame was to be sent: a device that did not come back from a collapse gets none."""
        return bool(self.phase1.intended or self.phase2)


@dataclass(frozen=True, slots=True)
class TearDown:
    """The device's table was emptied: wall seconds as timed on the device, and its own counts around it."""

    seconds: float
    count_before: int | None
    count_after: int | None


@dataclass(frozen=True, slots=True)
class CountAt:
    """The device's own count at a time, in seconds since the watching began."""

    seconds: float
    count: int


class Measurer(ABC):
    """Performs trials. A procedure gets one and knows nothing else of the world.

    A measurer gives `highest_rate` and `measure`, and names in `abilities` what it can do beyond them. A method that
    belongs to an ability refuses until the measurer gives its own.
    """

    __slots__ = ()

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond plain trials."""
        return frozenset()

    @property
    @abstractmethod
    def highest_rate(self) -> float:
        """The tester's own highest rate of such frames in frames/s, all directions together; the search's ceiling."""

    @property
    def ring(self) -> int | None:
        """Frames that wait before each core of the device at most, > 0; None = not known, or nothing waits there."""
        return None

    @abstractmethod
    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial: the device's table is emptied first, its own count is read after phase 1.

        Raises:
            NatgaugeError: the trial could not be run at all (host or lab broke).
        """

    def empty_timed(self) -> TearDown:
        """Empty the device's table with one command, and tell how long that took (RFC 9693 section 4.8).

        Raises:
            UsageError: this measurer is without `Ability.EMPTY_TIMED`.
            NatgaugeError: the device does not do it.
        """
        raise _unable(Ability.EMPTY_TIMED)

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Read the device's count again and again until it is 0 or the time is over; at least one reading.

        Args:
            interval_seconds: between two readings, > 0.
            longest_seconds: the watching ends after so long, >= 0.

        Raises:
            UsageError: this measurer is without `Ability.WATCH_COUNT`.
            NatgaugeError: the device does not tell.
        """
        del interval_seconds, longest_seconds
        raise _unable(Ability.WATCH_COUNT)

    def restart(self) -> None:
        """Start the device anew, with the same settings, e.g. after it collapsed.

        Raises:
            UsageError: this measurer is without `Ability.RESTART`.
            NatgaugeError: it does not come back.
        """
        raise _unable(Ability.RESTART)

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """What the tester itself adds: the same frames at the same rates, its two ports joined without a device.

        Raises:
            UsageError: this measurer is without `Ability.OWN_DELAYS`.
            NatgaugeError: it could not be measured.
        """
        del plan
        raise _unable(Ability.OWN_DELAYS)

    def costs(self, plan: CostPlan) -> CostRound:
        """What frames cost the device, in one round of slices; the table is emptied first.

        Raises:
            UsageError: this measurer is without `Ability.COSTS`.
            NatgaugeError: it could not be run.
        """
        del plan
        raise _unable(Ability.COSTS)


def _unable(ability: Ability) -> UsageError:
    return UsageError(f"this tester lacks {ability}; choose another metric or setting")
