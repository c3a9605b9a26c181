# SPDX-License-Identifier: Apache-2.0
"""Metrics of frames and queries over open connections: the highest load, and what a load loses."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import TESTER_RATES, Criterion, DeclaredFigure, Metric
from natgauge.metrics.shared_figures import CONNECTIONS_PER_SECOND, GIGABITS, OPEN_CONNECTIONS, TABLE_ENTRIES

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
        *(
            DeclaredFigure(name, answer="{loss} up to {} {unit}{range}{had}")
            for name in (WITHOUT_LOSS, WITHIN_TOLERANCE)
        ),
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

#: DeclaredFigure of the periods that were judged: those that are not INVALID.
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
