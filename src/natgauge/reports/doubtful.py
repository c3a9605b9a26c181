# SPDX-License-Identifier: Apache-2.0
"""What doubts that could change the answer do to the words of the answer: "at least", "at most", "doubtful"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.analysis.contrast import better, bounds
from natgauge.notes import NoteWord
from natgauge.records.measurement import Result

#: Doubts of a rate that leave one of its ends certain.
_AT_LEAST: Final[frozenset[NoteWord]] = frozenset(
    {
        "tester limited", "host limited", "server limited", "link limited", "rare loss", "taking turns", "uneven cores",
        "tester on device cores", "tester unknown", "real server", "table not emptied",
    }
)  # fmt: skip
_AT_MOST: Final[frozenset[NoteWord]] = frozenset({"queues", "short trials", "bucket", "flow control"})
#: Doubts that say that the rate of the device was not what limited, and what did.
_BOTTLENECKS: Final[Mapping[NoteWord, str]] = {
    "link limited": "the link, not the device",
    "rare loss": "rare loss, not the rate",
    "loss at every rate": "a loss that no rate cures",
    "late at every rate": "a delay above the time limit for a frame, not the rate",
}


def bound(result: Result) -> str:
    """Return "at least " or "at most " where grave doubts leave one end of a rate certain; otherwise nothing."""
    grave = _grave(result)
    if not grave or not result.unit.endswith("/s") or better(result.metric) != "higher" or not result.median:
        return ""
    if grave <= _AT_LEAST:
        return "at least "
    return "at most " if grave <= _AT_MOST else ""


def mark(result: Result) -> str:
    """Return the end of a sentence with a value that grave doubts leave uncertain in both directions."""
    lower, upper = bounds(result)
    # A figure of an emulated machine has a stamp of its own, and a value between two bounds says what is known.
    stamped = result.functional or lower != upper
    return " (doubtful)" if _grave(result) and not bound(result) and not stamped else ""


def bottleneck(result: Result) -> str | None:
    """Return what a grave doubt names as the bottleneck instead of the rate of the device; None = no doubt does."""
    grave = _grave(result)
    return next((text for word, text in _BOTTLENECKS.items() if word in grave), None)


def _grave(result: Result) -> set[NoteWord]:
    """Words of the doubts that could change the answer."""
    return {doubt.word for doubt in result.doubts if doubt.grade == "answer"}
