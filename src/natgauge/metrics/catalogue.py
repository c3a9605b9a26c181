# SPDX-License-Identifier: Apache-2.0
"""The metrics that natgauge has, one declaration each: of loads, of connections, and of times.

- Frames and queries over open connections: the highest load, and what a load loses. A multiple loss ratio search
  (MLRsearch) has goals, with pass criteria in words.
- Connections: how fast a device opens, uses, closes and forgets them, and how many it holds.
- Times: delays, outages, and the work for a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.figure_text import given
from natgauge.metrics.metric import (
    CONNECTIONS_PER_SECOND,
    GIGABITS,
    OPEN_CONNECTIONS,
    TABLE_ENTRIES,
    TESTER_RATES,
    Criterion,
    DeclaredFigure,
    Metric,
)

Preset = Literal["rfc2544", "ndr-pdr"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of a search (RFC 9971, "Search Goal"); durations in multiples of a trial's seconds.

    Attributes:
        name: prefix of the goal's figures.
        loss_ratio: a trial is good when at most this share of its frames is lost; 0 <= share < 1.
        exceed_ratio: share of the durations that may be bad, 0 <= share < 1.
        initial: shortest trial.
        sum: sum of the durations of the trials that decide a load.
    """

    name: str
    loss_ratio: float
    exceed_ratio: float
    initial: float
    sum: float


#: RFC 2544 section 26.1 as one goal, shortened only on the way; and CSIT's no drop and partial drop rates.
PRESETS: Final[Mapping[Preset, tuple[Goal, ...]]] = {
    "rfc2544": (Goal("rfc2544", 0.0, 0.0, 1 / 60, 1.0),),
    "ndr-pdr": (Goal("ndr", 0.0, 0.5, 1.0, 21.0), Goal("pdr", 0.005, 0.5, 1.0, 21.0)),
}


def criteria(preset: Preset, trial_seconds: float) -> str:
    """Return the pass criterion of each goal, in one sentence."""
    return "; ".join(criterion(goal, trial_seconds) for goal in PRESETS[preset])


def criterion(goal: Goal, trial_seconds: float) -> str:
    """Return the pass criterion of a goal."""
    lost = f"no more than {given(goal.loss_ratio)} of the frames" if goal.loss_ratio else "no frame"
    if goal.sum == 1 and not goal.exceed_ratio:
        return f"{goal.name}: {lost} lost in a trial of {trial_seconds:g} s"
    good = f"at least {given(1 - goal.exceed_ratio)} of {goal.sum:g} trials of {trial_seconds:g} s"
    return f"{goal.name}: {lost} lost in {good}"


#: The load without the flood; with it, as a share of that, and what the bounds of both searches allow of this share.
WITHOUT_FLOOD: Final = "load_without_flood"
KEPT: Final = "kept_share"
KEPT_LEAST: Final = "kept_least_share"
KEPT_MOST: Final = "kept_most_share"
#: Connections/s of the flood. At the load that passes without it: what was lost of it, and of the others.
FLOOD: Final = "flood_per_second"
FLOOD_LOST: Final = "flood_lost_percent"
NEW_LOST: Final = "new_lost_beside_flood_percent"
FRAMES_LOST: Final = "frames_lost_beside_flood_percent"

_FLOODED: Final = (
    DeclaredFigure(
        FLOOD, "flood of one host", "connections/s", answer="beside a host that opens {} connections/s{range}"
    ),
    DeclaredFigure(WITHOUT_FLOOD, "load without the flood"),
    DeclaredFigure(KEPT, "kept beside the flood", "of 1", answer="{}{range} of the load without it"),
    DeclaredFigure(KEPT_LEAST, "kept at least", "of 1"),
    DeclaredFigure(KEPT_MOST, "kept at most", "of 1"),
    DeclaredFigure(NEW_LOST, "new connections lost at that load", "%"),
    DeclaredFigure(FRAMES_LOST, "frames lost at that load", "%"),
    DeclaredFigure(FLOOD_LOST, "flood lost at that load", "%"),
)

THROUGHPUT: Final = Metric(
    name="throughput",
    unit="frames/s",
    summary="highest frame rate without frame loss, over established connections",
    title="Frames per second without loss",
    source="RFC 9693 section 4.7, RFC 2544 section 26.1",
    term="Throughput",
    better="higher",
    does="forwards {value}",
    criterion=Criterion(strict=" without loss"),
    best=("forwards most frames", "forwards more frames"),
    resource="frames",
    is_bounded=True,
    counts="frames",
    turn=1,
)

#: Highest rate, in frames/s of each direction, from which on down trials lost nothing, or no more than was tolerated.
WITHOUT_LOSS: Final = "highest_rate_without_loss"
WITHIN_TOLERANCE: Final = "highest_rate_within_tolerance"

FRAME_LOSS: Final = Metric(
    name="frame-loss",
    unit="%",
    summary="frame loss rate by load, from overload down to no loss",
    title="Frame loss by load",
    source="RFC 2544 section 26.3",
    term="Frame loss rate",
    better="lower",
    does="loses {value} of the frames at the highest load",
    criterion=Criterion(tolerant=""),
    best=("loses fewest frames at the highest load", "loses fewer frames at the highest load"),
    figures=(
        DeclaredFigure(WITHOUT_LOSS, answer="{loss} up to {} {unit}{range}{had}"),
        DeclaredFigure(WITHIN_TOLERANCE, answer="{loss} up to {} {unit}{range}{had}"),
    ),
    moved_by=TESTER_RATES,
    measures_loss=True,
    draws_loss=True,
    follows_host=False,
)

BACK_TO_BACK: Final = Metric(
    name="back-to-back",
    unit="frames",
    summary="longest burst at full speed without frame loss, and the buffer size that follows from it",
    title="Longest burst without loss",
    source="RFC 9004",
    better="higher",
    does="forwards a burst of {value}",
    criterion=Criterion(strict=" without loss"),
    best=("forwards the longest burst", "forwards a longer burst"),
    moved_by=TESTER_RATES,
)

RESOLUTION_RATE: Final = Metric(
    name="resolution-rate",
    unit="queries/s",
    summary="highest rate at which DNS queries receive correct answers in time",
    title="DNS queries per second",
    source="draft-lencse-v6ops-transition-scalability-05 section 5",
    better="higher",
    does="passes {value}",
    criterion=Criterion(strict=", all of them answered{within}", tolerant=", at least {kept} of them answered{within}"),
    best=("passes most DNS queries", "passes more DNS queries"),
    # The draft's: 16 threads of 100 source ports each.
    traffic={"destination_ports": "53", "connections": 1600},
    is_bounded=True,
    counts="queries",
)

#: New connections for each frame of a mixed load, where the user says nothing.
NEW_SHARE: Final = 0.01

MIXED_LOAD: Final = Metric(
    name="mixed-load",
    unit="frames/s",
    summary="highest frame rate without loss while connections are opened and leave",
    source="RFC 9693 section 4.7, with connections that come and go",
    better="higher",
    does="forwards {value} while connections are opened and leave",
    does_where={("new_rate", 0): "forwards {value} while no connection is opened"},
    criterion=Criterion(strict=" without losing a frame or a new connection"),
    best=(
        "forwards most frames while connections are opened and leave",
        "forwards more frames while connections are opened and leave",
    ),
    figures=(
        DeclaredFigure(
            CONNECTIONS_PER_SECOND, "new connections", "connections/s", answer="{} new connections/s{range}"
        ),
        DeclaredFigure(OPEN_CONNECTIONS, "open connections", "connections", answer="{} open connections{range}"),
        DeclaredFigure(TABLE_ENTRIES, "table entries of the subscribers", "entries", answer="{} table entries{range}"),
        DeclaredFigure(GIGABITS, "IP packets of both directions", "Gbit/s"),
        *_FLOODED,
    ),
    is_bounded=True,
    counts="load",
)

#: The parameter with what one subscriber takes: frames/s "up" and "down", and "new" connections/s.
SUBSCRIBER_RATES: Final = "subscriber_rates"
#: The parameter with the seconds for which the device keeps a connection that left, which is silent or closed.
FORGETS: Final = "forgets_after_seconds"

SUBSCRIBERS: Final = Metric(
    name="subscribers",
    unit="subscribers",
    summary="highest number of subscribers of one profile: new connections, open ones and frames at once",
    source="RFC 9693 sections 4.5 and 4.7, combined by natgauge",
    better="higher",
    does="carries {value}",
    criterion=Criterion(strict=" without losing a frame or a new connection"),
    best=("carries most subscribers", "carries more subscribers"),
    figures=_FLOODED,
    traffic={"connections": 1_000_000},
    counts="subscriber",
)

#: Figure of the periods that were judged: those that are not INVALID.
JUDGED: Final = "judged_periods"

STABILITY: Final = Metric(
    name="stability",
    unit="%",
    summary="share of failed periods in hours of constant load",
    title="Failures under constant load",
    source="RFC 9693 section 4.7, its trial repeated for hours",
    better="lower",
    does="fails in {value} of the judged periods at constant load",
    best=("fails in fewest periods at constant load", "fails in fewer periods at constant load"),
    figures=(
        DeclaredFigure("periods", "periods", is_counted=True),
        DeclaredFigure(JUDGED, "judged periods", answer="{judged} of {periods} periods judged", is_counted=True),
        DeclaredFigure("failed_periods", "failed periods", is_counted=True),
        DeclaredFigure("first_failure_seconds", "end of the first failed period", "s"),
        DeclaredFigure("worst_shortfall_percent", "shortfall of the worst period", "%"),
        DeclaredFigure("lost_percent_p", "p of a trend of the loss"),
    ),
    sampled_between=("failed_percent_lowest", "failed_percent_highest"),
    measures_loss=True,
    follows_host=False,
)


#: Connections that drawn frames open: as many as are expected, and as many as the device counted.
CONNECTIONS_EXPECTED: Final = "connections_expected"
CONNECTIONS_COUNTED: Final = "connections_counted"

CONNECTION_RATE: Final = Metric(
    name="connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established",
    title="New connections per second",
    source="RFC 9693 section 4.5",
    term="Maximum connection establishment rate",
    better="higher",
    does="opens {value}",
    does_where={("order", "with-replacement"): "forwards {value}, which open {opened} connections/s"},
    does_stateless="forwards the first frames of {value}",
    best=("opens most connections", "opens more connections"),
    resource="new connections",
    phase=1,
    is_bounded=True,
    counts="opening",
    sends_data=False,
    shows_memory=True,
    turn=0,
)

VALIDATED_CONNECTION_RATE: Final = Metric(
    name="validated-connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established and then forwards replies",
    title="New connections per second, each with a reply",
    source="RFC 9693 section 4.6",
    better="higher",
    does="opens {value}, each of which then forwards a reply",
    does_where={
        ("order", "with-replacement"): "forwards {value}, which open {opened} connections/s that then forward replies"
    },
    does_stateless="forwards the first frames of {value}, and a reply of each",
    best=("opens most validated connections", "opens more validated connections"),
    figures=(DeclaredFigure("validation_rate", is_tried=True), DeclaredFigure("alpha", is_tried=True)),
    resource="new connections",
    phase=1,
    is_bounded=True,
    # Its rate is that of phase 1.
    counts="opening",
    shows_memory=True,
)

#: Entries that closed connections fill in the device's table where this rate lasts, by the device's own time-out.
LINGERING_ENTRIES: Final = "lingering_entries"

TRANSACTION_RATE: Final = Metric(
    name="transaction-rate",
    unit="transactions/s",
    summary="highest rate at which TCP connections are opened, used once and closed",
    title="TCP transactions per second",
    source="RFC 9693 section 4.5, applied to TCP",
    better="higher",
    does="completes {value}",
    best=("completes most transactions", "completes more transactions"),
    figures=(DeclaredFigure(LINGERING_ENTRIES, "entries of closed connections", "connections"),),
    traffic={"transport": "tcp"},
    phase=1,
    is_bounded=True,
    counts="transaction",
    sends_data=False,
)

#: Connections that the device's table has after those were closed.
ENTRIES_LEFT: Final = "entries_left"

TEAR_DOWN_RATE: Final = Metric(
    name="tear-down-rate",
    unit="connections/s",
    summary="rate at which connections are torn down when the device's table is cleared, or by FINs or resets of TCP",
    title="Connections closed per second",
    source="RFC 9693 section 4.8",
    term="Connection tear-down rate",
    better="higher",
    does="tears down {value}",
    best=("tears down connections fastest", "tears down connections faster"),
    figures=(
        DeclaredFigure("full_seconds", "emptying a full table", "s", answer="emptying a full table takes {} s{range}"),
        DeclaredFigure("empty_seconds", "emptying an empty table", "s", answer="an empty one {} s{range}"),
        DeclaredFigure("difference_seconds", "deletion of the connections", "s"),
        DeclaredFigure(ENTRIES_LEFT, "entries left after closing", "connections"),
    ),
    sampled_between=("rate_lowest", "rate_highest"),
    phase=1,
    counts="closing",
    sends_data=False,
    without_frames=True,
    shows_memory=True,
)

EXPIRY: Final = Metric(
    name="expiry",
    unit="connections/s",
    summary="rate at which connections expire",
    title="Connections that expire per second",
    source="RFC 9693 section 4.8 (its command replaced by the device's time-outs)",
    does="lets {value} expire",
    sampled_between=("rate_lowest", "rate_highest"),
    phase=1,
    sends_data=False,
    without_frames=True,
    follows_host=False,
)

ENUMERATION_ORDERS: Final = Metric(
    name="enumeration-orders",
    unit="%",
    summary="connections created and connection rate, for each enumeration order of phase 1",
    title="New connections by enumeration order",
    source="RFC 9693 section 4.4",
    does="creates connections with {value} of the frames whose four tuples are drawn with replacement",
    moved_by=frozenset({"connection_rate_timeout_seconds"}),
    sends_data=False,
    follows_host=False,
)

TABLE_CAPACITY: Final = Metric(
    name="table-capacity",
    unit="connections",
    summary="highest number of connections that the device can hold",
    title="Connections held at once",
    source="RFC 9693 section 4.9",
    term="Connection tracking table capacity",
    better="higher",
    does="keeps {value}",
    best=("keeps most connections", "keeps more connections"),
    figures=(
        DeclaredFigure("first_connections", "C0, first connections"),
        DeclaredFigure("first_rate", "R0, rate of C0", "connections/s"),
        DeclaredFigure("exponential_safe", "CS, safe connections"),
        DeclaredFigure("exponential_safe_rate", "RS, rate of CS", "connections/s"),
        DeclaredFigure("exponential_unsafe", "CT, unsafe connections"),
    ),
    resource="open connections",
    shows_memory=True,
    follows_host=False,
)


#: Figure with the number of frames of a direction whose delays are the value; of two directions the fewer.
TIMED_FRAMES: Final = "timed_frames"
#: The slowest one of fewer frames is their 99.9th percentile, and that of more frames may be far above it.
FEW_FRAMES: Final = 1000
#: Frames of a direction whose delays are enough for RFC 8219 section 7.2 where only tagged frames are timed.
RFC_TAGS: Final = 500
#: Of fewer frames the median and the range, too, may be those of a moment.
TOO_FEW_FRAMES: Final = 100

LATENCY: Final = Metric(
    name="latency",
    unit="us",
    summary="typical and worst case latency, at the throughput and below it",
    title="Delay of a frame",
    source="RFC 8219 section 7.2",
    term="Latency",
    better="lower",
    does="delays a frame by {value} (median)",
    best=("delays frames least", "delays frames less"),
    figures=(
        DeclaredFigure(
            "worst_case_latency_us",
            answer="1 frame of 1,000 takes longer than {} us{range}",
            answer_of_few="the slowest frame, of {frames}, took {} us{range}",
        ),
    ),
    value_figure="typical_latency_us",
    sampled_between=("typical_latency_lowest_us", "typical_latency_highest_us"),
)

FIRST_PACKET_DELAY: Final = Metric(
    name="first-packet-delay",
    unit="us",
    summary="delay of the frame that opens a connection, next to that of later frames",
    source="RFC 8219 section 7.2, applied to the frames of phase 1",
    better="lower",
    does="delays the first frame of a connection by {value} (median)",
    does_where={
        ("transport", "tcp"): "takes {value} (median) for the three passages from SYN to ACK that open a connection"
    },
    best=("delays first frames least", "delays first frames less"),
    figures=(
        DeclaredFigure(
            "first_worst_case_us",
            answer="1 {first} of 1,000 takes longer than {} us{range}",
            answer_of_few="the slowest {first}, of {frames}, took {} us{range}",
        ),
        DeclaredFigure(
            "later_typical_us", "median delay of later frames", "us", answer="later frames take {} us{range} (median)"
        ),
    ),
    value_figure="first_typical_us",
    sampled_between=("first_typical_lowest_us", "first_typical_highest_us"),
    # Its loads are shares of the connection rate. But a campaign hands on the rate that it measured in the round, which
    # no other result has, so that no delay could be compared with any other.
    moved_by=frozenset(),
    series_rates="connections/s; later frames: the Initiator's alone, as many a second",
)

PDV: Final = Metric(
    name="pdv",
    unit="us",
    summary="packet delay variation at the throughput",
    title="Packet delay variation",
    source="RFC 8219 section 7.3.1, RFC 5481 section 4.2",
    better="lower",
    does="varies the delay of frames by {value}",
    best=("varies delays least", "varies delays less"),
    value_figure="pdv_us",
    sampled_between=("pdv_lowest_us", "pdv_highest_us"),
)

IPDV: Final = Metric(
    name="ipdv",
    unit="us",
    summary="inter-packet delay variation at the throughput",
    title="Inter-packet delay variation",
    source="RFC 8219 section 7.3.2, RFC 5481 section 4.1",
    better="lower",
    does="varies the delay from frame to frame by {value}",
    best=("varies delays from frame to frame least", "varies delays from frame to frame less"),
    value_figure="ipdv_spread_us",
)

RESET: Final = Metric(
    name="reset",
    unit="ms",
    summary="forwarding outage after a restart of the device, in each direction",
    title="Outage after a restart",
    source="RFC 6201, RFC 8219 section 7.7",
    better="lower",
    does="forwards nothing for {value} after a restart{later}",
    does_where={("reset_kind", "failover"): "forwards nothing for {value} after a failover{later}"},
    best=("forwards soonest after a restart", "forwards sooner after a restart"),
    figures=(
        DeclaredFigure(
            "surviving_percent", "connections that survive", "%", answer="{} %{range} of the connections survive"
        ),
    ),
)

SYSTEM_RECOVERY: Final = Metric(
    name="system-recovery",
    unit="ms",
    summary="duration of frame loss after an overload",
    title="Recovery after an overload",
    source="RFC 2544 section 26.5",
    better="lower",
    does="loses frames for {value} after an overload",
    best=("recovers soonest from an overload", "recovers sooner from an overload"),
    sampled_between=("recovery_ms_lowest", "recovery_ms_highest"),
    moved_by=TESTER_RATES,
)

#: What the figures of a quantity are called behind its name.
RATIO, LOW, HIGH = "ratio_to_forwarding", "ratio_low", "ratio_high"
OWN, FORWARDING, TESTER = "ns", "forwarding_ns", "tester_ns"

COST: Final = Metric(
    name="cost",
    unit="x forwarding",
    summary="CPU time per frame, compared with plain forwarding",
    title="Work for a frame",
    source="RFC 9693 sections 4.4, 4.7 (trials replaced by slices next to plain forwarding)",
    better="lower",
    does="takes {number} times the CPU time of plain forwarding for a frame",
    criterion=Criterion(tolerant=""),
    best=("takes least CPU time for a frame", "takes less CPU time for a frame"),
    follows_host=False,
)
