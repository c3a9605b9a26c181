# SPDX-License-Identifier: Apache-2.0
"""One-way delays and their variation: percentiles of recorded delays, and the two variations of RFC 5481.

Frames that did not come have no delay. They are counted as lost and left out: packet delay variation is of the frames
that came (RFC 5481 section 4.2), and a difference needs both frames of its pair (RFC 5481 section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from natgauge.delays import Delays, Variation

Buckets = Sequence[tuple[float, float, int]]

#: RFC 8219 section 7.2: typical latency is the median, worst case latency the 99.9th percentile.
TYPICAL = 50.0
WORST_CASE = 99.9
#: The share of the frames that are slower than the worst case.
ABOVE_WORST_CASE = 0.001
#: The width of a bucket, as a share of its delays: figures nearer to each other than this may be the same delay.
BUCKET_WIDTH = 0.01


def percentile_of(buckets: Buckets, percent: float) -> float:
    """The middle of the bucket that holds the nearest-rank percentile (RFC 2330 section 11.3); exact to 0.5 %."""
    return sum(_bucket_of(buckets, percent)) / 2


def _bucket_of(buckets: Buckets, percent: float) -> tuple[float, float]:
    """Both ends of the bucket that holds the nearest-rank percentile.

    The buckets are in rising order, with one frame at least; 0 < percent <= 100.
    """
    total = sum(frames for _, _, frames in buckets)
    if not total or not 0 < percent <= 100:
        raise ValueError(f"percentile {percent} of {total} frames: want 0 < percent <= 100 and frames")
    # Exact: 99.9 * 1000 / 100 must have rank 999, whatever floating point makes of it.
    rank = math.ceil(Fraction(str(percent)) * total / 100)
    for lower, upper, frames in buckets:
        rank -= frames
        if rank <= 0:
            return lower, upper
    raise AssertionError("a rank within the total lies in a bucket")


def percentile_within(values: Delays | Variation, percent: float) -> float:
    """A percentile of what was recorded, in seconds, never outside of the exact extremes."""
    return min(max(percentile_of(values.buckets, percent), values.minimum), values.maximum)


def ends_within(values: Delays | Variation, percent: float) -> tuple[float, float]:
    """Between which values in seconds a percentile is: the ends of its bucket, never outside of the exact extremes."""
    lower, upper = _bucket_of(values.buckets, percent)
    return max(lower, values.minimum), min(upper, values.maximum)


def typical_ends(delays: Delays) -> tuple[float, float]:
    """Between which values in seconds the median is."""
    return ends_within(delays, TYPICAL)


def delay_variation(delays: Delays) -> float:
    """Packet delay variation in s: the 99.9th percentile of the delays - their minimum (RFC 8219 section 7.3.1)."""
    return percentile_within(delays, WORST_CASE) - delays.minimum


def ends_of_variation(delays: Delays) -> tuple[float, float]:
    """Between which values in seconds the packet delay variation is: the minimum is exact, the percentile is not."""
    lower, upper = ends_within(delays, WORST_CASE)
    return lower - delays.minimum, upper - delays.minimum


def without_slowest(delays: Delays, frames: int) -> Delays | None:
    """The rest without the `count` slowest frames and largest differences up and down; None = nothing is left.

    Where it is not known which frames a stall delayed, but how many, each percentile of the others lies between that of
    what is left and that of all.
    """
    left = _trimmed(delays.buckets, frames)
    if frames == 0 or not left:
        return delays if frames == 0 else None
    variation = delays.variation
    if variation is not None:
        between = _trimmed(_trimmed(variation.buckets, frames)[::-1], frames)[::-1]
        variation = None if not between else _within(variation, between)
    kept = sum(number for _, _, number in left)
    return replace(
        delays,
        frames=kept + delays.negative,
        maximum=min(delays.maximum, left[-1][1]),
        mean=math.fsum((lower + upper) / 2 * number for lower, upper, number in left) / kept,
        buckets=left,
        variation=variation,
    )


def _trimmed(buckets: Buckets, frames: int) -> tuple[tuple[float, float, int], ...]:
    """The frames without the last `count`."""
    kept = list(buckets)
    while kept and frames:
        lower, upper, number = kept.pop()
        if number > frames:
            kept.append((lower, upper, number - frames))
            break
        frames -= number
    return tuple(kept)


def _within(variation: Variation, buckets: tuple[tuple[float, float, int], ...]) -> Variation:
    return Variation(
        pairs=sum(pairs for _, _, pairs in buckets),
        minimum=max(variation.minimum, buckets[0][0]),
        maximum=min(variation.maximum, buckets[-1][1]),
        buckets=buckets,
    )
