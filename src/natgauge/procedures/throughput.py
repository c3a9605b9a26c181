# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7, RFC 2544 section 26.1): highest frame rate without loss, connections standing.

One trial: phase 1 establishes all N connections at a safe rate, then phase 2 sends at r frames/s in each active
direction: the Initiator pseudorandomly chosen four tuples of the same N, the Responder the stored ones. It passes when
every frame of every direction came back. Binary search finds the highest r. In both directions r is the same.

Phase 1 must be safely below the device's connection rate (RFC 9693 section 4.2), which is taken from an earlier result
or measured roughly first. A trial whose phase 1 fails says nothing about r: it is not counted, and phase 1 gets slower.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from natgauge.procedures import connection_rate
from natgauge.procedures.measurer import Measurer, Phase2Plan, TrialOutcome, TrialPlan, Verdict
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
from natgauge.procedures.results import Attempt, Measurement, MeasurementResult, make_result
from natgauge.procedures.search import FULL, search
from natgauge.procedures.settings import RateSettings, SearchError, about, in_range, one_of, positive

METRIC = "throughput"
UNIT = "frames/s"
Directions = Literal["both", "up", "down"]

#: Phase 1 runs at this share of the connection rate: twice as slow as the device can.
SAFE_SHARE = 0.5
#: Error of the connection rate when it is only measured to find a safe phase 1; small beside the safe share.
ROUGH_ERROR = SearchError(share=0.1)
#: After a failed phase 1 the next one is this much slower, this often at most.
SLOWER = 2.0
MOST_FAILED_PREPARATIONS = 4
#: RFC 2544 section 24.
RFC_TRIAL_SECONDS = 60.0
LONGEST_TRIAL_SECONDS = 3600.0
#: Probes for the bracket last this share of a trial, and not less than the seconds.
PROBE_SHARE = 0.1
LEAST_PROBE_SECONDS = 0.25
#: The slowest load tried sends this many frames a direction.
LEAST_FRAMES = 100


@dataclass(frozen=True, kw_only=True)
class Settings(RateSettings):
    """Settings of the throughput.

    Attributes:
        trial_seconds: nominal length of phase 2, 0.01 to 3600; RFC 2544 section 24 wants 60.
        directions: who sends in phase 2: both, up (Initiator only) or down (Responder only).
        connection_rate: the device's maximum connection establishment rate in connections/s; None = measured first.
    """

    trial_seconds: float = field(default=2.0, metadata=about("length of phase 2", "s"))
    directions: Directions = field(default="both", metadata=about("who sends in phase 2: both, up or down"))
    connection_rate: float | None = field(
        default=None, metadata=about("connection rate of the device, measured first when not given", UNIT)
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        in_range("trial seconds", self.trial_seconds, 0.01, LONGEST_TRIAL_SECONDS, "s")
        one_of("directions", self.directions, get_args(Directions))
        if self.connection_rate is not None:
            positive("connection rate", self.connection_rate, "connections/s")

    @property
    def active(self) -> int:
        """Directions that send."""
        return 2 if self.directions == "both" else 1


class _UnpreparableError(Exception):
    """Phase 1 cannot establish the connections."""

    def __init__(self, outcome: TrialOutcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(slots=True)
class _Preparation:
    """The rate of phase 1, how often it failed in a row, and whether a slower one would help."""

    rate: float
    failures: int = 0
    hopeless: bool = False

    def judge(self, outcome: TrialOutcome) -> TrialOutcome:
        """Take a failed phase 1 out of the search's count, and slow down for the next trial."""
        if outcome.verdict is not Verdict.FAIL or outcome.failed_phase != 1:
            self.failures = 0
            return outcome
        self.failures += 1
        self.hopeless = self.failures > MOST_FAILED_PREPARATIONS or outcome.limited_by in FULL
        if not self.hopeless:
            self.rate /= SLOWER
        return replace(outcome, verdict=Verdict.INVALID, reason=f"phase 2 was not prepared: {outcome.reason}")


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the throughput in frames/s of each active direction.

    Raises:
        NatgaugeError: a trial could not be run at all.
    """
    rough = None if settings.connection_rate else _rough_connection_rate(measurer, settings, observe)
    rate = settings.connection_rate or (rough.summary.median if rough is not None else 0.0)
    if rough is not None and rate == 0:
        return _unprepared(rough, settings)
    preparation = _Preparation(rate * SAFE_SHARE)
    runner = TrialRunner(measurer, METRIC, settings.repeat, observe)
    measurements = repeat(runner, settings.repeat, lambda known: _once(runner, settings, preparation, known))
    return make_result(
        METRIC, UNIT, settings.parameters(), measurements, _notes(measurements, settings, rate, preparation)
    )


def _rough_connection_rate(measurer: Measurer, settings: Settings, observe: Observer) -> MeasurementResult:
    rough = connection_rate.Settings(
        connections=settings.connections,
        placement=settings.placement,
        order=settings.order,
        repeat=1,
        loss_tolerance=settings.loss_tolerance,
        frame_timeout_seconds=settings.frame_timeout_seconds,
        invalid_repeats=settings.invalid_repeats,
        error=ROUGH_ERROR,
        loss_verifications=settings.loss_verifications,
        confirm=False,
    )
    return connection_rate.run(measurer, rough, observe)


def _unprepared(rough: MeasurementResult, settings: Settings) -> MeasurementResult:
    """No connection rate, no throughput: the answer is 0 for the connection rate's reason."""
    measurement = replace(rough.measurements[0], figures=_figures(0.0, settings))
    note = "phase 1 could not establish the connections at any rate, so phase 2 was not tried"
    return make_result(METRIC, UNIT, settings.parameters(), [measurement], [note, *rough.notes])


def _once(runner: TrialRunner, settings: Settings, preparation: _Preparation, known: float | None) -> Measurement:
    span = Span(
        top=top_rate(runner.measurer) / settings.active,
        floor=LEAST_FRAMES / settings.trial_seconds,
        start=preparation.rate,
    )
    judged: list[Attempt] = []

    def trial(rate: float, short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        seconds = probe_seconds(settings.trial_seconds) if short else settings.trial_seconds
        outcome = runner.run(trial_plan(settings, preparation.rate, rate, seconds), rate, bounds)
        # Kept here as well: the search loses its own list when phase 1 cannot be prepared.
        judged.append(Attempt(rate, short, preparation.judge(outcome)))
        if preparation.hopeless:
            raise _UnpreparableError(outcome)
        return judged[-1].outcome

    try:
        plan = search_plan(settings, span, known, short_probes=True)
        found = search(plan, trial, lambda outcome: forwarding_rate(outcome.phase2.values()))
    except _UnpreparableError as failure:
        found = _given_up(failure.outcome, judged, preparation)
    return replace(found, figures=_figures(found.value, settings))


def _given_up(outcome: TrialOutcome, attempts: list[Attempt], preparation: _Preparation) -> Measurement:
    counts = {str(verdict): sum(one.outcome.verdict is verdict for one in attempts) for verdict in Verdict}
    note = (
        f"phase 1 could not establish the connections, at {preparation.rate:.0f} connections/s at last, "
        f"so no rate of phase 2 could be judged: {outcome.reason}"
    )
    return Measurement(0.0, None, outcome.limited_by or "device", counts, tuple(attempts), notes=(note,))


def probe_seconds(trial_seconds: float) -> float:
    """Length of a short trial."""
    return min(trial_seconds, max(PROBE_SHARE * trial_seconds, LEAST_PROBE_SECONDS))


def trial_plan(settings: Settings, phase1_rate: float, rate: float, seconds: float) -> TrialPlan:
    """The trial that tries this rate in each active direction."""
    return TrialPlan(
        connections=settings.connections,
        phase1_rate=phase1_rate,
        phase2=Phase2Plan(
            initiator_rate=rate if settings.directions in {"both", "up"} else 0.0,
            responder_rate=rate if settings.directions in {"both", "down"} else 0.0,
            seconds=seconds,
        ),
        order=settings.order,
        frame_timeout_seconds=settings.frame_timeout_seconds,
        loss_tolerance=settings.loss_tolerance,
    )


def _figures(value: float, settings: Settings) -> dict[str, float]:
    return {"frames_per_second_each_direction": value, "frames_per_second_total": value * settings.active}


def _notes(measurements: list[Measurement], settings: Settings, rate: float, preparation: _Preparation) -> list[str]:
    notes = [
        *tolerance_note(settings),
        f"phase 1 at {preparation.rate:.0f} connections/s, {preparation.rate / rate:.3g} of the connection rate",
    ]
    if settings.trial_seconds < RFC_TRIAL_SECONDS:
        notes.append(f"trials of {settings.trial_seconds:g} s; RFC 2544 section 24 wants {RFC_TRIAL_SECONDS:g} s")
    return [*notes, *disturbed_note(measurements)]


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="highest frame rate without loss over established connections",
    source="RFC 9693 section 4.7, RFC 2544 section 26.1",
    settings=Settings,
    run=run,
)
