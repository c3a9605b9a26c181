# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7, RFC 2544 section 26.1): highest frame rate without loss, connections standing.

One trial: phase 1 establishes all N connections at a safe rate, then phase 2 sends at r frames/s in each active
direction: the Initiator pseudorandomly chosen four tuples of the same N, the Responder the stored ones. It passes when
every frame of every direction came back. Binary search finds the highest r. In both directions r is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

from natgauge.errors import UsageError
from natgauge.measurer import TrialOutcome
from natgauge.procedures.kit import mlr_search, queues
from natgauge.procedures.kit.binary_search import search
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.expected import expected_rate
from natgauge.procedures.kit.frame_counts import forwarding_rate
from natgauge.procedures.kit.notes import tolerance_note
from natgauge.procedures.kit.phase1 import Phase1Settings, Preparation, UnpreparableError, prepare
from natgauge.procedures.kit.phase2 import Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, Span, search_plan, top_rate
from natgauge.procedures.kit.repetitions import Answered, Repetitions
from natgauge.procedures.kit.results import Attempt, Measurement, MeasurementResult, verdict_counts
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import about
from natgauge.procedures.kit.time_budget import TimeUpError, cut_off
from natgauge.procedures.kit.values import one_of

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
class Settings(Phase2Settings, Phase1Settings, SearchSettings):
    """Settings of the throughput.

    Attributes:
        search: "binary" (plain halving) or "mlrsearch" (several goals, many short trials).
        goals: of mlrsearch: "rfc2544" (one: no loss in a trial of full length) or "ndr-pdr" (no drop rate and partial
            drop rate, 0.5 %, each decided by 21 trials' seconds of which half may be bad).
    """

    search: SearchWay = field(
        default="binary",
        metadata=about("how to search: binary or mlrsearch", check=partial(one_of, allowed=get_args(SearchWay))),
    )
    goals: mlr_search.Preset = field(
        default="rfc2544",
        metadata=about(
            "goals of mlrsearch: rfc2544 or ndr-pdr", check=partial(one_of, allowed=get_args(mlr_search.Preset))
        ),
    )

    def __post_init__(self) -> None:
        """Refuse what is contradictory."""
        super().__post_init__()
        if self.search == "binary":
            if self.goals != "rfc2544":
                raise UsageError(f"goals: {self.goals} needs the search mlrsearch")
        elif self.error.share is None:
            raise UsageError(f"error: {self.error} is a rate; mlrsearch needs a share, such as 1%")
        elif self.loss_tolerance:
            raise UsageError("loss tolerance: mlrsearch has goals instead; choose goals ndr-pdr")

    def as_run(self) -> Settings:
        """The same, with a time limit for each frame where queues stand before the device."""
        return queues.limited(self, self.trial_seconds, self.error)

    def parameters(self) -> dict[str, Any]:
        """The settings, and what a load had to do to meet the goals of mlrsearch."""
        told = mlr_search.criteria(self.goals, self.trial_seconds) if self.search == "mlrsearch" else None
        return {**super().parameters(), "goal_criteria": told}


def _start(runner: TrialRunner, settings: Settings) -> _Throughput | Answered:
    preparation = prepare(runner, settings)
    if preparation.rate == 0 and preparation.rough is not None:
        return _unprepared(preparation.rough, settings)
    return _Throughput(runner, settings, preparation)


def _unprepared(rough: MeasurementResult, settings: Settings) -> Answered:
    """No connection rate, no throughput: the answer is 0 for the connection rate's reason."""
    note = "phase 1 could not establish the connections at any rate, so phase 2 was not tried"
    return Answered(replace(rough.measurements[0], figures=_figures(0.0, settings)), [note, *rough.notes])


class _Throughput(Repetitions[Settings]):
    """The highest rate in frames/s of each active direction."""

    def __init__(self, runner: TrialRunner, settings: Settings, preparation: Preparation) -> None:
        super().__init__(runner, settings)
        self.preparation = preparation
        # Kept here as well: the search loses its own list when phase 1 cannot be prepared.
        self.judged: list[Attempt] = []
        self._expected = self._from_slices()

    def _from_slices(self) -> float | None:
        """What slices tell to expect, frames/s of each direction; None where they do not have such frames."""
        settings = self.settings
        if settings.stateless or settings.foreground_share < 1:
            return None
        found = expected_rate(self.runner, settings, settings.directions)
        return None if found is None else found / settings.active

    def once(self, known: float | None) -> Measurement:
        settings = self.settings
        span = Span(
            top=top_rate(self.runner.measurer) / settings.active,
            floor=LEAST_FRAMES / settings.trial_seconds,
            start=FIRST_RATE if settings.stateless else self.preparation.rate,
            expected=self._expected,
        )
        self.judged = []
        try:
            if settings.search == "mlrsearch":
                try:
                    found = mlr_search.search(_mlr_plan(settings, span, known), self._trial)
                except TimeUpError as error:
                    found = cut_off(self.judged, UNIT, error)
                return replace(found, figures={**_figures(found.value, settings), **found.figures})
            plan = search_plan(settings, span, known, short_probes=True)
            found = search(plan, self._probe, lambda outcome: forwarding_rate(outcome.phase2.values()))
        except UnpreparableError as failure:
            found = _given_up(failure.outcome, self.judged, self.preparation)
        return replace(found, figures={**_figures(found.value, settings), **found.figures})

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[str]:
        queued = queues.queue_note(measurements, self.settings, "T", "use longer trials")
        return [*tolerance_note(self.settings), *queued]

    def phase1_notes(self) -> Sequence[str]:
        return self.preparation.notes()

    def _trial(self, rate: float, seconds: float, bounds: Bounds) -> TrialOutcome:
        outcome = self.runner.run(self.settings.plan(self.preparation.rate, rate, seconds), rate, bounds)
        judged = self.preparation.judge(outcome)
        self.judged.append(Attempt(rate, seconds < self.settings.trial_seconds, judged))
        if self.preparation.hopeless:
            raise UnpreparableError(outcome)
        return judged

    def _probe(self, rate: float, short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        seconds = self.settings.trial_seconds
        return self._trial(rate, probe_seconds(seconds) if short else seconds, bounds)


def _mlr_plan(settings: Settings, span: Span, known: float | None) -> mlr_search.MlrPlan:
    lowest = min(span.floor, span.top)
    return mlr_search.MlrPlan(
        preset=settings.goals,
        top=span.top,
        start=min(max(known or span.expected or span.start, lowest), span.top),
        floor=lowest,
        width=settings.error.share or 0.0,
        trial_seconds=settings.trial_seconds,
        invalid_repeats=settings.invalid_repeats,
        confirm=settings.confirm,
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
    return {
        "frames_per_second_each_direction": value,
        "frames_per_second_total": value * settings.active,
        queues.TRIAL_SECONDS: settings.trial_seconds,
    }


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    better="higher",
    summary="highest frame rate without loss over established connections",
    source="RFC 9693 section 4.7, RFC 2544 section 26.1",
    settings=Settings,
    start=_start,
    profiles={
        "standard": {"search": "mlrsearch", "goals": "ndr-pdr", "trial_seconds": 1.0, "repeat": 1},
        # RFC 9693 section 6: ten experiments.
        "rfc": {"repeat": 10},
    },
)
