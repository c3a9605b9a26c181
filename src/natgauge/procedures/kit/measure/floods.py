# SPDX-License-Identifier: Apache-2.0
"""A load beside a flood: what the others keep of it, and what they lose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from natgauge.known_doubts import known
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
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.result.frame_counts import lost_of_due
from natgauge.procedures.kit.result.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.time_budget import TIME
from natgauge.words import NO_DEVICE, LimitedBy, Verdict

#: What may end the search without the flood instead of the device, with the doubt that says so.
_NO_LEAST: Final[Mapping[LimitedBy, NoteWord]] = {
    "tester": "tester limited",
    "host": "host limited",
    "ranges": "range limited",
}


def beside_flood(
    alone: Measurement, tried: Sequence[Attempt], beside: Measurement, *, wanted: float, flood: float
) -> Measurement:
    """Return the load beside a flood, with what it is of the load without, and what `tried` lost at that one.

    Args:
        alone: the search without the flood, with a value above 0.
        wanted: connections/s of the flood, >= `flood`, those that could be sent.
    """
    attempts = (*(replace(each, is_aside=True) for each in alone.attempts), *tried, *beside.attempts)
    shares = {KEPT: beside.value / alone.value}
    if (most := _upper(alone)) is not None:
        shares[KEPT_LEAST] = beside.value / most
    if (most := _upper(beside)) is not None:
        shares[KEPT_MOST] = most / alone.value
    figures = {FLOOD: flood, WITHOUT_FLOOD: alone.value, **shares}
    less = (
        f"{wanted:,.0f} connections/s of one host are more than its four tuples, or half of the tester's frames, "
        f"allow; it opened {flood:,.0f}: name more --destination-ports"
    )
    notes = [*([Note("search", less)] if flood < wanted else []), *_of_first(alone)]
    every = replace(beside, attempts=attempts, trials=verdict_counts(attempts))
    return every.adding(*notes, **figures, **_lost_at(tried))


def _upper(searched: Measurement) -> float | None:
    """The lowest load that was too high for the device; None where something else may have been the reason."""
    hidden = any(note.grade == "answer" and known(note.word).leaves == "at least" for note in searched.notes)
    return None if hidden or searched.limited_by in NO_DEVICE - {TIME} else searched.upper


def _of_first(alone: Measurement) -> Iterator[Note]:
    """Yield what is known of the load without the flood; its doubts are about the share, and not about the value."""
    by = alone.limited_by
    word = _NO_LEAST.get(by)
    if word is not None:
        text = f"the {by} ended the search, not the device, which may keep a smaller share: no least share is known"
        yield _without(Note(word, text))
    yield from map(_without, alone.notes)


def _without(note: Note) -> Note:
    grade = "interval" if note.grade == "answer" else note.grade
    return replace(note, text=f"without the flood: {note.text}", grade=grade)


def _lost_at(tried: Sequence[Attempt]) -> dict[str, float]:
    """What the others lost in the last of these trials, and how much of the flood was; empty where it was INVALID."""
    outcome = tried[-1].outcome if tried else None
    if outcome is None or outcome.verdict is Verdict.INVALID or outcome.flood is None:
        return {}
    counted = {NEW_LOST: [outcome.openings], FRAMES_LOST: outcome.phase2.values(), FLOOD_LOST: [outcome.flood]}
    return {name: 100 * lost_of_due(streams) for name, streams in counted.items()}
