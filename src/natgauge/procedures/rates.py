# SPDX-License-Identifier: Apache-2.0
"""What all searches for a rate share: repetitions, and the search's limits from the settings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from natgauge.errors import BrokenError
from natgauge.measurer import Counts, Measurer, TrialOutcome, Verdict
from natgauge.procedures.progress import TrialRunner
from natgauge.procedures.results import Measurement
from natgauge.procedures.search import NEAR, SearchPlan
from natgauge.procedures.settings import MOST_AUTO_REPETITIONS, RateSettings, Repeat, TrialSettings
from natgauge.procedures.summary import CONFIDENCE, median_interval

#: A repetition starts this far below the answer of the one before and first steps up this much; the bounds that come
#: of it are tried as any others.
RESTART = 0.9
RESTART_STRIDE = 1.25
#: Half the width of the median's interval, as a share of the median, at which "auto" stops repeating.
NARROW = 0.025


def repeat(runner: TrialRunner, times: Repeat, once: Callable[[float | None], Measurement]) -> list[Measurement]:
    """Measure several times.

    Args:
        runner: counts the repetitions.
        times: how often; "auto" = until the interval that holds the median with 95 % is narrow, at most 20 times.
        once: one repetition; gets the answer of the one before, or None where there is none.
    """
    done: list[Measurement] = []
    most = MOST_AUTO_REPETITIONS if isinstance(times, str) else times
    while len(done) < most and not (isinstance(times, str) and well_known([one.value for one in done])):
        runner.start_repetition(len(done) + 1)
        done.append(once(done[-1].value or None if done else None))
    return done


def well_known(values: Sequence[float]) -> bool:
    """Whether the median of the population is known to `NARROW` with 95 %, which takes six values at least."""
    interval = median_interval(values)
    if interval is None or interval.coverage < CONFIDENCE:
        return False
    return (interval.upper - interval.lower) / 2 <= NARROW * abs(statistics.median(values))


def top_rate(measurer: Measurer) -> float:
    """The tester's highest rate in frames/s, all directions together.

    Raises:
        BrokenError: it is no finite number above 0.
    """
    top = measurer.highest_rate
    if not (math.isfinite(top) and top > 0):
        raise BrokenError(f"the tester's own highest rate is {top!r} frames/s; run `natgauge selftest`")
    return top


@dataclass(frozen=True, slots=True)
class Span:
    """Where to search, in frames/s of one direction.

    Attributes:
        top: the tester's highest rate.
        floor: the lowest rate worth a trial.
        start: the first rate when nothing is known.
    """

    top: float
    floor: float
    start: float


def search_plan(settings: RateSettings, span: Span, known: float | None, *, short_probes: bool) -> SearchPlan:
    """The search's limits, with start and floor moved between the ends where they lie outside.

    Args:
        settings: of the procedure.
        span: where to search.
        known: answer of an earlier repetition.
        short_probes: whether the bracket may be found with short trials.
    """
    lowest = min(span.floor, span.top)
    return SearchPlan(
        top=span.top,
        start=min(max(known * RESTART if known else span.start, lowest), span.top),
        floor=lowest,
        stride=RESTART_STRIDE if known else NEAR,
        error=settings.error,
        short_probes=short_probes,
        invalid_repeats=settings.invalid_repeats,
        loss_verifications=settings.loss_verifications,
        confirm=settings.confirm,
    )


def forwarding_rate(streams: Iterable[Counts]) -> float | None:
    """The slowest direction's rate in frames/s: what came back over the time that the sending took."""
    rates = [
        counts.received / seconds
        for counts in streams
        if (seconds := max(counts.nominal_seconds, counts.sending_seconds)) > 0
    ]
    return min(rates, default=None)


def disturbed_note(measurements: Iterable[Measurement]) -> list[str]:
    """How many trials were disturbed, if any."""
    outcomes: list[TrialOutcome] = [attempt.outcome for one in measurements for attempt in one.attempts]
    disturbed = sum(outcome.disturbed for outcome in outcomes)
    invalid = sum(outcome.verdict is Verdict.INVALID for outcome in outcomes)
    if not disturbed and not invalid:
        return []
    return [f"{disturbed} of {len(outcomes)} trials were disturbed, {invalid} were INVALID and not counted"]


def tolerance_note(settings: TrialSettings) -> list[str]:
    """RFC 9693 counts no loss; a tolerance belongs to the metric's name."""
    if settings.loss_tolerance == 0:
        return []
    return [f"up to {settings.loss_tolerance:.3%} of the frames could be lost in a passing trial"]
