# SPDX-License-Identifier: Apache-2.0
"""A rate that a search finds: what the length of its trials does to it, in one place for every such metric.

Short trials flatter a device: one with queues before it (see `queues`), and in `shared` placement every one (see
`late_frames`). Both are bounded here; a rate that the tolerated lag may have made by itself is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from natgauge.metrics.shared_figures import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.procedures.kit.repetitions import Repetitions
from natgauge.procedures.kit.result.notes import tolerance_note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search import late_frames, queues
from natgauge.procedures.kit.search.rate_search import SearchSettings

SearchT = TypeVar("SearchT", bound=SearchSettings)


class SearchedRate(Repetitions[SearchT]):
    """The highest rate that passes, and how far the length of its trials lets it be too high."""

    @abstractmethod
    def search_once(self, known: float | None) -> Measurement:
        """Search once for the rate; arguments and errors as in `once`."""

    @abstractmethod
    def length(self) -> late_frames.Length:
        """Return the setting that decides how long the trials last."""

    @abstractmethod
    def seconds(self, rate: float) -> float:
        """Length of the shortest phase of a trial at this rate (> 0) whose lateness decides, in seconds."""

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


def most_too_high(repetition: Measurement, settings: SearchSettings) -> float:
    """The largest share by which the rate may be too high: the device surely does value / (1 + share).

    Frames that wait in queues before the device raise it (`queues`), and so does the lag that is tolerated in `shared`
    placement (`late_frames`). Where both can happen, both count. Without the figure `TRIAL_SECONDS` nothing passed, and
    the share is 0.
    """
    seconds = repetition.figures.get(TRIAL_SECONDS)
    if seconds is None:
        return 0.0
    settings = settings.as_run()
    share = 0.0
    if queues.waits(settings.placement, settings.own_processes) and settings.frame_timeout_seconds is not None:
        share += queues.most_share(settings.frame_timeout_seconds, seconds)
    if settings.placement == "shared":
        share += late_frames.most_share(seconds, settings.error)
    return share
