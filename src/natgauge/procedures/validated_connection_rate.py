# SPDX-License-Identifier: Apache-2.0
"""Validated connection rate (RFC 9693 section 4.6): highest rate at which connections are actually established.

docs/method/validated-connection-rate.md has the method. Where the throughput from the Responder is known, r stays at a
safe share of it, because otherwise the trial would measure that throughput. Each repetition starts with the original
alpha, so a frame lost by chance does not slow down all later ones.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from natgauge.figure_text import number as written
from natgauge.figure_text import with_noun
from natgauge.inputs.input import chosen, wrong
from natgauge.metrics.catalogue import VALIDATED_CONNECTION_RATE
from natgauge.notes import Note
from natgauge.procedures.kit import validation
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchedRate, SearchSettings
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import Bounds, TrialRunner
from natgauge.trials import Trial
from natgauge.words import Verdict


@dataclass(frozen=True, kw_only=True)
class ValidatedConnectionRateSettings(validation.ValidationSettings, SearchSettings):
    """Settings of the validated connection rate: the settings of a search and of a validation."""

    limits_waits = True

    failed_validation: Literal["repeat-slower", "fail"] = chosen(
        "repeat-slower", "Consequence of a failed validation: repeat at half the rate, or fail (RFC 9693)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.failed_validation == "fail" and self.download_rate is not None:
            raise wrong(
                "download_rate",
                "would lower the validation rate, which failed validation fail fixes at alpha times the connection "
                "rate; leave one out",
            )


class _ValidatedRate(SearchedRate[ValidatedConnectionRateSettings]):
    """The highest R in connections/s; r gets lower where it is what fails."""

    def __init__(self, runner: TrialRunner, settings: ValidatedConnectionRateSettings) -> None:
        super().__init__(runner, settings)
        self.most_asked = settings.most_asked
        self.causes: Counter[validation.Cause] = Counter()
        self.validation_rates: dict[float, float] = {}

    def search_once(self, known: float | None) -> Measurement:
        self.most_asked = self.settings.most_asked
        self.causes.clear()
        self.validation_rates.clear()
        repetition = super().search_once(known)
        validation_rate = self.validation_rates.get(repetition.value)
        if validation_rate is not None:
            repetition = repetition.adding(validation_rate=validation_rate, alpha=validation_rate / repetition.value)
        return repetition.adding(*self._asking_notes())

    # Phase 1 is the shorter one, as connections are asked no faster than they were established.

    def probe(self, rate: float, _short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        connections = self.settings.connections
        validation_rate = self.settings.asking_rate(rate, self.most_asked)
        outcome = self._asked(connections, rate, validation_rate, bounds)
        if outcome.verdict is Verdict.PASS:
            self.validation_rates[rate] = validation_rate
        if outcome.verdict is not Verdict.FAIL:
            return outcome
        again, half = None, validation_rate * validation.SLOWER_SHARE
        repeats = self.settings.failed_validation == "repeat-slower"
        if repeats and outcome.failed_phase == 2 and outcome.limited_by == "device":
            again = self._asked(connections, rate, half, bounds)
        why = validation.validation_cause(outcome, again, connections)
        self.causes[why] += 1
        if why == "r too high" and again is not None:
            # R passed at the lower validation rate, which later trials of this search do not exceed.
            self.validation_rates[rate] = half
            self.most_asked = half
            return again
        return replace(outcome, reason=f"{outcome.reason} ({why})")

    def fewer(self, rate: float, connections: int, bounds: Bounds) -> Trial:
        return self._asked(connections, rate, self.settings.asking_rate(rate, self.most_asked), bounds)

    def _asked(self, connections: int, rate: float, asking: float, bounds: Bounds) -> Trial:
        return self.runner.run(validation.validation_plan(self.settings, connections, rate, asking), rate, bounds)

    def _asking_notes(self) -> list[Note]:
        notes = [
            Note("search", f"{with_noun(number, 'failed trials were', 'failed trial was')} put down to: {why}", number)
            for why, number in sorted(self.causes.items())
        ]
        if math.isfinite(self.most_asked):
            notes.append(Note("search", f"connections were asked at {written(self.most_asked)} frames/s at most"))
        return notes


PROCEDURE = Procedure(
    VALIDATED_CONNECTION_RATE,
    settings=ValidatedConnectionRateSettings,
    start=_ValidatedRate,
    # RFC 9693 section 6: ten experiments.
    profiles={"rfc": {"repeat": 10}},
)
