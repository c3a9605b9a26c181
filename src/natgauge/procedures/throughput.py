# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7, RFC 2544 section 26.1): highest rate without loss, over open connections.

docs/method/throughput.md has the method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from natgauge.inputs.input import chosen, wrong
from natgauge.metrics.catalogue import THROUGHPUT, Preset, criteria
from natgauge.metrics.metric import IN_ALL, TRIAL_SECONDS
from natgauge.procedures.kit import losses, mlr_search, queues
from natgauge.procedures.kit.binary_search import SearchSpan
from natgauge.procedures.kit.held_connections import FIRST_RATE, LEAST_FRAMES, HeldRate, unprepared
from natgauge.procedures.kit.phases import ModifiedSettings, Phase1Settings, Preparation, prepare
from natgauge.procedures.kit.procedure import Answered, Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, expected_rate, near, search_plan, top_rate
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TimeUpError, TrialRunner, cut_off
from natgauge.trials import TrialPlan


@dataclass(frozen=True, kw_only=True)
class ThroughputSettings(ModifiedSettings, Phase1Settings, SearchSettings):
    """Settings of the throughput.

    The goals "ndr-pdr" are no drop rate and partial drop rate, 0.5 %, each decided by 21 trials' seconds of which half
    may be bad.
    """

    search: Literal["binary", "mlrsearch"] = chosen("binary", "search method", section="Search")
    goals: Preset = chosen("rfc2544", "goals of the search, with mlrsearch", section="Search")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups > 1 and self.search == "mlrsearch":
            raise wrong(
                "groups",
                f"{self.groups}: mlrsearch takes shares of all frames of a trial, most of which are sent before the "
                "last group begins; choose the search binary",
            )
        if self.search == "binary":
            if self.goals != "rfc2544":
                raise wrong("goals", f"{self.goals} needs the search mlrsearch")
        elif self.error.share is None:
            raise wrong("error", f"{self.error} is a rate; mlrsearch needs a share, such as 1%")
        elif self.loss_tolerance:
            raise wrong("loss_tolerance", "mlrsearch has goals instead; choose goals ndr-pdr")

    @property
    def unused(self) -> dict[str, str]:
        """Repeats that mlrsearch does not know, or that its goals make without being told."""
        if self.search == "binary":
            return super().unused
        names = ("loss_verifications",) if self.goals == "rfc2544" else ("loss_verifications", "confirm")
        return super().unused | dict.fromkeys(names, "the goals of mlrsearch decide what is repeated")

    def as_run(self) -> ThroughputSettings:
        """Return these settings, with a time limit for each frame where there are queues before the device."""
        return queues.with_wait_limit(self, self.trial_seconds, self.error)

    def parameters(self) -> dict[str, Any]:
        """The settings, and what a load had to do to meet the goals of mlrsearch."""
        goals = criteria(self.goals, self.trial_seconds) if self.search == "mlrsearch" else None
        return {**super().parameters(), "goal_criteria": goals}


def _start(runner: TrialRunner, settings: ThroughputSettings) -> _Throughput | Answered:
    preparation = prepare(runner, settings)
    return unprepared(preparation, _figures(0.0, settings)) or _Throughput(runner, settings, preparation)


class _Throughput(HeldRate[ThroughputSettings]):
    """The highest rate in frames/s, the mean of the active directions."""

    def __init__(self, runner: TrialRunner, settings: ThroughputSettings, preparation: Preparation) -> None:
        super().__init__(runner, settings, preparation)
        self.expected = self._from_slices()

    def _from_slices(self) -> float | None:
        """Return the rate expected from slices, frames/s of each direction; None where slices lack these frames."""
        settings = self.settings
        if settings.stateless or settings.foreground_share < 1 or settings.conditions is not None:
            return None
        rate = expected_rate(self.runner, settings, settings.directions)
        return None if rate is None else rate / settings.active

    def load(self, rate: float, seconds: float) -> TrialPlan:
        return self.settings.plan(self.preparation.rate, rate, seconds)

    def figures(self, value: float) -> dict[str, float]:
        return _figures(value, self.settings)

    def span(self) -> SearchSpan:
        settings = self.settings
        return SearchSpan(
            # The tester also sends the broadcasts.
            top=settings.test_share * top_rate(self.runner.measurer) / settings.active,
            floor=LEAST_FRAMES / settings.trial_seconds,
            start=FIRST_RATE if settings.stateless else self.preparation.rate,
            unit=settings.rate_unit,
            expected=self.expected,
        )

    def searched(self, known: float | None) -> Measurement:
        if self.settings.search == "binary":
            return super().searched(known)
        try:
            return mlr_search.search(_mlr_plan(self.settings, self.span(), known, self.runner.draw), self.trial)
        except TimeUpError as error:
            unit = self.settings.rate_unit
            found = cut_off(self.judged, unit, error)
            few = losses.rare_loss_untried(self.judged, found.upper, self.settings.error.share or 0.0, unit)
            return found.adding(*mlr_search.with_remedy(few))


def _mlr_plan(settings: ThroughputSettings, span: SearchSpan, known: float | None, draw: float) -> mlr_search.MlrPlan:
    plan, hint = search_plan(settings, span, None, draw=draw, short_probes=True), known or span.expected
    if hint is not None:
        start = min(max(near(hint, settings.error, draw), plan.floor), plan.top)
        plan = replace(plan, start=start)
    return mlr_search.MlrPlan(plan, settings.goals, settings.trial_seconds)


def _figures(value: float, settings: ThroughputSettings) -> dict[str, float]:
    initiator, responder = settings.rates(value)
    each = {"frames_per_second_each_direction": value}
    if not settings.is_balanced:
        each = {"frames_per_second_from_initiator": initiator, "frames_per_second_from_responder": responder}
    return {**each, IN_ALL: value * settings.active, TRIAL_SECONDS: settings.trial_seconds}


PROCEDURE = Procedure(
    THROUGHPUT,
    settings=ThroughputSettings,
    start=_start,
    profiles={
        "standard": {"search": "mlrsearch", "goals": "ndr-pdr", "trial_seconds": 1.0, "repeat": 1},
        # RFC 9693 section 6: ten experiments.
        "rfc": {"repeat": 10},
    },
)
