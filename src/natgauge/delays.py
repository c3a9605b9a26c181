# SPDX-License-Identifier: Apache-2.0
"""One-way delays of a direction in seconds, from the engine's counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from natgauge.agreement.generated import DelayCounts, VariationCounts


@dataclass(frozen=True, slots=True)
class Variation:
    """D(i) - D(i-1) of consecutive frames that both arrived (RFC 5481 section 4.1), in seconds, signed.

    Attributes:
        pairs: number of pairs of frames, > 0.
        buckets: (lower, upper, pairs) in rising order, relative width <= 1 %; lower <= difference < upper, but for
            negative ones lower < difference <= upper.
    """

    pairs: int
    minimum: float
    maximum: float
    buckets: tuple[tuple[float, float, int], ...]

    @classmethod
    def of(cls, counts: VariationCounts | None) -> Variation | None:
        """Return the engine's counts in seconds; None when they have no pair."""
        if counts is None or not counts.pairs or counts.minimum_ns is None or counts.maximum_ns is None:
            return None
        return cls(counts.pairs, counts.minimum_ns / 1e9, counts.maximum_ns / 1e9, _in_seconds(counts.buckets))


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays of one direction, in seconds.

    Attributes:
        negative: frames with an arrival time before their sending time: the clocks are wrong.
        buckets: (lower, upper, frames) in rising order, lower <= delay < upper, relative width <= 1 %.
        variation: differences between consecutive frames; None where they were not recorded, or no two consecutive
            frames arrived (`Ability.VARIATION`).
        due_in_stalls: frames to be timed that were due during or shortly after a stall of a core of the tester or the
            device, so that the host may have caused their delays; None = not known.
    """

    frames: int
    minimum: float
    maximum: float
    mean: float
    negative: int
    buckets: tuple[tuple[float, float, int], ...] = ()
    variation: Variation | None = None
    due_in_stalls: int | None = None

    @classmethod
    def of(cls, counts: DelayCounts, most_in_stalls: int | None = None) -> Delays | None:
        """Return the engine's counts in seconds; None when no frame was timed.

        Stalls delay `most_in_stalls` frames at most; None = all that were due during a stall.
        """
        if not counts.frames or counts.minimum_ns is None or counts.maximum_ns is None or counts.sum_ns is None:
            return None
        due = counts.due_in_stalls
        return cls(
            frames=counts.frames,
            minimum=counts.minimum_ns / 1e9,
            maximum=counts.maximum_ns / 1e9,
            mean=counts.sum_ns / counts.frames / 1e9,
            negative=counts.negative,
            buckets=_in_seconds(counts.buckets),
            variation=Variation.of(counts.variation),
            due_in_stalls=due if due is None or most_in_stalls is None else min(due, most_in_stalls),
        )


def _in_seconds(buckets: Sequence[tuple[int, int, int]]) -> tuple[tuple[float, float, int], ...]:
    return tuple((lower / 1e9, upper / 1e9, frames) for lower, upper, frames in buckets)
