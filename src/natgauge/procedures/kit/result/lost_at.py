# SPDX-License-Identifier: Apache-2.0
"""Devices of a chain at which frames were lost in the trials that decided a repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from natgauge.measurer import TrialOutcome
from natgauge.metrics.shared_figures import LOST_PERCENT_AT
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.words import Verdict


def with_lost_at(measurement: Measurement) -> Measurement:
    """Return the repetition with a figure for each device of a chain, if frames were lost in deciding trials."""
    figures = lost_at(measurement.attempts)
    return replace(measurement, figures={**measurement.figures, **figures}) if figures else measurement


def lost_at(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return the share of the lost frames that each device dropped, in percent, by the name of the figure.

    The deciding trials are those of the lowest load that the device failed. Their frames may be dropped at a place
    without a counter, so the sum may be less than 100. Two interfaces may count the same frame, so the shares are of
    the counted frames where these are more than the lost ones. Empty for a single device, and without lost frames.
    """
    outcomes = _deciding(attempts)
    dropped: Counter[str] = Counter()
    for outcome in outcomes:
        dropped.update({place.split(" ")[0]: 0 for place in outcome.readings.dropped})
        for place, frames in outcome.readings.dropped.items():
            dropped[place.split(" ")[0]] += max(0, frames)
    lost = max(sum(map(_lost, outcomes)), dropped.total())
    if len(dropped) < 2 or not lost:
        return {}
    return {f"{LOST_PERCENT_AT}{device}": 100 * frames / lost for device, frames in dropped.items()}


def _lost(outcome: TrialOutcome) -> int:
    return sum(counts.lost for counts in (outcome.phase1, *outcome.phase2.values()))


def _deciding(attempts: Sequence[Attempt]) -> list[TrialOutcome]:
    """Return the outcomes of the lowest load that the device failed with counters of drops."""
    failed = [
        attempt
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.FAIL
        and attempt.outcome.limited_by == "device"
        and attempt.outcome.readings.dropped
        and _lost(attempt.outcome)
    ]
    lowest = min((attempt.load for attempt in failed), default=0.0)
    return [attempt.outcome for attempt in failed if attempt.load == lowest]
