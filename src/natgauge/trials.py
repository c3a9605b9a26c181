# SPDX-License-Identifier: Apache-2.0
"""A trial, from plan to verdict: what procedures request, and what is judged, stored and shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from natgauge.causes.cause import Cause
from natgauge.delays import Delays
from natgauge.errors import BrokenError
from natgauge.other_traffic import NO_OTHER_TRAFFIC, OtherTraffic
from natgauge.readings import NO_READINGS, Churn, Readings
from natgauge.words import Close, LimitedBy, Order, Placement, Query, ReadingOrder, Verdict

if TYPE_CHECKING:
    from natgauge.agreement.generated import Cpu, PortCounters, StreamCounts, TrialRequest, TrialResult

#: Share of the nominal sending time by which a sender may be late at the end. It is a tenth of the usual error of a
#: search (1 %), so it does not affect the result, and far more than the few batches of an undisturbed sender.
LAG_SHARE = 0.001
#: Lag that is always tolerated, in seconds: two batches.
LEAST_LAG_SECONDS = 200e-6
#: The most frames of a batch, and the most seconds that a device in `shared` placement may need for a batch at the
#: intended rate.
MOST_TOGETHER = 64
BATCH_SECONDS = 100e-6
#: A bound of the engine's schema: a longer phase cannot be paced.
LONGEST_PHASE_SECONDS = 17_000.0
#: Softirqs may use a device's core for 2 ms, so a shorter stall cannot be distinguished from the device's work.
LEAST_WATCHED_SECONDS = 0.002
#: Broadcasts, a query of the device each second (management), or both (RFC 2544 sections 11.1 and 11.2).
Beside = Literal["none", "broadcast", "management", "both"]
QUERY_SECONDS = 1.0
#: Stolen time is read from /proc/stat, whose grain is 10 ms: one tick is the least that can be seen.
_STOLEN_BOUND_NS = 10_000_000


def together(rate: float) -> int:
    """Frames of a batch, 1 to 64, where a device in `shared` placement can do `rate` frames/s of all directions."""
    return min(max(int(rate * BATCH_SECONDS), 1), MOST_TOGETHER)


def lag_tolerance(nominal_seconds: float, lag_share: float = LAG_SHARE) -> float:
    """Return the seconds by which a sender may be late at the end of a phase of this nominal length."""
    return max(lag_share * nominal_seconds, LEAST_LAG_SECONDS)


class Direction(StrEnum):
    """Sender of the frames of a direction (RFC 9693 section 3: Initiator opens, Responder answers)."""

    INITIATOR = "initiator"
    RESPONDER = "responder"


@dataclass(frozen=True, slots=True)
class RateStep:
    """A second part of phase 2 (RFC 2544 section 26.5): `share` of all rates, for `seconds`, > 0."""

    share: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Modifiers:
    """Conditions of a phase 2 beside its rates: modifiers of RFC 2544 section 11, and incremental load of RFC 8219.

    Attributes:
        groups: groups of connections whose frames begin one after another (RFC 8219 section 10.2.2); 1 = all at once.
        group_seconds: time between the beginnings of two groups, > 0.
    """

    beside: Beside = "none"
    groups: int = 1
    group_seconds: float = 5.0

    @property
    def broadcast(self) -> bool:
        """Whether broadcasts take the place of some frames."""
        return self.beside in ("broadcast", "both")

    @property
    def queries(self) -> bool:
        """Whether the device is asked."""
        return self.beside in ("management", "both")

    @property
    def ramp_seconds(self) -> float:
        """Time from the beginning of the first group to that of the last, from which on the rate is whole."""
        return (self.groups - 1) * self.group_seconds

    def whole_share(self, seconds: float) -> float:
        """Return the share of a phase's frames that are sent while all groups send; `seconds` = length of the phase."""
        whole = seconds - self.ramp_seconds
        # Until then half of the rate is sent, on average.
        return whole / (whole + self.ramp_seconds / 2)

    @property
    def entries(self) -> int:
        """The most connections that a device keeps of broadcasts from each side, and of queries."""
        return 2 * self.broadcast + self.queries


@dataclass(frozen=True, slots=True)
class Phase2Plan:
    """The real test of a trial (RFC 9693 section 4.7).

    Attributes:
        initiator_rate: frames/s the Initiator sends; 0 = it is silent.
        responder_rate: frames/s the Responder sends; 0 = it is silent.
        seconds: nominal duration of sending, > 0. Ignored by the Responder when `reading_order` is "once".
        reading_order: how the Responder reads its state table (RFC 9693 section 4.10); "once" sends exactly one
            frame per stored connection (validation, RFC 9693 section 4.6).
        step: second part, directly after `seconds`; None = there is none (`Ability.RATE_STEP`).
        periods: number of times that phase 2 is run, over the same connections; above 1 only for `Measurer.periods`.
        churn: connections that are opened in addition, while the oldest leave; None = there are none (`Ability.CHURN`).
        modifiers: conditions beside the rates; `seconds` includes the beginnings of all groups. None = there are none.
    """

    initiator_rate: float
    responder_rate: float
    seconds: float
    reading_order: ReadingOrder = "pseudorandom"
    step: RateStep | None = None
    periods: int = 1
    churn: Churn | None = None
    modifiers: Modifiers | None = None

    def frames(self, rate: float) -> int:
        """Frames of a direction with this rate, at least 1; rounded down, so that no more connections are opened."""
        return max(1, int(rate * self.seconds + 1e-6))  # the product may lack so much of a whole number


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One elementary test: it starts with an empty table and consists of phase 1, a gap and phase 2.

    Attributes:
        connections: N, frames of phase 1, one per connection; 1 to 2**31. With order with-replacement: the draws.
        phase1_rate: R, frames/s of phase 1; > 0.
        phase2: None when there is only phase 1 (maximum connection establishment rate, RFC 9693 section 4.5).
        record_delays: time every frame of phase 2 (of phase 1 when there is no phase 2).
        frame_timeout_seconds: a frame later than this counts as lost; None = no per-frame limit.
        loss_tolerance: share of the offered frames of a direction that a passing trial may lose; 0 <= share < 1.
            RFC 9693 requires 0; any other value must be reported with the result.
        stateless: there is no phase 1, and the Responder generates its four tuples itself (RFC 4814 section 4.5); for
            devices that keep no connections (`Ability.STATELESS`).
        foreground_share: share of the frames of phase 2 that are under test, 0.001 to 1; the others are native IPv6,
            which the device only routes (RFC 8219 section 5.3); below 1 only with `Ability.BACKGROUND`.
        delays_from_seconds: frames of phase 2 that are sent earlier are not timed (RFC 8219 section 7.2 requires 60 s);
            above 0 only with `Ability.TAGGED_DELAYS`.
        delay_samples: number of frames of each direction that are timed, evenly spread over the rest of phase 2; None =
            every frame.
        record_variation: also record the differences between the delays of consecutive frames; requires `record_delays`
            of every frame (`Ability.VARIATION`).
        record_loss_times: record the sending time of the last lost frame, and the longest time without an arrival
            (`Ability.LOSS_TIMES`).
        restart_at_seconds: the device is restarted at this time of phase 2 (RFC 6201 section 4); None = it is not
            restarted.
        restart_command: the user's shell command on the tester's host that restarts it; None = natgauge restarts it
            (`Ability.RESTART_IN_TRIAL`).
        settle_seconds: pause before the first frame, with an empty table (RFC 2544 section 23 requires 5 s between
            trials); >= 0.
        single_frames: in `shared` placement each frame is a batch of its own, so no frame waits for another; the tester
            is then slower.
        lag_share: share of a phase's nominal length by which the sender may be late at its end; > 0.
        at_rate: its figure is a time at its rates, which a FAIL has, too: where its frames were not sent in time, it is
            INVALID. Otherwise a device that loses frames of a slower sender fails: it would at the rate as well.
        query: the Initiator sends DNS queries of this type in both phases, and the Responder answers each; the received
            frames are then correct answers at the Initiator. None = plain frames (`Ability.QUERIES`).
        aaaa_share: share of the names that have an AAAA record of their own, which is then the one right answer.
        cached_share: share of the queries of phase 2 with the name of their connection, for which phase 1 asks first;
            above 0 a stateless trial has a phase 1, too.
        accept_zero_checksum: frames over IPv6 with a UDP checksum of 0 count as received, not as damaged.
        handed_on: the Responder forwards the queries to a real server, which answers (`Ability.REAL_SERVER`).
        close: the segment with which the Initiator closes each TCP connection; None = connections stay open. With
            `request_octets` the Initiator closes in phase 1; otherwise each of its frames of phase 2 closes one
            connection.
        request_octets: each TCP connection is a transaction. A request and a response of this many octets (>= 0) follow
            the handshake, then the connection is closed. The received frames are the transactions whose last segment
            arrived. None = connections have no request.
        half_open: TCP connections stay half-open: a SYN gets no answer in phase 1. Phase 2, if any, is the Responder's
            alone, in the reading order "once"; its frames are the SYN-ACKs, which no ACK follows.
        sources: number of the Initiator's addresses that send, from the first one on, >= 1; None = all.
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
    restart_command: str | None = None
    settle_seconds: float = 0.0
    single_frames: bool = False
    lag_share: float = LAG_SHARE
    at_rate: bool = False
    query: Query | None = None
    handed_on: bool = False
    aaaa_share: float = 0.0
    cached_share: float = 0.0
    accept_zero_checksum: bool = False
    close: Close | None = None
    request_octets: int | None = None
    half_open: bool = False
    sources: int | None = None

    @property
    def has_phase1(self) -> bool:
        """Whether phase 1 sends a frame for each connection."""
        return not self.stateless or self.cached_share > 0

    @property
    def opened_in_phase2(self) -> int:
        """Connections that phase 2 opens, each with a four tuple of its own; the host of a flood opens others."""
        phase2 = self.phase2
        return 0 if phase2 is None or phase2.churn is None else phase2.churn.openings(phase2.seconds)

    @property
    def of_each_source(self) -> int:
        """Four tuples that each of `sources` needs, if all have as many; a flood's host has as many as a source."""
        taken = math.ceil((self.connections + self.opened_in_phase2) / (self.sources or 1))
        if self.phase2 is None or self.phase2.churn is None:
            return taken
        return max(taken, math.ceil(self.phase2.churn.flood_per_second * self.phase2.seconds))

    @property
    def opened(self) -> str:
        """What the frames of phase 1 begin, in words."""
        return "connections" if self.request_octets is None else "transactions"


@dataclass(frozen=True, slots=True)
class Restart:
    """Times at which the restart command began and the device was ready again; seconds of phase 2, +- a few ms."""

    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: what was planned, requested, counted and read, and its verdict. Each of several periods is a trial.

    Procedures judge it, too: they replace the verdict. Whatever follows from the engine's result is a property.

    Attributes:
        request: None for a trial that did not begin, or that no engine ran.
        result: None for a trial that did not begin.
        readings: readings of gateway, lab and host; `NO_READINGS` for a trial that did not begin.
        verdict: INVALID until the trial is judged.
        reason: a sentence with the figures that decided the verdict; empty only for PASS.
        disturbed: whether stalls or stolen time occurred, whatever the verdict.
        excused: whether the trial would have failed, and is INVALID because disturbances explain the failure.
        excused_frames: lost frames that disturbances explain, whatever the verdict; >= 0.
        excused_by_direction: excused frames of phase 2, by the direction that lost them; only values above 0.
        limited_by: for FAIL: "device", "table", "port pool", "port block", "log", "server"; for INVALID: "tester" or
            "host"; else None.
        cause: for FAIL: why frames were lost, came back wrong or left late; None = not a matter of frames, or not known
            whether it is one.
        failed_phase: number of the phase that failed, from 1. A FAIL of phase 1 says nothing about the rate of phase 2.
        raised_timeout: UDP time-out of the device in s, where natgauge raised it so far; None = it did not.
        gone_before: whether the device, which an earlier trial reached, was not reached before this one.
    """

    plan: TrialPlan
    request: TrialRequest | None
    result: TrialResult | None
    readings: Readings = NO_READINGS
    restart: Restart | None = None
    _: KW_ONLY
    placement: Placement
    verdict: Verdict = Verdict.INVALID
    reason: str = "not judged"
    disturbed: bool = False
    excused: bool = False
    excused_frames: int = 0
    excused_by_direction: dict[Direction, int] = field(default_factory=dict)
    limited_by: LimitedBy | None = None
    cause: Cause | None = None
    failed_phase: int | None = None
    remarks: tuple[str, ...] = ()
    command_failures: int = 0
    raised_timeout: int | None = None
    gone_before: bool = False

    @property
    def counted(self) -> TrialResult:
        """The engine's result; BrokenError for a trial that did not begin."""
        if self.result is None:
            raise BrokenError(f"trial: it did not begin, so it has no result ({self.reason})")
        return self.result

    @property
    def phase1(self) -> StreamCounts:
        """Counts of phase 1; nothing was sent where there was none."""
        # Help reads this module, and loads no types of the engine.
        from natgauge.agreement.trial import NO_FRAMES, phase1_of  # noqa: PLC0415

        if self.result is None or not self.plan.has_phase1:
            return NO_FRAMES
        return self._offered(phase1_of(self.result))

    @property
    def device_refused(self) -> int:
        """Frames that ports refused because of the device: its queue is full, or it took their link down."""
        restarted, down = self.plan.restart_at_seconds is not None, self.readings.link_losses
        of_all = self.readings.taps or self.readings.forwards is False
        return sum(port.refused for name, port in self.ports.items() if of_all or (restarted and name in down))

    def _offered(self, counts: StreamCounts) -> StreamCounts:
        """The same counts; frames that a port refused because of the device were offered, and the device lost them."""
        # The engine counts what a port accepted: elsewhere what it did not accept never left the tester.
        missing = counts.intended_frames - (counts.unopened or 0) - counts.skipped - counts.offered_frames
        more = min(self.device_refused, missing) if missing > 0 else 0
        if more <= 0:
            return counts
        # Which of these were due in stalls is not known.
        return counts.model_copy(update={"offered_frames": counts.offered_frames + more, "lost_in_stalls": None})

    @property
    def phase2(self) -> dict[Direction, StreamCounts]:
        """Counts per active direction of phase 2; empty when there was no phase 2."""
        if self.result is None:
            return {}
        return {direction: self._offered(counts) for direction, counts in phase2_of(self.result).items()}

    @property
    def openings(self) -> StreamCounts | None:
        """Counts of the connections that phase 2 opened; None without churn."""
        phase2 = None if self.result is None else self.result.phase2
        return None if phase2 is None or phase2.openings is None else self._offered(phase2.openings)

    @property
    def closings(self) -> StreamCounts | None:
        """Counts of the TCP connections that phase 2 closed; None without churn of TCP."""
        phase2 = None if self.result is None else self.result.phase2
        return None if phase2 is None or phase2.closings is None else self._offered(phase2.closings)

    @property
    def flood(self) -> StreamCounts | None:
        """Counts of the connections of one host that opens more than its share; None without a flood."""
        phase2 = None if self.result is None else self.result.phase2
        return None if phase2 is None or phase2.flood is None else self._offered(phase2.flood)

    @property
    def streams(self) -> list[StreamCounts]:
        """Counts of phase 1, then those of phase 2 that decide."""
        churn = [counts for counts in (self.openings, self.closings) if counts is not None]
        return [self.phase1, *churn, *self.phase2.values()]

    @property
    def begun(self) -> bool:
        """Whether any frame was intended: none is for a device that did not recover from a collapse."""
        return bool(self.phase1.intended_frames or self.phase2)

    @property
    def stored(self) -> int:
        """Connections that the Responder learned."""
        return 0 if self.result is None else self.result.state_table.stored

    @property
    def table_count(self) -> int | None:
        """The device's own count after phase 1; None where the device does not report it."""
        return self.readings.count_after

    @property
    def cpus(self) -> Sequence[Cpu]:
        """Disturbances of the CPUs of tester and device."""
        return () if self.result is None else self.result.cpus

    @property
    def device_stalled_seconds(self) -> float:
        """Sum of the device's longest stalls since phase 2 began."""
        stalls = [stall for cpu in self.cpus if cpu.role == "watched" for stall in cpu.longest_stalls]
        return sum(stall.to_ns - stall.from_ns for stall in stalls if stall.phase == "phase2") / 1e9

    @property
    def ports(self) -> dict[str, PortCounters]:
        """Counts of the tester's own ports, by name."""
        ports = None if self.result is None else self.result.ports
        return {} if ports is None else {"Initiator": ports.initiator, "Responder": ports.responder}

    @property
    def other_traffic(self) -> OtherTraffic:
        """The foreign frames at both of the tester's ports, next to all frames that the tester sent."""
        if self.result is None:
            return NO_OTHER_TRAFFIC
        foreign = sum(port.foreign for port in self.ports.values())
        streams = [*self.streams, *([] if self.flood is None else [self.flood])]
        return OtherTraffic(foreign, sum(each.sent_messages for each in streams), self.result.wall_ns / 1e9)

    @property
    def delays(self) -> dict[Direction, Delays]:
        """Delays of phase 2 by direction, or those of phase 1 when there was no phase 2.

        Where the sender's core does the device's work, a stall can delay one batch, because nothing is sent meanwhile.
        """
        most = None
        if self.placement == "shared" and self.request is not None:
            most = self.request.senders.batch * sum(cpu.stalls for cpu in self.cpus)
        streams = self.phase2 or {Direction.INITIATOR: self.phase1}
        timed = {direction: stream.delay for direction, stream in streams.items() if stream.delay is not None}
        delays = {direction: Delays.of(delay, most) for direction, delay in timed.items()}
        return {direction: each for direction, each in delays.items() if each is not None}


def phase2_of(result: TrialResult) -> dict[Direction, StreamCounts]:
    """Return the engine's counts of each active direction; empty without phase 2."""
    if result.phase2 is None:
        return {}
    both = {Direction.INITIATOR: result.phase2.initiator, Direction.RESPONDER: result.phase2.responder}
    return {direction: stream for direction, stream in both.items() if stream is not None}


def streams_of(result: TrialResult) -> dict[Direction | None, StreamCounts]:
    """Return the engine's counts of phase 1 (key None) and of each active direction of phase 2."""
    phase1: dict[Direction | None, StreamCounts] = {} if result.phase1 is None else {None: result.phase1}
    return phase1 | dict(phase2_of(result).items())


def arrived_in_all(streams: Mapping[Direction | None, StreamCounts]) -> int:
    """Return the number of frames of all streams that arrived, also with wrong content."""
    return sum(stream.arrived for stream in streams.values())


def is_disturbed(cpu: Cpu) -> bool:
    """Whether the CPU was taken away: the engine counts only stalls that are longer than the trial's bound."""
    return cpu.stalls > 0 or cpu.stolen_ns >= _STOLEN_BOUND_NS


def lost_seconds(cpu: Cpu) -> float:
    """Return the CPU's seconds without work: the larger of its stalls and of what the hypervisor admits."""
    return max(cpu.stalled_ns, cpu.stolen_ns) / 1e9


@dataclass(frozen=True, slots=True)
class Period:
    """One of several runs of phase 2 over the same connections.

    Attributes:
        outcome: outcome of a trial with this phase 2 alone; its `table_count` is the device's own count at the end.
        seconds: end of the period, in seconds since the first period began.
        free_octets: available memory of the device's machine at the end; None = not known.
    """

    outcome: Trial
    seconds: float
    free_octets: int | None = None
