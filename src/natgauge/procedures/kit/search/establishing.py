# SPDX-License-Identifier: Apache-2.0
"""Search for the highest rate of trials that have a phase 1 and no phase 2."""

from __future__ import annotations

from dataclasses import replace

from natgauge.measurer import TrialOutcome
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.result.frame_counts import forwarding_rate
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search import late_frames
from natgauge.procedures.kit.search.binary_search import search
from natgauge.procedures.kit.search.rate_search import establishing_span, search_plan
from natgauge.procedures.kit.search.searched_rate import SearchedRate, SearchT


class EstablishingRate(SearchedRate[SearchT]):
    """The highest rate of phase 1 at which every connection counts."""

    #: Expected value, in connections/s; None = no expectation.
    expected: float | None = None
    unit = "connections/s"

    def search_once(self, known: float | None) -> Measurement:
        """Search once for the rate; arguments and errors as in `once`."""
        span = establishing_span(self.runner.measurer, self.settings.phase1_frames, self.expected)
        plan = search_plan(
            self.settings, replace(span, unit=self.unit), known, draw=self.runner.draw, short_probes=False
        )
        return search(plan, self.trial, lambda outcome: forwarding_rate([outcome.phase1]), self._fewer)

    def trial(self, rate: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        """Run the trial of a rate."""
        return self.runner.run(self.settings.phase1_plan(rate), rate, bounds)

    def length(self) -> late_frames.Length:
        """Return N/R, the length of phase 1."""
        return late_frames.of_connections(self.settings.phase1_frames)

    def seconds(self, rate: float) -> float:
        """Return the length of phase 1 at this rate, in seconds."""
        return self.settings.phase1_frames / rate

    def _fewer(self, rate: float, connections: int, bounds: Bounds) -> TrialOutcome:
        return self.runner.run(replace(self.settings.phase1_plan(rate), connections=connections), rate, bounds)
