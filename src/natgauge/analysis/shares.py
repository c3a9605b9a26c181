# SPDX-License-Identifier: Apache-2.0
"""Shares by which a rate may be too high or too low, by its doubts: they belong to each interval of the rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from natgauge.known_doubts import known
from natgauge.notes import Note, NoteWord
from natgauge.statistics.interval import ConfidenceInterval

#: No more than this share is taken for too low: nothing is known of a device that has next to no time.
_MOST: Final = 0.9


def widened(lower: float, upper: float, doubts: Iterable[Note]) -> tuple[float, float]:
    """Return the range of a rate with the shares of its doubts; both ends and the shares at least 0."""
    every = tuple(doubts)
    return lower / (1 + _share(every, "too high")), upper / (1 - min(_share(every, "too low"), _MOST))


def _share(doubts: Iterable[Note], direction: Literal["too high", "too low"]) -> float:
    """The sum of the shares of different doubts; of one that several repetitions have, the largest."""
    largest: dict[NoteWord, float] = {}
    for doubt in doubts:
        if known(doubt.word).share == direction:
            largest[doubt.word] = max(largest.get(doubt.word, 0.0), doubt.value or 0.0)
    return sum(largest.values())


def widened_interval(interval: ConfidenceInterval | None, doubts: Iterable[Note]) -> ConfidenceInterval | None:
    """Return the interval of a rate with the shares of its doubts; None for none."""
    if interval is None or interval.lower < 0:
        return interval
    lower, upper = widened(interval.lower, interval.upper, doubts)
    return replace(interval, lower=lower, upper=upper)
