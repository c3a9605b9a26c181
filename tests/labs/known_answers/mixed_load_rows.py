# SPDX-License-Identifier: Apache-2.0
"""Rows of the known-answer table for loads of several kinds: new connections, open ones and frames at once.

A rule before the way out sees what the Initiator sends: its frames, and the first frame of each new connection.
"""

from __future__ import annotations

from pathlib import Path

from tests.labs.known_answers.devices import Device, Ruled
from tests.labs.known_answers.rows import DEVICE_STALL, ROUGH, Evidence, Look, Row, value

from natgauge.inputs.question import DeviceOptions
from natgauge.trials import LAG_SHARE

#: 0.1 new connections/s, a frame up and one down a second.
SUBSCRIBER = Path(__file__).with_name("subscriber.toml")
#: One new connection/s instead.
OPENING_SUBSCRIBER = SUBSCRIBER.with_name("opening_subscriber.toml")
#: Ten frames each way, so that few of them are enough.
SENDING_SUBSCRIBER = SUBSCRIBER.with_name("sending_subscriber.toml")
SECONDS, LIMIT, BUCKET = 0.25, 4000, 200
OPENED, TOKENS, SHARE = 400, 20, 0.02
#: New connections/s of the others, and of the host that floods.
NEW, FLOOD = 100, 900
#: Time-out of the gateway in s, and the most entries of its table.
FORGETS, TABLE = 30, 3000


def bottleneck(name: str) -> Look:
    """What ended it."""

    def limited(evidence: Evidence) -> str:
        return evidence.limited_by

    return Look("bottleneck", "", limited, name)


def highest(unit: str, truth: float) -> Look:
    """The highest load, searched roughly."""
    assert ROUGH.share is not None
    below = truth * (ROUGH.share + DEVICE_STALL / SECONDS)
    reason = (
        f"below: error of the search ({ROUGH}), tokens wasted in 5 ms; above: a schedule kept to 0.1 %, one opening"
    )
    return Look("", unit, value, truth, (below, truth * LAG_SHARE + 1), reason)


def kept(truth: float) -> Look:
    """What the others keep beside a flood."""
    assert ROUGH.share is not None
    margin = 2 * (ROUGH.share + DEVICE_STALL / SECONDS)
    reason = "errors of both searches, tokens wasted in 5 ms"

    def share(evidence: Evidence) -> float:
        return evidence.measured.figures["kept_share"].median

    return Look("kept", "", share, truth, (margin, margin), reason)


def _small_table(case: str, words: str, **given: float) -> Row:
    """A device whose table is smaller than what a first connection rate opens elsewhere."""
    return Row(
        f"subscribers of a small table{case}",
        Device(
            words=f"holds {TABLE:,} connections, and forgets them after {FORGETS} s{words}",
            connections=20_000,
            wishes=DeviceOptions(table_size=TABLE, udp_timeout=FORGETS),
        ),
        "subscribers",
        (highest("subscribers", TABLE / (0.1 * FORGETS)), bottleneck("table")),
        {"subscriber": str(SUBSCRIBER), "trial_seconds": SECONDS, "error": ROUGH, "confirm": False, **given},
    )


MIXED_LOAD_ROWS = (
    Row(
        "mixed load of few openings",
        Ruled(
            words=f"drops openings beyond {OPENED:,}/s, bucket of {TOKENS:,}",
            # Until an answer came, a later frame is `ct state new`, too.
            rules=f"ct mark 0 ct mark set 1 limit rate over {OPENED}/second burst {TOKENS} packets drop",
            connections=30,
        ),
        "mixed-load",
        (highest("frames/s", (OPENED + TOKENS / SECONDS) / (2 * SHARE)), bottleneck("new connections")),
        {"connection_rate": 600.0, "new_share": SHARE, "trial_seconds": SECONDS, "error": ROUGH, "confirm": False},
    ),
    Row(
        "mixed load beside a flood with a limit for each host",
        Ruled(
            words=f"drops openings of a host beyond {OPENED:,}/s, bucket of {TOKENS:,}",
            sets="set hosts { type ipv4_addr; size 65535; flags dynamic; }",
            rules=(
                "ct mark 0 ct mark set 1 update @hosts "
                f"{{ ct original ip saddr limit rate over {OPENED}/second burst {TOKENS} packets }} drop"
            ),
            connections=100,
        ),
        "mixed-load",
        (highest("frames/s", (OPENED + TOKENS / SECONDS) / (2 * SHARE)), kept(1.0)),
        {
            "connection_rate": 600.0,
            "new_share": SHARE,
            "flood_share": 0.9,
            "trial_seconds": SECONDS,
            "error": ROUGH,
            "confirm": False,
        },
    ),
    Row(
        "mixed load beside a flood with a limit for all",
        Ruled(
            words=f"drops beyond {LIMIT:,} frames/s up, bucket of {BUCKET:,}",
            rules=f"limit rate over {LIMIT}/second burst {BUCKET} packets drop",
            connections=100,
        ),
        "mixed-load",
        (
            highest("frames/s", LIMIT + BUCKET / SECONDS - NEW - FLOOD),
            kept((LIMIT + BUCKET / SECONDS - NEW - FLOOD) / (LIMIT + BUCKET / SECONDS - NEW)),
        ),
        {
            "connection_rate": 1000.0,
            "new_rate": float(NEW),
            "flood_share": FLOOD / (NEW + FLOOD),
            "trial_seconds": SECONDS,
            "error": ROUGH,
            "confirm": False,
        },
    ),
    Row(
        "subscribers of few frames",
        Ruled(
            words=f"drops beyond {LIMIT:,} frames/s up, bucket of {BUCKET:,}",
            rules=f"limit rate over {LIMIT}/second burst {BUCKET} packets drop",
            connections=800,
            # So that a subscriber has one entry, and phase 1 few.
            wishes=DeviceOptions(udp_timeout=10),
        ),
        "subscribers",
        # A subscriber sends 10 frames and 0.1 first frames a second.
        (highest("subscribers", (LIMIT + BUCKET / SECONDS) / 10.1), bottleneck("frames")),
        {
            "connection_rate": 6000.0,
            "subscriber": str(SENDING_SUBSCRIBER),
            "trial_seconds": SECONDS,
            "error": ROUGH,
            "confirm": False,
        },
    ),
    Row(
        "subscribers of few openings",
        Ruled(
            words=f"drops openings beyond {OPENED:,}/s, bucket of {TOKENS:,}",
            rules=f"ct mark 0 ct mark set 1 limit rate over {OPENED}/second burst {TOKENS} packets drop",
            connections=20_000,
            # So that there are four tuples for the entries of all.
            wishes=DeviceOptions(udp_timeout=FORGETS),
        ),
        "subscribers",
        (highest("subscribers", OPENED + TOKENS / SECONDS), bottleneck("new connections")),
        {
            "connection_rate": 600.0,
            "subscriber": str(OPENING_SUBSCRIBER),
            "trial_seconds": SECONDS,
            "error": ROUGH,
            "confirm": False,
        },
    ),
    _small_table("", "", connection_rate=20_000.0),
    _small_table(", by bare defaults", ": no rate of phase 1 is given"),
)
