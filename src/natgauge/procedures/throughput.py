# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7, RFC 2544 section 26.1): highest frame rate without loss, connections standing.

One trial: phase 1 establishes all N connections at a safe rate, then phase 2 sends at r frames/s in each active
direction: the Initiator pseudorandomly chosen four tuples of the same N, the Responder the stored ones. It passes when
every frame of every direction came back. Binary search finds the highest r. In both directions r is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from natgauge.errors import UsageError
from natgauge.measurer import Measurer, TrialOutcome
from natgauge.procedures import mlr
from natgauge.procedures.preparation import (
    SAFE_SHARE,
    Preparation,
    PreparedSettings,
    UnpreparableError,
    phase2_notes,
    prepare,
)
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
from natgauge.procedures.results import Attempt, Measurement, MeasurementResult, make_result, verdict_counts
from natgauge.procedures.search import search
from natgauge.procedures.settings import RateSettings, about, one_of, refuse_unable

__all__ = ["SAFE_SHARE", "Settings", "run"]

METRIC = "throughput"
UNIT = "frames/s"
SearchWay = Literal["binary", "mlrsearch"]

#: Probes for the bracket last this share of a trial, and not less than the seconds.
PROBE_SHARE = 0.1
LEAST_PROBE_SECONDS = 0.25
#: The slowest load tried sends this many frames a direction.
LEAST_FRAMES = 100
#: Where a search without a known connection rate starts, in frames/s.
FIRST_RATE = 50_000.0


@dataclass(frozen=True, kw_only=True)
class Settings(PreparedSettings, RateSettings):
    """Settings of the throughput.

    Attributes:
        search: "binary" (plain halving) or "mlrsearch" (several goals, many short trials).
        goals: of mlrsearch: "rfc2544" (one: no loss in a trial of full length) or "ndr-pdr" (no drop rate and partial
            drop rate, 0.5 %, each decided by 21 trials' seconds of which half may be bad).
    """

    search: SearchWay = field(default="binary", metadata=about("how to search: binary or mlrsearch"))
    goals: mlr.Preset = field(default="rfc2544", metadata=about("goals of mlrsearch: rfc2544 or ndr-pdr"))

    def __post_init__(self) -> None:
        """Refuse what is out of range or contradictory."""
        super().__post_init__()
        one_of("search", self.search, get_args(SearchWay))
        one_of("goals", self.goals, get_args(mlr.Preset))
        if self.search == "binary":
            if self.goals != "rfc2544":
                raise UsageError(f"goals: {self.goals} needs the search mlrsearch")
        elif self.error.share is None:
            raise UsageError(f"error: {self.error} is a rate; mlrsearch needs a share, such as 1%")
        elif self.loss_tolerance:
            raise UsageError("loss tolerance: mlrsearch has goals instead; choose goals ndr-pdr")


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the throughput in frames/s of each active direction.

    Raises:
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    preparation = prepare(measurer, settings, observe)
    if preparation.rate == 0 and preparation.rough is not None:
        return _unprepared(preparation.rough, settings)
    runner = TrialRunner(measurer, METRIC, settings.most_repetitions, observe)
    measurements = repeat(runner, settings.repeat, lambda known: _once(runner, settings, preparation, known))
    notes = [
        *tolerance_note(settings),
        *preparation.note(),
        *phase2_notes(settings),
        *disturbed_note(measurements),
    ]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def _unprepared(rough: MeasurementResult, settings: Settings) -> MeasurementResult:
    """No connection rate, no throughput: the answer is 0 for the connection rate's reason."""
    measurement = replace(rough.measurements[0], figures=_figures(0.0, settings))
    note = "phase 1 could not establish the connections at any rate, so phase 2 was not tried"
    return make_result(METRIC, UNIT, settings.parameters(), [measurement], [note, *rough.notes])


def _once(runner: TrialRunner, settings: Settings, preparation: Preparation, known: float | None) -> Measurement:
    span = Span(
        top=top_rate(runner.measurer) / settings.active,
        floor=LEAST_FRAMES / settings.trial_seconds,
        start=FIRST_RATE if settings.stateless else preparation.rate,
    )
    # Kept here as well: the search loses its own list when phase 1 cannot be prepared.
    judged: list[Attempt] = []

    def timed_trial(rate: float, seconds: float, bounds: Bounds) -> TrialOutcome:
        outcome = runner.run(settings.plan(preparation.rate, rate, seconds), rate, bounds)
        judged.append(Attempt(rate, seconds < settings.trial_seconds, preparation.judge(outcome)))
        if preparation.hopeless:
            raise UnpreparableError(outcome)
        return judged[-1].outcome

    def trial(rate: float, short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        return timed_trial(rate, probe_seconds(settings.trial_seconds) if short else settings.trial_seconds, bounds)

    try:
        if settings.search == "mlrsearch":
            found = mlr.search(_mlr_plan(settings, span, known), timed_trial)
            return replace(found, figures={**_figures(found.value, settings), **found.figures})
        plan = search_plan(settings, span, known, short_probes=True)
        found = search(plan, trial, lambda outcome: forwarding_rate(outcome.phase2.values()))
    except UnpreparableError as failure:
        found = _given_up(failure.outcome, judged, preparation)
    return replace(found, figures=_figures(found.value, settings))


def _mlr_plan(settings: Settings, span: Span, known: float | None) -> mlr.MlrPlan:
    lowest = min(span.floor, span.top)
    return mlr.MlrPlan(
        preset=settings.goals,
        top=span.top,
        start=min(max(known or span.start, lowest), span.top),
        floor=lowest,
        width=settings.error.share or 0.0,
        trial_seconds=settings.trial_seconds,
        invalid_repeats=settings.invalid_repeats,
    )


def _given_up(outcome: TrialOutcome, attempts: list[Attempt], preparation: Preparation) -> Measurement:
    note = (
        f"phase 1 could not establish the connections, at {preparation.rate:.0f} connections/s at last, "
        f"so no rate of phase 2 could be judged: {outcome.reason}"
    )
    limit = outcome.limited_by or "device"
    return Measurement(0.0, None, limit, verdict_counts(attempts), tuple(attempts), notes=(note,))


def probe_seconds(trial_seconds: float) -> float:
    """Length of a short trial."""
    return min(trial_seconds, max(PROBE_SHARE * trial_seconds, LEAST_PROBE_SECONDS))


def _figures(value: float, settings: Settings) -> dict[str, float]:
    return {"frames_per_second_each_direction": value, "frames_per_second_total": value * settings.active}


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="highest frame rate without loss over established connections",
    source="RFC 9693 section 4.7, RFC 2544 section 26.1",
    settings=Settings,
    run=run,
)
