# SPDX-License-Identifier: Apache-2.0
"""Further rows of the known-answer table: deep queues, stalls, loss that no rate cures, counts, controls, and a wire.

A queue that takes everything up lets N frames at R pass when the last of them waits no longer than W: a device of rate
L, of which B frames may leave at once, seems to do N / ((N - B) / L - W). The result says by how much that may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.labs.known_answers.devices import RECIPES, Changing, Device, Queueing, Ruled
from tests.labs.known_answers.harder_devices import Burnt, Degrading, Elsewhere, FailingControls, Interrupted, Refusing
from tests.labs.known_answers.mixed import METRIC, differing, doubt_of, upgraded
from tests.labs.known_answers.mixed_load_rows import MIXED_LOAD_ROWS
from tests.labs.known_answers.pool_rows import POOL_ROWS
from tests.labs.known_answers.rows import (
    POLICE_OPENING,
    POLICED_OPENING,
    ROUGH,
    ROWS,
    UPWARD,
    Evidence,
    Look,
    Margins,
    Row,
    both,
    figure,
    frames,
    searched,
    told,
    trend,
    trials,
    value,
    verdict,
)
from tests.labs.known_answers.tcp_rows import TCP_ROWS
from tests.plans import PlanOfTrial

from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.metric import HELD_FIGURE, SHARE_FIGURE, TRIAL_SECONDS
from natgauge.procedures.kit.delays import MOST_STALLED
from natgauge.procedures.kit.queues import most_queued_share, wait_limit
from natgauge.trial.requests import STALL_BOUND_SECONDS
from natgauge.trials import LAG_SHARE, Phase2Plan
from natgauge.words import Verdict

# A deep queue before the device, and a limit that nobody is told

CAPACITIES = {"refuses from the first": (6_543, 0), "slow": (10_000, 300), "slower": (25_000, 1000)}


def decided_within(limit: int, margin: float) -> tuple[Look, ...]:
    """The capacity, or an interval that has it in it."""

    def undecided(evidence: Evidence) -> bool:
        return any(note.word == "undecided" for note in evidence.measured.notes)

    def margins(evidence: Evidence) -> Margins:
        if not undecided(evidence):
            return both(margin)
        (one,) = evidence.measured.measurements
        return (limit - one.value, 0.0)

    return (Look("", "connections", value, float(limit), margins, "two entries; undecided: the interval told"),)


DEEP = tuple(
    Row(
        f"capacity of {limit} behind a deep queue",
        Refusing(
            words=f"refuses beyond {limit:,} connections, limit not told, {work:,} rules for each, ring of 16,384",
            limit=limit,
            work=work,
            connections=60_000,
            highest_rate=1_000_000.0,
        ),
        "table-capacity",
        decided_within(limit, 2.0),
        {"profile": "quick"},
    )
    for limit, work in CAPACITIES.values()
)

# A rate behind a deep queue: within the doubt that the result tells

RATE, IN_HAND, OPENED, SECONDS, ERROR, DEEP_QUEUE = 20_000, 50, 6_000, 0.3, 0.05, 8_000
SEARCHED = SearchError(share=ERROR)
QUEUE = Queueing(
    words=f"forwards {RATE:,} frames/s, {IN_HAND} at once, behind a queue of {DEEP_QUEUE:,}",
    rate=RATE,
    burst=IN_HAND,
    queue=DEEP_QUEUE,
    placement="isolated",
    connections=OPENED,
    highest_rate=100_000.0,
    # What a trial of a rate far too high leaves in the queue has to leave it before the next.
    grace_seconds=DEEP_QUEUE / RATE + 0.05,
)


def queued(metric: str, unit: str, settings: Mapping[str, object], wait_seconds: float) -> Row:
    """The device's own rate, that of its queue not among it; no frame may wait longer than W seconds in it."""

    def margins(evidence: Evidence) -> Margins:
        seconds = evidence.measured.figures[TRIAL_SECONDS].median
        told_share = most_queued_share(wait_seconds, seconds) + IN_HAND / (RATE * seconds) + LAG_SHARE
        return (RATE * (ERROR + STALL_BOUND_SECONDS["watched"] / seconds), RATE * told_share)

    reason = f"below: error of the search ({ERROR:.0%}), 5 ms unnoticed; above: the doubt told, what leaves at once"
    return Row(
        f"{metric} behind a deep queue",
        QUEUE,
        metric,
        (Look("", unit, value, float(RATE), margins, reason),),
        {"confirm": False, "error": SEARCHED, **settings},
    )


QUEUED = (
    queued("connection-rate", "connections/s", {}, wait_limit()),
    queued("validated-connection-rate", "connections/s", {}, wait_limit()),
    queued(
        "throughput",
        "frames/s",
        {**UPWARD, "connection_rate": 10_000.0, "trial_seconds": SECONDS},
        wait_limit(SECONDS, SEARCHED),
    ),
)

# Stalls: what they lose is excused, to the frame, and nothing else

SENT, SENDING_RATE, EVERY = 20_000, 20_000.0, 1000
LONG_TRIAL = PlanOfTrial(500, 10_000.0, Phase2Plan(SENDING_RATE, 0.0, SENT / SENDING_RATE))


def excused(evidence: Evidence) -> float:
    """Frames that stalls explain, by the tester."""
    return float(evidence.outcome.excused_frames)


STALLS = (
    Row(
        "loss beside stalls",
        Interrupted(
            words=f"drops every {EVERY:,}th frame, its core taken for 6 ms of every 200 ms",
            mode="drop",
            every=EVERY,
            side="outside",
            offset=LONG_TRIAL.connections,
            burnt_ms=6,
            period_ms=200,
        ),
        "single trial",
        (
            Look("lost", "frames", frames(lambda counts: counts.lost), told("acted_frames")),
            Look("verdict", "", verdict, str(Verdict.FAIL)),
        ),
        trial=LONG_TRIAL,
    ),
    Row(
        "loss in stalls",
        Interrupted(
            words="loses what its ring of 256 cannot hold while its core is taken for 20 ms of every 250 ms",
            mode="drop",
            every=10 * SENT,
            side="outside",
            ring=256,
            burnt_ms=20,
            period_ms=250,
        ),
        "single trial",
        (
            Look("lost", "frames", frames(lambda counts: counts.lost), told("ring_frames")),
            Look("excused", "frames", excused, told("ring_frames")),
            Look("verdict", "", verdict, str(Verdict.INVALID)),
        ),
        trial=LONG_TRIAL,
        answer=Verdict.INVALID,
    ),
)

# Loss that no rate cures

LOSING = 200


def one_frame_each(evidence: Evidence) -> Margins:
    """A trial may begin at any frame of the k, so each is off by one frame at most."""
    attempts = [one.outcome for one in evidence.measured.measurements[0].attempts]
    sent = sum(counts.offered_frames for one in attempts for counts in one.phase2.values())
    return both(100 * len(attempts) / sent)


INCURABLE = (
    Row(
        "loss at every rate",
        Changing(
            words=f"router, drops every {LOSING}th frame up",
            recipe="linux-ipv4",
            mode="drop",
            every=LOSING,
            side="outside",
            placement="isolated",
        ),
        "throughput, stateless",
        (
            Look("", "frames/s", value, 0.0),
            Look(
                "lost at every rate",
                "%",
                lambda evidence: 100 * figure(SHARE_FIGURE)(evidence),
                100 / LOSING,
                one_frame_each,
                "one frame of each trial",
            ),
        ),
        {"directions": "up", "stateless": True, "trial_seconds": 0.5, "confirm": False},
    ),
)

# A count that traffic contradicts

CONTRADICTED = "count and traffic contradict each other"
COUNTING = (
    Row(
        "count that traffic contradicts",
        Device(words="says it has no connection, whatever it has", recipe=RECIPES / "miscounts.toml"),
        "single trial",
        (
            Look("verdict", "", verdict, str(Verdict.INVALID)),
            Look("reason", "", lambda evidence: evidence.outcome.reason.rpartition(": ")[2], CONTRADICTED),
        ),
        trial=PlanOfTrial(500, 10_000.0),
        answer=Verdict.INVALID,
    ),
)

# Controls that fail by chance: the rate is right, and each failure is counted

FORGETFUL = FailingControls(
    words=f"{POLICE_OPENING.words}; one of its commands in five fails",
    rules=POLICE_OPENING.rules,
    placement=POLICE_OPENING.placement,
    connections=POLICE_OPENING.connections,
)


def commands_repeated(evidence: Evidence) -> float:
    """Commands that failed, by the tester."""
    return float(sum(one.outcome.command_failures for one in evidence.measured.measurements[0].attempts))


_RATE = searched(
    "connection rate with controls that fail by chance", "connection-rate", FORGETFUL, POLICED_OPENING, {"error": ROUGH}
)
CONTROLS = (
    replace(
        _RATE,
        looks=(
            *_RATE.looks,
            Look("commands asked again", "commands", commands_repeated, told("failed_commands")),
            Look("COLLAPSED", "trials", trials(Verdict.COLLAPSED), 0.0),
        ),
    ),
)

# New connections that do not fit, or are lost: nobody is told the limit of the table

OF_SIX, OPENED_OF_SIX, UNTOLD = 6, 6_000, 3_000


def limited_by(evidence: Evidence) -> str:
    """What the tester says that limited."""
    return evidence.limited_by


NEW_CONNECTIONS = (
    Row(
        "share of new connections lost",
        Ruled(
            words=f"opens one of {OF_SIX} new connections, limit of its table not told",
            recipe=RECIPES / "lists-connections.toml",
            rules=f"ct state new numgen inc mod {OF_SIX} != 0 drop",
            connections=OPENED_OF_SIX,
        ),
        "connection-rate",
        (
            Look("", "connections/s", value, 0.0),
            Look("limited by", "", limited_by, "device"),
            Look(
                "lost at every rate",
                "%",
                lambda evidence: 100 * figure(SHARE_FIGURE)(evidence),
                100 * (1 - 1 / OF_SIX),
                both(100 / OPENED_OF_SIX),
                "one frame of each trial",
            ),
        ),
        {"confirm": False},
    ),
    Row(
        "table of a limit that nobody told",
        Refusing(
            words=f"refuses beyond {UNTOLD:,} connections, limit not told",
            placement="shared",
            limit=UNTOLD,
            connections=OPENED_OF_SIX,
        ),
        "connection-rate",
        (
            Look("", "connections/s", value, 0.0),
            # No table is full: the rule that refuses counts its packets.
            Look("limited by", "", limited_by, "device"),
            Look("connections held", "connections", figure(HELD_FIGURE), float(UNTOLD), both(2.0), "two entries"),
        ),
        {"confirm": False},
    ),
)

# A core that is taken while frames are timed

BURNT_MS, BURNT_EVERY_MS, TIMED_SECONDS = 10, 250, 1.0
#: Frames due while the core is taken wait for up to its end, and the slowest 0.1 % of all are among them.
WORST_US = 1000 * (BURNT_MS - 0.001 * BURNT_EVERY_MS)
#: A core that takes turns with nobody forwards a frame in less, in us; a stall below the bound of the watch is 2 ms.
UNDISTURBED_US = 2000.0
BURNT: Mapping[str, object] = {
    "connection_rate": 20_000.0,
    "throughput_rate": 10_000.0,
    "trial_seconds": TIMED_SECONDS,
    "loads": "100%",
}


def in_stalls(evidence: Evidence) -> str:
    """Whether the result has the doubt that its percentiles are of frames in stalls."""
    return "yes" if any(note.word == "frames in stalls" for note in evidence.measured.notes) else "no"


LATE = (
    Row(
        "core burnt during a latency trial",
        Burnt(
            words=f"router, its core taken for {BURNT_MS} ms of every {BURNT_EVERY_MS} ms",
            recipe="linux-ipv4",
            burnt_ms=BURNT_MS,
            period_ms=BURNT_EVERY_MS,
        ),
        "latency",
        (
            Look("doubt frames in stalls", "", in_stalls, "yes"),
            Look(
                "trials INVALID",
                "",
                trials(Verdict.INVALID),
                float(MOST_STALLED),
                (0.0, 5.0),
                "above: other disturbances of the host",
            ),
            Look(
                "worst case",
                "us",
                figure("worst_case_latency_us"),
                WORST_US,
                (1000.0, 5000.0),
                "below: a burner that begins in time and ends 1 ms early; above: the host's own stalls",
            ),
            Look(
                "worst case without stalls",
                "us",
                figure("worst_case_latency_without_stalls_us"),
                0.0,
                (0.0, UNDISTURBED_US),
                "above: stalls below the bound of the watch",
            ),
        ),
        BURNT,
    ),
)

# A device that is upgraded between two repetitions

UPGRADED = (
    Row(
        "two versions in a series",
        Device(words="router, another version in each repetition"),
        METRIC,
        (
            Look("doubt of the series", "", doubt_of(0), "mixed"),
            Look("doubt of the later version alone", "", doubt_of(1), "none"),
            Look("not comparable by", "", differing, "version"),
        ),
        whole=upgraded,
    ),
)

# A wire: each trial's connections are new to the device


def claimed(evidence: Evidence) -> float:
    """Connections that the trials which passed say they opened."""
    attempts = evidence.measured.measurements[0].attempts
    return float(sum(one.outcome.stored for one in attempts if one.outcome.verdict is Verdict.PASS))


WIRE = (
    Row(
        "new connections on a wire",
        Elsewhere(words="NAT44 on a wire that forgets after 10 s; counts what is new to it", connections=2000),
        "connection-rate",
        (Look("opened in trials that passed", "connections", claimed, told("opened_connections")),),
        {"error": SearchError(share=0.1), "most_seconds": 30.0},
    ),
)

# A device that gets worse: found before it fails altogether

RULE_EVERY, RULE_SECONDS, RULES = 500, 2.0, 60
DEGRADING = (
    Row(
        "stability of a device that gets worse",
        Degrading(
            words=f"gets a rule every {RULE_SECONDS:g} s, each of which drops every {RULE_EVERY}th frame",
            every=RULE_EVERY,
            period_seconds=RULE_SECONDS,
        ),
        "stability",
        (
            Look("trend of the loss", "", trend, "rises"),
            Look(
                "first failure",
                "s",
                figure("first_failure_seconds"),
                told("first_rule_s"),
                (1.0, 2.0),
                "phase 2 begins after phase 1; a period of 1 s is judged at its end, and the tester pauses after it",
            ),
            Look(
                "worst period",
                "%",
                figure("worst_shortfall_percent"),
                told("lost_percent"),
                (2 * 100 / RULE_EVERY, 5.0),
                "below: rules added during the last period, and after it; above: loss while others take its core",
            ),
        ),
        {**UPWARD, "throughput_rate": 20_000.0, "hours": RULES * RULE_SECONDS / 3600},
    ),
)

EVERY_ROW: tuple[Row, ...] = (
    *ROWS, *DEEP, *QUEUED, *STALLS, *INCURABLE, *COUNTING, *CONTROLS, *NEW_CONNECTIONS, *LATE, *DEGRADING, *UPGRADED,
    *WIRE, *TCP_ROWS, *POOL_ROWS, *MIXED_LOAD_ROWS,
)  # fmt: skip
