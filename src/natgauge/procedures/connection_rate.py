# SPDX-License-Identifier: Apache-2.0
"""Maximum connection establishment rate (RFC 9693 section 4.5).

One trial: the table is empty, the Initiator sends N frames with N different four tuples at R frames/s, and passes when
all N arrive at the Responder. N is fixed, so a trial lasts N/R. Binary search finds the highest R.

That a frame was forwarded is taken as "its connection was established" (RFC 9693 section 4.6); where the device can
tell its own count, the trial's verdict holds the two against each other.

A short trial flatters a device with queues before it: what waits in them at the end is still forwarded. Outside of the
`shared` placement every frame therefore has a time limit, which bounds the error, and the bound is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from natgauge.measurer import Measurer, TrialOutcome, TrialPlan
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Bounds, Observer, TrialRunner, ignore
from natgauge.procedures.rates import (
    Span,
    disturbed_note,
    forwarding_rate,
    repeat,
    search_plan,
    tolerance_note,
    top_rate,
)
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.search import search
from natgauge.procedures.settings import RateSettings

METRIC = "connection-rate"
UNIT = "connections/s"

#: The first trial lasts about this long: slow enough for most devices, over soon.
FIRST_TRIAL_SECONDS = 2.0
#: The slowest trial of the downward search lasts this long; a device below N in 10 minutes gets the answer 0.
LONGEST_TRIAL_SECONDS = 600.0
#: The search goes down from the tester's highest rate by this factor at least, however large N is.
LEAST_SPAN = 1024.0
#: A frame that waited longer was not forwarded in time: 1 % of the 2 s below which a trial is called short, yet many
#: times what a card ring of a few thousand frames holds.
QUEUE_TIMEOUT_SECONDS = 0.02
#: Below this, what stands in queues at the end weighs (card rings and grace against N/R).
SHORT_TRIAL_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Settings(RateSettings):
    """Settings of the connection rate; all common ones."""

    def with_queue_bound(self) -> Settings:
        """The same, with a time limit for each frame where queues stand before the device."""
        if self.placement == "shared" or self.frame_timeout_seconds is not None:
            return self
        return replace(self, frame_timeout_seconds=QUEUE_TIMEOUT_SECONDS)

    def parameters(self) -> dict[str, Any]:
        """As run: with the time limit that frames really have."""
        bounded = self.with_queue_bound()
        return {**super().parameters(), "frame_timeout_seconds": bounded.frame_timeout_seconds}


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the maximum connection establishment rate in connections/s.

    Raises:
        NatgaugeError: a trial could not be run at all.
    """
    settings = settings.with_queue_bound()
    runner = TrialRunner(measurer, METRIC, settings.most_repetitions, observe)
    measurements = repeat(runner, settings.repeat, lambda known: _once(runner, settings, known))
    notes = [*tolerance_note(settings), *_length_note(measurements, settings), *disturbed_note(measurements)]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def _once(runner: TrialRunner, settings: Settings, known: float | None) -> Measurement:
    top = top_rate(runner.measurer)
    span = Span(
        top=top,
        floor=min(settings.connections / LONGEST_TRIAL_SECONDS, top / LEAST_SPAN),
        start=settings.connections / FIRST_TRIAL_SECONDS,
    )

    def trial(rate: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        return runner.run(trial_plan(settings, rate), rate, bounds)

    found = search(
        search_plan(settings, span, known, short_probes=False), trial, lambda outcome: forwarding_rate([outcome.phase1])
    )
    seconds = {"trial_seconds": settings.connections / found.value} if found.value else {}
    return replace(found, figures=seconds)


def trial_plan(settings: Settings, rate: float) -> TrialPlan:
    """The trial that tries this rate."""
    return TrialPlan(
        connections=settings.connections,
        phase1_rate=rate,
        order=settings.order,
        frame_timeout_seconds=settings.frame_timeout_seconds,
        loss_tolerance=settings.loss_tolerance,
    )


def _length_note(measurements: list[Measurement], settings: Settings) -> list[str]:
    lengths = [one.figures["trial_seconds"] for one in measurements if "trial_seconds" in one.figures]
    if not lengths or min(lengths) >= SHORT_TRIAL_SECONDS or settings.frame_timeout_seconds is None:
        return []
    if settings.placement == "shared":
        return []
    shortest = min(lengths)
    most = settings.frame_timeout_seconds / shortest
    note = (
        f"a trial lasted N/R = {shortest:.3f} s only; frames may wait up to {settings.frame_timeout_seconds:g} s in "
        f"queues before the device, so the rate may be too high by up to {most:.1%}; use more connections"
    )
    return [note]


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="highest rate at which every new connection is established",
    source="RFC 9693 section 4.5",
    settings=Settings,
    run=run,
)
