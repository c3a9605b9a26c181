# SPDX-License-Identifier: Apache-2.0
"""Metrics of times: delays, outages, and the work for a frame."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import TESTER_RATES, Criterion, DeclaredFigure, Metric

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
