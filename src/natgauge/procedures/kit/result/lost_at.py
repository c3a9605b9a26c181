# SPDX-License-Identifier: Apache-2.0
"""Devices of a chain at which frames were lost in the trials that decided a repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from natgauge.measurer import TrialOutcome, Verdict
from natgauge.procedures.kit.result.results import Attempt, Measurement

#: Name of a figure before the device's name: lost frames that the device's rings and interfaces dropped, in percent.
LOST_PERCENT_AT: Final = "lost_percent_at_"
#: A device limits a chain if at least this share of the lost frames was dropped there, in percent.
LEAST_PERCENT: Final = 50.0


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
        dropped.update({place.split(" ")[0]: 0 for place in outcome.dropped})
        for place, frames in outcome.dropped.items():
            dropped[place.split(" ")[0]] += max(0, frames)
    lost = max(sum(map(_lost, outcomes)), dropped.total())
    if len(dropped) < 2 or not lost:
        return {}
    return {f"{LOST_PERCENT_AT}{device}": 100 * frames / lost for device, frames in dropped.items()}


def limiting_device(figures: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the device that dropped most of the lost frames, and its share in percent; None = not known.

    Args:
        figures: the figures of `lost_at`, among others.
    """
    shares = {
        name.removeprefix(LOST_PERCENT_AT): share for name, share in figures.items() if name.startswith(LOST_PERCENT_AT)
    }
    device = max(shares, key=lambda name: shares[name], default=None)
    return None if device is None or shares[device] < LEAST_PERCENT else (device, shares[device])


def _lost(outcome: TrialOutcome) -> int:
    return sum(counts.lost for counts in (outcome.phase1, *outcome.phase2.values()))


def _deciding(attempts: Sequence[Attempt]) -> list[TrialOutcome]:
    """Return the outcomes of the lowest load that the device failed with counters of drops."""
    failed = [
        attempt
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.FAIL
        and attempt.outcome.limited_by == "device"
        and attempt.outcome.dropped
        and _lost(attempt.outcome)
    ]
    lowest = min((attempt.load for attempt in failed), default=0.0)
    return [attempt.outcome for attempt in failed if attempt.load == lowest]
