# SPDX-License-Identifier: Apache-2.0
"""Searches for one rate of one gateway as they are run: their bounds, limits and doubts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from natgauge.comparisons.request import ComparisonGoal
from natgauge.doubts import doubts, find
from natgauge.errors import UsageError
from natgauge.figure_text import in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.metrics.shared_figures import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.paired.rates import RateBounds, RateRounds, pairs
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.procedures.kit.search import late_frames, permanent_loss, queues
from natgauge.procedures.kit.search.late_frames import rounded_up
from natgauge.procedures.kit.search.rate_search import SearchSettings
from natgauge.records.comparison import SearchLimit
from natgauge.records.parameters import Parameters
from natgauge.statistics.interval import relative_half_width
from natgauge.words import SearchLimitedBy

#: A doubt that is the reason why no rate passed.
_NO_RATE: Final = permanent_loss.WORDS


@dataclass(slots=True)
class Searched(RateRounds):
    """The searches for one rate of one gateway as they are run, with what they measured.

    Attributes:
        parameters: parameters of the searches; None before the first.
    """

    measurements: list[Measurement] = field(default_factory=list)
    procedure: Procedure[SearchSettings] | None = None
    parameters: Parameters | None = None

    def add(
        self,
        procedure: Procedure[SearchSettings],
        settings: SearchSettings,
        parameters: Parameters,
        search: Measurement,
    ) -> str:
        """Add a search; return the reason why it is void, or an empty text."""
        self.procedure, self.parameters = procedure, parameters
        words = {doubt.word: doubt.text for doubt in _doubts(procedure, parameters, [search])}
        ended: SearchLimitedBy | Literal[""] = "the time" if search.upper is None else ""
        limit = next((by for word in words if (by := doubts()[word].ended_by)), ended)
        upper = math.inf if limit or search.upper is None else search.upper
        if not search.value:
            self.add_void(upper)
            return next((words[word] for word in _NO_RATE if word in words), "no rate passed")
        lower = search.value / (1 + most_too_high(search, settings))
        self.rounds.append(RateBounds(lower, search.value, upper, limit))
        self.measurements.append(search)
        return ""

    def add_void(self, failed: float = math.inf) -> None:
        """Record a void search; `failed` is the lowest rate that the gateway failed, frames/s, infinite = none.

        A gateway that failed costs more in this round than in any other. Without such rounds a ratio would be too low.
        """
        self.rounds.append(None if math.isinf(failed) else RateBounds(0.0, 0.0, failed))

    def cut_back(self, rounds: int) -> None:
        """Forget the searches after this number of rounds."""
        del self.rounds[rounds:]
        # A void search left no measurement.
        del self.measurements[len(self.bounds) :]

    @property
    def failures(self) -> str:
        """The searches in which the gateway passed no rate, as a sentence without its full stop; empty = none."""
        known = [bounds for bounds in self.rounds if bounds is not None]
        failed = len(known) - len(self.bounds)
        return f"{self.label} passed no rate in {failed} of {with_noun(len(known), 'searches')}" if failed else ""

    @property
    def limits(self) -> tuple[SearchLimit, ...]:
        """Limits other than the device that ended searches."""
        of: dict[SearchLimitedBy, list[float]] = {}
        for bounds in self.bounds:
            if bounds.limit:
                of.setdefault(bounds.limit, []).append(bounds.lower)
        return tuple(
            SearchLimit(
                gateway=self.label,
                quantity=self.quantity,
                limited_by=by,
                searches=len(rates),
                of=len(self.bounds),
                at_least=statistics.median(rates),
            )
            for by, rates in of.items()
        )

    @property
    def doubts(self) -> tuple[Note, ...]:
        """Doubts about the searches, by the rules of `measure`; each word once."""
        if not self.measurements or self.procedure is None or self.parameters is None:
            return ()
        notes = _doubts(self.procedure, self.parameters, self.measurements)
        number = len(self.measurements)
        return tuple(_once_each([note for note in notes if not doubts()[note.word].of_single or number == 1], number))


def _doubts(
    procedure: Procedure[SearchSettings], parameters: Parameters, measurements: Sequence[Measurement]
) -> tuple[Note, ...]:
    measured = make_result(procedure.metric, procedure.unit, {}, measurements)
    # A comparison takes ratios within rounds, where a drift cancels out.
    return tuple(doubt for doubt in find(measured, parameters) if not doubts()[doubt.word].of_median)


def _once_each(notes: Sequence[Note], searches: int) -> Iterator[Note]:
    """Yield the first doubt of each word, with the number of searches that have such a doubt."""
    for word in dict.fromkeys(note.word for note in notes):
        alike = [note for note in notes if note.word == word]
        first, number = alike[0], len(alike)
        yield first if number == 1 else replace(first, text=f"{first.text} (so in {number} of {searches} searches)")


def refuse_too_few(baseline: Searched, other: Searched, connections: Mapping[str, int], goal: ComparisonGoal) -> None:
    """Refuse too few connections, with which no number of rounds could decide the comparison.

    Queues and tolerated lag raise a measured rate, and more so in shorter trials. If that effect alone makes half the
    ratio's interval wider than the goal, the connections are refused. Only the first pair of rates is examined. With
    `fail_above` a wide interval may suffice. If the error of the searches alone exceeds the goal, more connections do
    not help.
    """
    both = [pair for pair in pairs(baseline, other) if all(bounds.passed for bounds in pair)]
    if goal.fail_above is not None or len(both) != 1:
        return
    first, second = both[0]
    queued = _half_width(*(replace(each, upper=each.passed) for each in (first, second)))
    searched = _half_width(*(replace(each, lower=each.passed) for each in (first, second)))
    if not queued > goal.resolve > searched:
        return
    side, bounds = max(((baseline, first), (other, second)), key=lambda pair: pair[1].passed / pair[1].lower)
    number = connections[side.label]
    # Half of what the searches leave; the other half is for differences between rounds.
    enough = number * queued / ((goal.resolve - searched) / 2)
    raise UsageError(
        f"connections: {number} of {side.label} are established within {written(number / bounds.passed * 1000)} ms, so "
        f"queues and tolerated lag may have raised its rate by up to {in_percent(bounds.passed / bounds.lower - 1)}, "
        "and no "
        f"ratio can be known to {in_percent(goal.resolve)} (--resolve); choose at least {rounded_up(enough):,} "
        "connections",
        at="connections",
    )


def _half_width(first: RateBounds, second: RateBounds) -> float:
    ratio, low, high = first.middle / second.middle, first.lower / second.upper, first.upper / second.lower
    return relative_half_width(ratio, low, high)


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
