# SPDX-License-Identifier: Apache-2.0
"""A search for the highest rate of phase 2: what its trials share, and what is said where phase 1 fails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from natgauge.measurer import TrialOutcome, TrialPlan
from natgauge.notes import Note
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.measure.phase1 import Preparation, UnpreparableError
from natgauge.procedures.kit.repetitions import Answered
from natgauge.procedures.kit.result.frame_counts import forwarding_rate
from natgauge.procedures.kit.result.results import Attempt, Measurement, MeasurementResult, verdict_counts
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.search import late_frames
from natgauge.procedures.kit.search.binary_search import search
from natgauge.procedures.kit.search.rate_search import SearchSettings, Span, search_plan
from natgauge.procedures.kit.search.searched_rate import SearchedRate

SearchT = TypeVar("SearchT", bound=SearchSettings)

#: Probes for the bracket last this share of a trial, and not less than the seconds.
PROBE_SHARE: Final = 0.1
LEAST_PROBE_SECONDS: Final = 0.25
#: The slowest load tried sends this many frames a direction.
LEAST_FRAMES: Final = 100
#: Where a search without a known connection rate starts, in frames/s.
FIRST_RATE: Final = 50_000.0


def unprepared(rough: MeasurementResult, figures: Mapping[str, float]) -> Answered:
    """No connection rate, no rate of phase 2: the answer is 0 for the connection rate's reason.

    Args:
        rough: the connection rate that was measured first.
        figures: of the answer 0.
    """
    note = Note("phase 1", "phase 1 could not establish the connections at any rate, so phase 2 was not tried")
    return Answered(replace(rough.measurements[0], figures=figures), [note, *rough.notes])


class HeldRate(SearchedRate[SearchT]):
    """The highest rate of phase 2, in frames/s of each active direction.

    Attributes:
        preparation: of phase 1.
        judged: the trials of the repetition that runs.
    """

    def __init__(self, runner: TrialRunner, settings: SearchT, preparation: Preparation) -> None:
        super().__init__(runner, settings)
        self.preparation = preparation
        # Kept here as well: the search loses its own list when phase 1 cannot be prepared.
        self.judged: list[Attempt] = []

    @abstractmethod
    def load(self, rate: float, seconds: float) -> TrialPlan:
        """The trial that tries this rate for so long."""

    @abstractmethod
    def figures(self, value: float) -> dict[str, float]:
        """What the rate comes to."""

    def found(self, known: float | None) -> Measurement:
        """One search; where phase 1 fails for good, its reason is the answer."""
        self.judged = []
        try:
            found = self.searched(known)
        except UnpreparableError as failure:
            found = _given_up(failure.outcome, self.judged, self.preparation)
        return replace(found, figures={**self.figures(found.value), **found.figures})

    def searched(self, known: float | None) -> Measurement:
        """By halving.

        Raises:
            UnpreparableError: phase 1 fails at every rate.
        """
        plan = search_plan(self.settings, self.span(), known, short_probes=True)
        return search(plan, self._probe, lambda outcome: forwarding_rate(outcome.phase2.values()))

    def length(self) -> late_frames.Length:
        """The length of phase 2: phase 1 only prepares, and its lateness decides nothing."""
        return late_frames.of_trials(self.settings.phase2_seconds)

    def seconds(self, rate: float) -> float:  # noqa: ARG002 - the same for every rate
        """The length of phase 2."""
        return self.settings.phase2_seconds

    @abstractmethod
    def span(self) -> Span:
        """Where to search."""

    def phase1_notes(self) -> Sequence[Note]:
        """How fast phase 1 was at last."""
        return self.preparation.notes()

    def trial(self, rate: float, seconds: float, bounds: Bounds) -> TrialOutcome:
        """Try a rate for so long.

        Raises:
            UnpreparableError: phase 1 fails at every rate.
        """
        outcome = self.runner.run(self.load(rate, seconds), rate, bounds)
        judged = self.preparation.judge(outcome)
        self.judged.append(Attempt(rate, seconds < self.settings.phase2_seconds, judged))
        if self.preparation.hopeless:
            raise UnpreparableError(outcome)
        return judged

    def _probe(self, rate: float, short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        seconds = self.settings.phase2_seconds
        return self.trial(rate, probe_seconds(seconds) if short else seconds, bounds)


def _given_up(outcome: TrialOutcome, attempts: list[Attempt], preparation: Preparation) -> Measurement:
    text = (
        f"phase 1 could not establish the connections, at {preparation.rate:.0f} connections/s at last, "
        f"so no rate of phase 2 could be judged: {outcome.reason}"
    )
    limit = outcome.limited_by or "device"
    return Measurement(0.0, None, limit, verdict_counts(attempts), tuple(attempts), notes=(Note("phase 1", text),))


def probe_seconds(trial_seconds: float) -> float:
    """Length of a short trial."""
    return min(trial_seconds, max(PROBE_SHARE * trial_seconds, LEAST_PROBE_SECONDS))
