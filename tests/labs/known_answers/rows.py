# SPDX-License-Identifier: Apache-2.0
"""The known-answer table: which device, what it truly does, which metric looks, and how near it must come.

A bucket of B tokens that gets L of them a second is full at the start of a trial, so frames at an even rate r pass for
as long as r * t <= B + L * t. A frame that comes late finds more tokens, not fewer, unless the bucket was full
meanwhile: that wastes tokens. A core of the device may stand still for 5 ms before the tester notices, so L * 5 ms may
be wasted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.labs.calibration import Mode
from tests.labs.known_answers.devices import (
    FILLING_SECONDS,
    Changing,
    Device,
    Expiring,
    FallingOver,
    Holding,
    Known,
    Pausing,
    Queueing,
    Ruled,
    SlowToEmpty,
)
from tests.plans import OneTrial, PlanOfTrial

from natgauge import procedures
from natgauge.agreement.generated import StreamCounts
from natgauge.inputs.measuring_types import SearchError
from natgauge.inputs.question import DeviceOptions
from natgauge.procedures.kit.phases import expected_connections
from natgauge.procedures.kit.queues import LONGEST_WAIT_SECONDS
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.measurement import Result
from natgauge.setup.traffic.plan import FIRST_SOURCE_PORT
from natgauge.statistics.ranks import FALSE_ALARM
from natgauge.trial.requests import STALL_BOUND_SECONDS
from natgauge.trials import LAG_SHARE, Direction, Phase2Plan
from natgauge.words import Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a row left.

    Attributes:
        outcome: of the last trial.
        known: what the device says of itself.
        result: of the procedure; None where a single trial was run.
        said: the results as they were reported, where whole measurements were made.
    """

    outcome: OneTrial
    known: Known
    result: MeasurementResult | None = None
    said: tuple[Result, ...] = ()

    @property
    def measured(self) -> MeasurementResult:
        assert self.result is not None
        return self.result

    @property
    def limited_by(self) -> str:
        """What limited the measurement, or the single trial; "" if nothing did."""
        return self.outcome.limited_by or "" if self.result is None else self.result.limited_by

    @property
    def excused_frames(self) -> int:
        """Lost frames of all trials of a procedure that disturbances explain; 0 of a single trial."""
        if self.result is None:
            return 0
        outcomes = [attempt.outcome for measured in self.result.measurements for attempt in measured.attempts]
        return sum(sum(outcome.excused_by_direction.values()) for outcome in outcomes)


Value = float | str
Read = Callable[[Evidence], Value]
#: How far the found figure may be below the truth, and how far above it.
Margins = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """One figure, and what it must be.

    Attributes:
        figure: its name; "" = the metric's own value.
        unit: of it.
        found: reads what the tester says.
        truth: what is true, or reads it from what the device says.
        margins: below and above, or reads them from what the device says.
        reason: for the margins.
    """

    figure: str
    unit: str
    found: Read
    truth: Value | Read
    margins: Margins | Callable[[Evidence], Margins] = (0.0, 0.0)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement of one device.

    Attributes:
        name: of the test.
        device: what is measured.
        metric: the procedure, and after a comma what is special; or what a single trial is about.
        looks: at its figures.
        settings: of the procedure, beside what all have.
        trial: instead of a procedure.
        answer: what that trial has to be; an INVALID one where it was not asked for was disturbed. PASS where a trial
            that fails is repeated: only of a device that does not count over trials.
        whole: instead of both, makes the device and whole measurements of it, as a user asks for them.
    """

    name: str
    device: Device
    metric: str
    looks: tuple[Look, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    trial: PlanOfTrial | None = None
    answer: Verdict | None = None
    whole: Callable[[], Evidence] | None = None


# How figures are read


def value(evidence: Evidence) -> float:
    """The procedure's own."""
    return evidence.measured.summary.median


def figure(name: str) -> Read:
    """A further figure of the procedure."""
    return lambda evidence: evidence.measured.figures[name].median


def not_forwarded_percent_at(percent: float) -> Read:
    """A row of the frame loss rate's series: lost, or not sent in time because the host slowed the sender."""

    def read(evidence: Evidence) -> float:
        (repetition,) = evidence.measured.measurements
        (row,) = (row for row in repetition.series if row["offered_percent"] == percent)
        return float(row["shortfall_percent"] or 0.0)

    return read


def trend(evidence: Evidence) -> str:
    """Of the loss of a stability's periods."""
    figures = evidence.measured.figures
    found = figures["lost_percent_p"].median <= FALSE_ALARM
    return "rises" if found and figures["lost_percent_tau"].median > 0 else "none"


def frames(read: Callable[[StreamCounts], int]) -> Read:
    """Of the Initiator's frames of phase 2, in a single trial."""
    return lambda evidence: float(read(evidence.outcome.phase2[Direction.INITIATOR]))


def verdict(evidence: Evidence) -> str:
    """Of a single trial."""
    return str(evidence.outcome.verdict)


def trials(of: Verdict) -> Read:
    """How many ended so."""
    return lambda evidence: float(evidence.measured.trials[of])


def told(name: str, *, offset: float = 0.0, sign: int = 1) -> Read:
    """What the device says of itself."""
    return lambda evidence: offset + sign * evidence.known[name]


def both(margin: float) -> Margins:
    """As far below as above."""
    return (margin, margin)


# What all share

#: Seconds for which a core may stand still before the tester notices.
DEVICE_STALL, SENDER_STALL = STALL_BOUND_SECONDS["watched"], STALL_BOUND_SECONDS["sender"]
#: Far above the rates of phase 1 that come of it, and far below what any device here can do.
PHASE1: Mapping[str, object] = {"connection_rate": 20_000.0}
UPWARD: Mapping[str, object] = {**PHASE1, "directions": "up"}


# A device that polices: rates and loss by arithmetic

LIMIT, BUCKET, TRIAL_SECONDS = 40_000, 2000, 0.5
POLICE = Ruled(
    words=f"drops beyond {LIMIT:,} frames/s, bucket of {BUCKET:,}",
    rules=f"limit rate over {LIMIT}/second burst {BUCKET} packets drop",
    placement="isolated",
)
POLICED_RATE = LIMIT + BUCKET / TRIAL_SECONDS
OPENED = 10_000
POLICED_OPENING = LIMIT / (1 - BUCKET / OPENED)
POLICE_OPENING = Ruled(words=POLICE.words, rules=POLICE.rules, placement="isolated", connections=OPENED)
#: Their answers pass.
POLICE_QUERIES = Ruled(
    words=f"drops queries beyond {LIMIT:,}/s, bucket of {BUCKET:,}",
    rules=f"udp dport 53 limit rate over {LIMIT}/second burst {BUCKET} packets drop",
    placement="isolated",
    grace_seconds=0.25,
)
#: A transaction has one SYN.
POLICE_SYNS = Ruled(
    words=f"drops SYNs beyond {LIMIT:,}/s, bucket of {BUCKET:,}",
    rules=f"tcp flags & (syn | ack) == syn limit rate over {LIMIT}/second burst {BUCKET} packets drop",
    placement="isolated",
    connections=OPENED,
)
FULL_RATE = 50_000.0
ROUGH = SearchError(share=0.1)
#: As long as the trials that look for the bounds, which none repeats then.
ROUGH_SECONDS = 0.25
ROUGH_RATE = LIMIT + BUCKET / ROUGH_SECONDS


def searched(name: str, metric: str, device: Device, truth: float, settings: Mapping[str, object]) -> Row:
    """A rate that is searched for to 1 %, or as the settings say."""
    error = settings.get("error", SearchError(share=0.01))
    assert isinstance(error, SearchError)
    # N frames at R take N / R seconds.
    seconds = settings.get("trial_seconds", device.connections / truth)
    assert isinstance(seconds, float)
    below = error.width(truth) + truth * DEVICE_STALL / seconds
    reason = f"below: error of the search ({error}), tokens wasted in 5 ms; above: a schedule kept to 0.1 %"
    look = Look("", procedures.get(metric.partition(",")[0]).unit, value, truth, (below, truth * LAG_SHARE), reason)
    return Row(name, device, metric, (look,), {"confirm": False, **settings, "error": error})


def policed_loss(share: float) -> Look:
    """The share of a trial's frames that found no token."""
    sent = share * FULL_RATE * TRIAL_SECONDS
    return Look(
        f"lost at {share:.0%}",
        "%",
        not_forwarded_percent_at(100 * share),
        100 * (sent - BUCKET - LIMIT * TRIAL_SECONDS) / sent,
        (100 * LAG_SHARE, 100 * LIMIT * DEVICE_STALL / sent),
        "below: a schedule kept to 0.1 %; above: tokens wasted in 5 ms",
    )


POLICED = (
    searched("throughput", "throughput", POLICE, POLICED_RATE, {**UPWARD, "trial_seconds": TRIAL_SECONDS}),
    searched(
        "throughput by mlrsearch",
        "throughput, mlrsearch",
        POLICE,
        POLICED_RATE,
        {**UPWARD, "trial_seconds": TRIAL_SECONDS, "search": "mlrsearch", "error": SearchError(share=0.03)},
    ),
    searched(
        "resolution rate",
        "resolution-rate",
        POLICE_QUERIES,
        POLICED_RATE,
        {**PHASE1, "trial_seconds": TRIAL_SECONDS, "loss_tolerance": 0.0},
    ),
    searched("connection rate", "connection-rate", POLICE_OPENING, POLICED_OPENING, {}),
    searched("validated connection rate", "validated-connection-rate", POLICE_OPENING, POLICED_OPENING, {}),
    # The same devices in a search that ends soon: `make test` has each procedure.
    searched(
        "throughput, roughly",
        "throughput",
        POLICE,
        ROUGH_RATE,
        {**UPWARD, "trial_seconds": ROUGH_SECONDS, "error": ROUGH},
    ),
    searched(
        "resolution rate, roughly",
        "resolution-rate",
        POLICE_QUERIES,
        ROUGH_RATE,
        {**PHASE1, "trial_seconds": ROUGH_SECONDS, "loss_tolerance": 0.0, "error": ROUGH},
    ),
    searched(
        "validated connection rate, roughly",
        "validated-connection-rate",
        POLICE_OPENING,
        POLICED_OPENING,
        {"error": ROUGH},
    ),
    searched("transaction rate, roughly", "transaction-rate", POLICE_SYNS, POLICED_OPENING, {"error": ROUGH}),
    Row(
        "loss of a policed device",
        POLICE,
        "frame-loss",
        (
            policed_loss(1.0),
            policed_loss(0.9),
            Look("highest rate without loss", "frames/s", figure("highest_rate_without_loss"), 0.8 * FULL_RATE),
        ),
        {**UPWARD, "trial_seconds": TRIAL_SECONDS, "full_rate": FULL_RATE},
    ),
)


# A device that drops every k-th frame: its share is exact whatever the host does

#: Both k divide the frames of a trial, so it does not matter with which frame a trial begins.
DROPPED: Mapping[str, object] = {
    **PHASE1,
    "trial_seconds": TRIAL_SECONDS,
    "full_rate": 20_000.0,
    # Ends the series after two trials: a device that always loses has no rate without loss.
    "loss_tolerance": 0.05,
}

DROPPING = (
    Row(
        "loss of every 50th frame",
        Changing(words="drops every 50th frame down", mode="drop", every=50, side="inside", placement="isolated"),
        "frame-loss",
        (Look("lost at 100%", "%", value, 100 / 50),),
        {**DROPPED, "directions": "down"},
    ),
    Row(
        "loss of every 40th frame of a router",
        Changing(
            words="router, drops every 40th frame up",
            recipe="linux-ipv4",
            mode="drop",
            every=40,
            side="outside",
            placement="isolated",
        ),
        "frame-loss, stateless",
        (Look("lost at 100%", "%", value, 100 / 40),),
        {**DROPPED, "directions": "up", "stateless": True, "connection_rate": None},
    ),
)


# Devices that spoil frames: counted to the frame, in single trials

SENT, SENDING_RATE, EVERY, LEAVING = 10_000, 20_000.0, 7, 1234
ONE_TRIAL = PlanOfTrial(500, 10_000.0, Phase2Plan(SENDING_RATE, 0.0, SENT / SENDING_RATE))


def spoilt(name: str, mode: Mode, words: str, looks: tuple[Look, ...], every: int = EVERY) -> Row:
    """Something is done to frames of phase 2."""
    device = Changing(words=words, mode=mode, every=every, side="outside", offset=ONE_TRIAL.connections)
    return Row(name, device, "single trial", looks, trial=ONE_TRIAL)


def counted(name: str, read: Callable[[StreamCounts], int], expected: Verdict) -> tuple[Look, ...]:
    """As many frames are found as the device acted on, and judged."""
    return (Look(name, "frames", frames(read), told("acted_frames")), Look("verdict", "", verdict, str(expected)))


SPOILING = (
    spoilt(
        "duplicates",
        "duplicate",
        "sends every 7th frame twice",
        counted("duplicates", lambda counts: counts.duplicates, Verdict.FAIL),
    ),
    spoilt(
        "reordering",
        "swap",
        "lets every 7th frame leave after its successor",
        counted("reordered", lambda counts: counts.reordered, Verdict.PASS),
    ),
    spoilt(
        "damage",
        "damage",
        "flips bits in every 7th frame",
        counted("damaged", lambda counts: counts.damaged, Verdict.FAIL),
    ),
    spoilt(
        "leak",
        "untranslated",
        "leaks every 7th frame untranslated",
        counted("untranslated", lambda counts: counts.untranslated, Verdict.FAIL),
    ),
    spoilt(
        "mistranslation",
        "mistranslate",
        "sends every 7th frame to another port",
        counted("mistranslated", lambda counts: counts.mistranslated, Verdict.FAIL),
    ),
    spoilt(
        "stop",
        "stop-after",
        f"stops for good after {LEAVING:,} frames",
        (
            Look("received", "frames", frames(lambda counts: counts.received_frames), float(LEAVING)),
            *counted("lost", lambda counts: counts.lost, Verdict.FAIL),
        ),
        every=LEAVING,
    ),
)


# A device that holds frames: delays and their variation

#: The project's own bound on how far the tester's delays may be from the device's.
TIMING_US = 20.0
#: Percentiles come from buckets 1 % wide, and the middle of one is told.
HALF_A_BUCKET = 0.005
HOLD_US, JITTER_US, JITTERED = 1000, 100_000, 50
TIMED: Mapping[str, object] = {
    "connection_rate": 2000.0,
    "throughput_rate": 1000.0,
    "trial_seconds": 0.5,
    "loads": "100%",
}
FIRST_HELD_US = 2000


def first_held() -> Row:
    """Every frame takes the same time, those that open connections among them."""
    device = Holding(words="holds every frame for 2 ms", delay_us=FIRST_HELD_US)
    margin = both(TIMING_US + HALF_A_BUCKET * FIRST_HELD_US)
    reason = "20 us beyond the device's own error, half a bucket of 1 %"
    truth = told("error_median_us", offset=FIRST_HELD_US)
    looks = (
        Look("first", "us", value, truth, margin, reason),
        Look("later", "us", figure("later_typical_us"), truth, margin, reason),
    )
    settings = {"connection_rate": 2000.0, "trial_seconds": 0.5, "loads": "50%"}
    return Row("first frames are held as long as later ones", device, "first-packet-delay", looks, settings)


JITTERING = Holding(
    words=f"holds every frame for 1 ms, every {JITTERED}th 100 ms longer",
    delay_us=HOLD_US,
    jitter_us=JITTER_US,
    every=JITTERED,
    # Longer than any frame is held.
    grace_seconds=0.3,
)


def held(delay_us: int, **settings: object) -> Row:
    """Every frame takes the same time."""
    words = f"holds every frame for {delay_us // 1000} ms"
    smallest = Look(
        "smallest",
        "us",
        figure("minimum_us"),
        told("error_minimum_us", offset=delay_us),
        both(TIMING_US),
        "20 us beyond the device's own error",
    )
    typical = Look(
        "typical",
        "us",
        value,
        told("error_median_us", offset=delay_us),
        both(TIMING_US + HALF_A_BUCKET * delay_us),
        "20 us beyond the device's own error, half a bucket of 1 %",
    )
    device = Holding(words=words, delay_us=delay_us)
    return Row(f"delay of {delay_us} us", device, "latency", (smallest, typical), {**TIMED, **settings})


def varied(tester_us: float, part: float = 0.0) -> Callable[[Evidence], Margins]:
    """What the tester, the device's own timer, and a part of the largest delay may be off."""
    return lambda evidence: both(tester_us + evidence.known["error_p99_us"] + part * (HOLD_US + JITTER_US))


def extreme(name: str, truth: float, stall: float, reason: str) -> Look:
    """The smallest or the largest difference between delays; a single frame moves it by an unnoticed stall (s)."""
    return Look(f"{name} difference", "us", figure(f"ipdv_{name}_us"), truth, varied(1e6 * stall), reason)


def differences(name: str, repeat: int, stall: float, reason: str) -> Row:
    """The inter packet delay variation: two frames in 50 differ by the jitter from the frame before them."""
    looks = (
        extreme("minimum", -float(JITTER_US), stall, reason),
        Look(
            "median difference",
            "us",
            figure("ipdv_median_us"),
            0.0,
            varied(2 * TIMING_US),
            f"20 us for each frame, the device's own p99 error; median of {repeat}",
        ),
        extreme("maximum", float(JITTER_US), stall, reason),
    )
    return Row(name, JITTERING, "ipdv", looks, {**TIMED, "repeat": repeat, "directions": "up"})


def variation(name: str, repeat: int, tester_us: float, reason: str) -> Row:
    """The packet delay variation: the 99.9th percentile is of frames that the device holds for longer."""
    look = Look(
        "",
        "us",
        value,
        float(JITTER_US),
        varied(tester_us, HALF_A_BUCKET),
        f"{reason}, the device's own p99 error, half a bucket of 1 %; median of {repeat}",
    )
    return Row(name, JITTERING, "pdv", (look,), {**TIMED, "repeat": repeat, "directions": "up"})


LONG_US, LIMIT_SECONDS = 24_000, 0.02


def late(kind: str) -> Look:
    """The delay of the last trial's frames, which are all late."""

    def found(evidence: Evidence) -> float:
        delays = evidence.outcome.phase1.late_delays(evidence.outcome.plan.frame_timeout_seconds)
        assert delays is not None
        return 1e6 * {"least": delays.least, "mean": delays.mean}[kind]

    error = {"least": "error_minimum_us", "mean": "error_mean_us"}[kind]
    margins = varied(TIMING_US)
    return Look(f"{kind} delay", "us", found, told(error, offset=LONG_US), margins, "20 us, the device's own p99 error")


def noted(evidence: Evidence) -> str:
    """The doubt that ended the search."""
    return next((note.word for note in evidence.measured.notes if "at every rate" in note.word), "none")


BEYOND_LIMIT = Row(
    "delay beyond the time limit",
    Holding(
        words=f"holds every frame for {LONG_US // 1000} ms, of which {LIMIT_SECONDS * 1000:g} ms are allowed",
        delay_us=LONG_US,
    ),
    "connection-rate",
    (
        Look("", "connections/s", value, 0.0),
        Look("doubt", "", noted, "late at every rate"),
        late("least"),
        late("mean"),
    ),
    {"frame_timeout_seconds": LIMIT_SECONDS},
)

HOLDING = (
    BEYOND_LIMIT,
    held(1000),
    held(10_000, stateless=True, connection_rate=None),
    first_held(),
    variation("packet delay variation", 3, 2 * TIMING_US, "20 us for each frame"),
    variation(
        "packet delay variation, once",
        1,
        1e6 * (SENDER_STALL + DEVICE_STALL),
        "unnoticed stalls of the sender (1 ms) and of the device (5 ms)",
    ),
    differences(
        "inter packet delay variation",
        3,
        SENDER_STALL,
        "a sender's unnoticed stall of 1 ms, the device's own p99 error; median of 3",
    ),
    differences(
        "inter packet delay variation, once",
        1,
        SENDER_STALL + DEVICE_STALL,
        "unnoticed stalls of the sender (1 ms) and of the device (5 ms), the device's own p99 error",
    ),
)


# Devices with a buffer: bursts

SLOW, BUFFER, IN_HAND, BURST_RATE, BURST_ERROR = 10_000, 2000, 50, 100_000.0, 20.0
BURSTS: Mapping[str, object] = {
    **UPWARD,
    "confirm": False,
    "error": SearchError(rate=BURST_ERROR),
    "throughput_rate": float(SLOW),
    "burst_rate": BURST_RATE,
    "burst_seconds": 0.1,
}


def burst(name: str, device: Device, buffered: int) -> Row:
    """A burst of n frames at r passes when n <= buffered + L * n / r."""
    truth = buffered / (1 - SLOW / BURST_RATE)
    look = Look(
        "",
        "frames",
        value,
        truth,
        (BURST_ERROR + SLOW * DEVICE_STALL, SLOW * DEVICE_STALL),
        f"below: error of the search ({BURST_ERROR:g}); both: the last frame 5 ms nearer to the first, or later",
    )
    return Row(name, device, "back-to-back", (look,), BURSTS)


BURSTING = (
    burst(
        "burst into a bucket",
        Ruled(
            words=f"drops beyond {SLOW:,} frames/s, bucket of {BUFFER:,}",
            rules=f"limit rate over {SLOW}/second burst {BUFFER} packets drop",
            placement="isolated",
        ),
        BUFFER,
    ),
    burst(
        "burst into a queue",
        Queueing(
            words=f"forwards {SLOW:,} frames/s, {IN_HAND} at once, behind a queue of {BUFFER:,}",
            rate=SLOW,
            burst=IN_HAND,
            queue=BUFFER,
            placement="isolated",
            # The queue takes 0.2 s to run empty.
            grace_seconds=0.4,
        ),
        BUFFER + IN_HAND,
    ),
)


# Devices that come back

MEDIUM, PENALTY_MS, QUEUE, OVERLOAD = 20_000, 300, 2000, 1.2
#: Frames of phase 2 that a device forwards before it stops: three and a half periods.
LASTING = 7000
#: Linux counts the age of a set's elements in ticks of 1 to 10 ms.
TICK_MS = 10.0
#: A frame is late that waited longer in the queue, which shrinks by what leaves and does not come.
DRAINED_MS = 1000 * (QUEUE / MEDIUM - LONGEST_WAIT_SECONDS) / (1 - OVERLOAD / 2)
DRAIN_DOUBT_MS = 1000 * DEVICE_STALL / (1 - OVERLOAD / 2)
RECOVERY: Mapping[str, object] = {**UPWARD, "throughput_rate": float(MEDIUM)}
PAUSE_SECONDS, PAUSED_RATE = 0.3, 2000.0
#: Before and after the pause a frame is due within the gap of two frames, and a sender may be late unnoticed.
PAUSE_LATER_MS = 2 * 1000 * (1 / PAUSED_RATE + SENDER_STALL)

RECOVERING = (
    Row(
        "recovery from a penalty",
        Ruled(
            words=f"drops all for {PENALTY_MS} ms after each frame beyond {MEDIUM:,} frames/s",
            sets=f"set penalty {{ type ipv4_addr; flags dynamic, timeout; timeout {PENALTY_MS}ms; size 16; }}",
            # The bucket lets a burst pass that an unnoticed stall leaves behind.
            rules=(
                f"limit rate over {MEDIUM}/second burst 100 packets update @penalty {{ ip daddr }}\n"
                "        ip daddr @penalty drop"
            ),
            placement="isolated",
        ),
        "system-recovery",
        (Look("", "ms", value, float(PENALTY_MS), both(TICK_MS), "one tick of the kernel's clock, at most 10 ms"),),
        {**RECOVERY, "trial_seconds": 0.4, "after_seconds": 0.7},
    ),
    Row(
        "recovery of a queue",
        Queueing(
            words=f"forwards {MEDIUM:,} frames/s behind a queue of {QUEUE:,}; 20 ms in it are too long",
            rate=MEDIUM,
            burst=IN_HAND,
            queue=QUEUE,
            placement="isolated",
            # The queue takes 0.1 s to run empty.
            grace_seconds=0.3,
        ),
        "system-recovery",
        (Look("", "ms", value, DRAINED_MS, both(DRAIN_DOUBT_MS), "5 ms more in the queue, at the rate it shrinks"),),
        {
            **RECOVERY,
            # Long enough to fill the queue.
            "trial_seconds": 0.8,
            "after_seconds": 0.6,
            "overload": OVERLOAD,
            "frame_timeout_seconds": LONGEST_WAIT_SECONDS,
        },
    ),
    Row(
        "stability",
        Ruled(
            words=f"forwards {LASTING:,} frames of phase 2, then none",
            # The frames of phase 1 take tokens, too. A new token each second would spread the lost shares of failed
            # periods, and the test for a trend ranks them.
            rules=f"limit rate over 1/minute burst {LASTING + 500} packets drop",
            placement="isolated",
        ),
        "stability",
        (
            Look("failed periods", "", figure("failed_periods"), 11.0),
            Look("worst period", "%", figure("worst_shortfall_percent"), 100.0),
            Look("trend of the loss", "", trend, "rises"),
        ),
        {**UPWARD, "throughput_rate": 20_000.0, "trial_seconds": 0.2, "hours": 2.8 / 3600},
    ),
    Row(
        "reset",
        Pausing(words="forwards nothing for 300 ms when it is restarted", pause_seconds=PAUSE_SECONDS),
        "reset",
        (
            Look(
                "",
                "ms",
                value,
                told("pause_ms"),
                lambda evidence: (
                    evidence.known["pause_doubt_ms"],
                    evidence.known["pause_doubt_ms"] + PAUSE_LATER_MS,
                ),
                "the instants at which it was switched; above: a gap of 0.5 ms and a stall of 1 ms at both ends",
            ),
        ),
        {**PHASE1, "throughput_rate": 2 * PAUSED_RATE, "trial_seconds": 1.0, "before_seconds": 0.3},
    ),
)


# Devices with a table

CAPACITY, FALL, FALL_ERROR = 10_000, 3000, 128
TORN = 5000
TIMEOUT, EXPIRING, EXPIRING_RATE = 3, 4000, 2000.0
#: What the host may be late with one reading of the count, in seconds.
HOST_STALL = 0.1
#: The rate is taken over 80 % of the connections.
RATED_SECONDS = 0.8 * EXPIRING / EXPIRING_RATE


def enumerated(name: str, drawn: int) -> Row:
    """As many draws as there are four tuples, and each of the three orders that leave none out."""
    # Standard deviation of the share of different ones among as many draws as there are, for many draws.
    deviation = math.sqrt((math.exp(-1) - 2 * math.exp(-2)) / drawn)
    draws = Look(
        "created by draws",
        "%",
        value,
        100 * expected_connections(drawn, drawn) / drawn,
        both(600 * deviation),
        "6 standard deviations of chance",
    )
    others = (
        Look(f"created by {order}", "%", figure(f"created_percent_{order}"), 100.0)
        for order in ("permutation", "increasing", "decreasing")
    )
    device = Device(
        words=f"opens a connection for each of {drawn:,} four tuples",
        connections=drawn,
        source_ports=f"{FIRST_SOURCE_PORT}-{FIRST_SOURCE_PORT + drawn - 1}",
        highest_rate=32_000.0,
    )
    settings = {"error": SearchError(share=0.5), "confirm": False}
    return Row(name, device, "enumeration-orders", (draws, *others), settings)


TABLES = (
    Row(
        "table capacity",
        Device(
            words=f"keeps {CAPACITY:,} connections",
            wishes=DeviceOptions(table_size=CAPACITY),
            connections=CAPACITY + 500,
            highest_rate=100_000.0,
        ),
        "table-capacity",
        (Look("", "connections", value, float(CAPACITY), (2.0, 0.0), "two entries may belong to others"),),
        {"safe_connections": CAPACITY - 1000, "rate_error": 0.5},
    ),
    Row(
        "collapse",
        FallingOver(
            words=f"takes itself down when it has {FALL:,} connections",
            limit=FALL,
            connections=FALL + 1000,
            highest_rate=50_000.0,
        ),
        "table-capacity",
        (
            Look("", "connections", value, FALL - 1.0, (FALL_ERROR, 0.0), f"error of the search ({FALL_ERROR})"),
            Look("COLLAPSED", "trials", trials(Verdict.COLLAPSED), told("falls")),
        ),
        {"safe_connections": FALL - 1000, "rate_error": 0.5, "capacity_error": FALL_ERROR},
    ),
    Row(
        "tear-down rate",
        SlowToEmpty(words=f"waits 0.3 s before it empties {TORN:,} connections, timed from outside", connections=TORN),
        "tear-down-rate",
        (
            Look(
                "",
                "connections/s",
                value,
                lambda evidence: TORN / evidence.known["difference_s"],
                both(0.1 * TORN / 0.3),
                "10 %: medians of 3, each process started anew",
            ),
        ),
        # Phase 1 runs at half of it.
        {"connection_rate": 2 * TORN / FILLING_SECONDS, "sample": 3},
    ),
    Row(
        "expiry",
        Expiring(
            words=f"forgets each connection after {TIMEOUT} s; opened at {EXPIRING_RATE:,.0f} connections/s",
            connections=EXPIRING,
            wishes=DeviceOptions(udp_timeout=TIMEOUT),
        ),
        "expiry",
        (
            Look(
                "",
                "connections/s",
                value,
                EXPIRING_RATE,
                both(EXPIRING_RATE * HOST_STALL / (RATED_SECONDS - HOST_STALL)),
                "one reading of the count 0.1 s late",
            ),
            Look(
                "nine tenths gone after",
                "s",
                figure("last_tenth_seconds"),
                told("watched_from_s", sign=-1, offset=TIMEOUT + 0.9 * EXPIRING / EXPIRING_RATE),
                both(HOST_STALL),
                "one reading of the count 0.1 s late",
            ),
        ),
        # Phase 1 runs at half of the connection rate.
        {"connection_rate": 2 * EXPIRING_RATE, "watch_seconds": 10.0, "interval_seconds": 0.05},
    ),
    enumerated("orders of enumeration", 6000),
    enumerated("orders of enumeration of fewer", 2000),
)

ROWS: tuple[Row, ...] = (*POLICED, *DROPPING, *SPOILING, *HOLDING, *BURSTING, *RECOVERING, *TABLES)
