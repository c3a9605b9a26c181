# SPDX-License-Identifier: Apache-2.0
"""Summary of repetitions: median, percentiles, spread, and the confidence interval of the median."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from natgauge.notes import Note
from natgauge.statistics.interval import ConfidenceInterval
from natgauge.statistics.order_statistics import median_interval, percentile

#: Below this many values the nearest-rank 1st and 99th percentiles are the minimum and the maximum.
VALUES_FOR_PERCENTILES = 100


@dataclass(frozen=True, slots=True)
class Summary:
    """Repetitions of one measurement (RFC 9693 section 6), all in the measurement's unit.

    Attributes:
        median: middle value, of an even number the mean of the middle two (RFC 2330 section 11.3).
        p1: 1st percentile, nearest rank.
        p99: 99th percentile, nearest rank.
        minimum: smallest value.
        maximum: largest value.
        mean: arithmetic mean.
        standard_deviation: of the sample (n - 1); None for a single value.
        repetitions: the values in the order they were measured.
        interval: distribution-free confidence interval of the median; None for a single value.
        notes: what a reader must know to read the figures rightly.
    """

    median: float
    p1: float
    p99: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float | None
    repetitions: tuple[float, ...]
    interval: ConfidenceInterval | None
    notes: tuple[Note, ...] = ()


def summarize(values: Sequence[float]) -> Summary:
    """Summarize one or more repetitions.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    if not values:
        raise ValueError("no values to summarize")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"values must be finite, not {list(values)}")
    return Summary(
        median=statistics.median(values),
        p1=percentile(values, 1),
        p99=percentile(values, 99),
        minimum=min(values),
        maximum=max(values),
        mean=statistics.fmean(values),
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        repetitions=tuple(values),
        interval=median_interval(values),
        notes=tuple(_notes(len(values))),
    )


def _notes(number: int) -> list[Note]:
    notes = []
    plural = "repetition" if number == 1 else "repetitions"
    if number < VALUES_FOR_PERCENTILES:
        text = f"with {number} {plural} the 1st and 99th percentiles are the minimum and the maximum"
        notes.append(Note("repetitions", text))
    if number == 1:
        text = "a single repetition says nothing about spread; RFC 9693 section 6 wants several"
        notes.append(Note("repetitions", text))
    return notes
