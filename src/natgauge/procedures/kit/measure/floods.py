# SPDX-License-Identifier: Apache-2.0
"""A load beside a flood: what the others keep of it, and what they lose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from natgauge.metrics.loads import (
    FLOOD,
    FLOOD_LOST,
    FRAMES_LOST,
    KEPT,
    KEPT_LEAST,
    KEPT_MOST,
    NEW_LOST,
    WITHOUT_FLOOD,
)
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Attempt, Measurement, verdict_counts
from natgauge.words import Verdict

if TYPE_CHECKING:
    from natgauge.agreement.generated import StreamCounts


def beside_flood(
    alone: Measurement, tried: Sequence[Attempt], beside: Measurement, *, wanted: float, flood: float
) -> Measurement:
    """Return the load beside a flood, with what it is of the load without, and what `tried` lost at that one.

    Args:
        alone: the search without the flood, with a value above 0.
        wanted: connections/s of the flood, >= `flood`, those that could be sent.
    """
    attempts = (*alone.attempts, *tried, *beside.attempts)
    shares = {
        KEPT: beside.value / alone.value,
        KEPT_LEAST: beside.value / (alone.upper or alone.value),
        KEPT_MOST: (beside.upper or beside.value) / alone.value,
    }
    figures = {FLOOD: flood, WITHOUT_FLOOD: alone.value, **shares}
    less = (
        f"{wanted:,.0f} connections/s of one host are more than its four tuples, or half of the tester's frames, "
        f"allow; it opened {flood:,.0f}: name more --destination-ports"
    )
    return replace(
        beside,
        attempts=attempts,
        trials=verdict_counts(attempts),
        figures={**beside.figures, **figures, **_lost_at(tried)},
        notes=(*beside.notes, *([Note("search", less)] if flood < wanted else [])),
    )


def lost_share_of(streams: Iterable[StreamCounts | None]) -> float:
    """Share of the offered frames that was lost; without those that nobody could send."""
    counts = [each for each in streams if each is not None]
    offered = sum(each.offered_frames for each in counts)
    lost = sum(max(0, each.offered_frames - each.received_frames) for each in counts)
    return lost / offered if offered else 0.0


def _lost_at(tried: Sequence[Attempt]) -> dict[str, float]:
    """What the others lost in the last of these trials, and how much of the flood was; empty where it was INVALID."""
    outcome = tried[-1].outcome if tried else None
    if outcome is None or outcome.verdict is Verdict.INVALID or outcome.flood is None:
        return {}
    counted = {NEW_LOST: [outcome.openings], FRAMES_LOST: outcome.phase2.values(), FLOOD_LOST: [outcome.flood]}
    return {name: 100 * lost_share_of(streams) for name, streams in counted.items()}
