# SPDX-License-Identifier: Apache-2.0
"""Validated connection rate (RFC 9693 section 4.6): highest rate at which connections really are established.

As the connection rate, but after phase 1 the Responder sends one frame through every connection that it learned. In the
standard r = alpha * R. Where the throughput from the Responder is known, r stays at a safe share of it, because
otherwise that throughput is what is measured. A failure is repeated once with r halved, which tells r too high from
R too high; where that trial passes, all following ones ask no faster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from natgauge.measurer import Measurer, TrialOutcome, Verdict
from natgauge.procedures import validation
from natgauge.procedures.connection_rate import FIRST_TRIAL_SECONDS, LEAST_SPAN, LONGEST_TRIAL_SECONDS
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
from natgauge.procedures.settings import RateSettings, about, in_range, positive, refuse_unable
from natgauge.procedures.validation import Cause, Validation

METRIC = "validated-connection-rate"
UNIT = "connections/s"

#: What a failed trial is put down to, in the words of a trial's outcome.
_LIMITS: dict[Cause, str] = {"table full": "table", "R too high": "device", "unknown": "device"}


@dataclass(frozen=True, kw_only=True)
class Settings(RateSettings):
    """Settings of the validated connection rate.

    Attributes:
        alpha: r as a share of R, 0.01 to 1.
        download_rate: throughput of the device from the Responder alone, in frames/s; None = unknown, r = alpha * R.
    """

    alpha: float = field(default=0.8, metadata=about("rate of asking as a share of the rate of establishing", "share"))
    download_rate: float | None = field(
        default=None, metadata=about("throughput from the Responder; asking stays at half of it", "frames/s")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        in_range("alpha", self.alpha, 0.01, 1)
        if self.download_rate is not None:
            positive("download rate", self.download_rate, "frames/s")

    @property
    def phase2_seconds(self) -> float:
        """Asking after the first phase 1; every trial's own time is held against the time-outs before it runs."""
        return FIRST_TRIAL_SECONDS / self.alpha

    def validation(self) -> Validation:
        """How fast to ask, before anything was tried."""
        if self.download_rate is None:
            return Validation(self.alpha)
        return Validation(self.alpha, self.download_rate * validation.SAFE_SHARE_OF_DOWNLOAD)


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the validated maximum connection establishment rate in connections/s.

    Raises:
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    runner = TrialRunner(measurer, METRIC, settings.most_repetitions, observe)
    asking = _Asking(runner, settings, settings.validation())
    measurements = repeat(runner, settings.repeat, asking.once)
    notes = [*tolerance_note(settings), *disturbed_note(measurements)]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


@dataclass(slots=True)
class _Asking:
    """Searches for R, and lowers r where r is what fails."""

    runner: TrialRunner
    settings: Settings
    validation: Validation
    causes: Counter[Cause] = field(default_factory=Counter)

    def once(self, known: float | None) -> Measurement:
        top = top_rate(self.runner.measurer)
        n = self.settings.connections
        span = Span(top=top, floor=min(n / LONGEST_TRIAL_SECONDS, top / LEAST_SPAN), start=n / FIRST_TRIAL_SECONDS)
        self.causes.clear()
        plan = search_plan(self.settings, span, known, short_probes=False)
        found = search(plan, self._trial, lambda outcome: forwarding_rate([outcome.phase1]))
        asked = self.validation.rate(found.value) if found.value else 0.0
        figures = {"validation_rate": asked, "alpha": asked / found.value} if found.value else {}
        return replace(found, figures=figures, notes=(*found.notes, *self._notes()))

    def _trial(self, rate: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        plan = validation.plan(self.settings, self.settings.connections, rate, self.validation.rate(rate))
        outcome = self.runner.run(plan, rate, bounds)
        if outcome.verdict is not Verdict.FAIL:
            return outcome
        again = None
        if outcome.failed_phase == 2 and outcome.limited_by == "device":
            again = self.runner.run(validation.slower(plan), rate, bounds)
        why = validation.cause(outcome, again, self.settings.connections)
        self.causes[why] += 1
        if why == "r too high" and again is not None and plan.phase2 is not None:
            # What was asked for is R, and it passed; from now on nothing is asked faster than what passed.
            self.validation = replace(self.validation, most=plan.phase2.responder_rate * validation.SLOWER_SHARE)
            return again
        return replace(outcome, limited_by=_LIMITS[why], reason=f"{outcome.reason} ({why})")

    def _notes(self) -> list[str]:
        notes = [f"{number} failed trials were put down to: {why}" for why, number in sorted(self.causes.items())]
        if self.validation.most is not None:
            notes.append(f"connections were asked at {self.validation.most:.0f} frames/s at most")
        return notes


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="highest rate at which every new connection is established and afterwards answers",
    source="RFC 9693 section 4.6",
    settings=Settings,
    run=run,
)
