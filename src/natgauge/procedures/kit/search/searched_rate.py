# SPDX-License-Identifier: Apache-2.0
"""A rate that a search finds: what the length of its trials does to it, in one place for every such metric.

Short trials flatter a device: one with queues before it (see `queues`), and in `shared` placement every one (see
`late_frames`). Both are bounded here; a rate that the tolerated lag may have made by itself is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from natgauge.metrics.shared_figures import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.repetitions import Repetitions
from natgauge.procedures.kit.result.frame_counts import forwarding_rate
from natgauge.procedures.kit.result.notes import tolerance_note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search import late_frames, queues
from natgauge.procedures.kit.search.binary_search import search
from natgauge.procedures.kit.search.rate_search import (
    FIRST_TRIAL_SECONDS,
    SearchSettings,
    SearchSpan,
    lowest_rate,
    search_plan,
    top_rate,
)
from natgauge.trials import Trial

SearchT = TypeVar("SearchT", bound=SearchSettings)


class SearchedRate(Repetitions[SearchT]):
    """The highest rate that passes, and how far the length of its trials lets it be too high.

    It is the rate of phase 1, whose frames decide alone, unless a metric says otherwise.
    """

    #: Phase whose frames are what the device forwards; where it is 1, fewer connections may be tried, too.
    phase = 1
    #: Whether the bracket may be found with short trials.
    short_probes = False
    unit = "connections/s"
    #: Expected value; None = no expectation.
    expected: float | None = None

    def search_once(self, known: float | None) -> Measurement:
        """Search once for the rate; arguments and errors as in `once`."""
        plan = search_plan(self.settings, self.span(), known, draw=self.runner.draw, short_probes=self.short_probes)
        return search(plan, self.probe, self._forwarded, self.fewer if self.phase == 1 else None)

    def span(self) -> SearchSpan:
        """Return the range of rates to search."""
        top, frames = top_rate(self.runner.measurer), self.settings.phase1_frames
        start = frames / FIRST_TRIAL_SECONDS
        return SearchSpan(top, lowest_rate(frames, top), start, expected=self.expected, unit=self.unit)

    def probe(self, rate: float, _short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        """Run the trial of a rate."""
        return self.runner.run(self.settings.phase1_plan(rate), rate, bounds)

    def fewer(self, rate: float, connections: int, bounds: Bounds) -> Trial:
        """Run the trial of a rate with fewer connections."""
        return self.runner.run(replace(self.settings.phase1_plan(rate), connections=connections), rate, bounds)

    def _forwarded(self, outcome: Trial) -> float | None:
        return forwarding_rate([outcome.phase1] if self.phase == 1 else outcome.phase2.values())

    def length(self) -> late_frames.Length:
        """Return the setting that decides how long the trials last."""
        return late_frames.of_connections(self.settings.phase1_frames)

    def seconds(self, rate: float) -> float:
        """Length of the shortest phase of a trial at this rate (> 0) whose lateness decides, in seconds."""
        return self.settings.phase1_frames / rate

    def once(self, known: float | None) -> Measurement:
        """Search once; the figure `TRIAL_SECONDS` is the length of the trial that gave the value.

        ShortTrialsError: the tolerated lag alone may explain the rate.
        """
        repetition = self.search_once(known)
        if not repetition.value:
            return repetition
        seconds = self.seconds(repetition.value)
        if self.settings.placement == "shared":
            late_frames.refuse_short(seconds, repetition.value, self.settings.error, self.length())
        return replace(repetition, figures={**repetition.figures, TRIAL_SECONDS: seconds})

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        """Return notes on the effects of the tolerated loss, queues and the tolerated lag on the rate."""
        length, settings = self.length(), self.settings
        queued = queues.queue_note(measurements, settings, length.symbol, length.advice)
        short = late_frames.short_note(measurements, settings.placement, settings.error, length.advice)
        return [*tolerance_note(settings.loss_tolerance), *queued, *short]
