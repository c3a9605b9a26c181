# SPDX-License-Identifier: Apache-2.0
"""A running measurement: the part specific to a metric, and the repetitions of whatever is measured several times."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from natgauge.errors import NatgaugeError
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.runner import GoneError, TrialRunner
from natgauge.procedures.kit.settings import Repeat, TrialSettings
from natgauge.procedures.kit.time_budget import TIME, TimeUpError, stopped
from natgauge.statistics.order_statistics import median_interval

#: Half the width of the median's interval, as a share of the median, at which "auto" stops repeating.
NARROW = 0.025
#: Coverage of that interval. It is looked at after each repetition, and one that is narrow by chance ends them. With
#: 95 % here, the interval that results state missed the median of up to 8 % of simulated series (normal and uniform
#: values that spread by 2 to 5 %); with 98 % it missed that of 5 % at most.
AUTO_CONFIDENCE = 0.98

SettingsT = TypeVar("SettingsT", bound=TrialSettings)


class Repetitions(ABC, Generic[SettingsT]):
    """A metric's own part of a measurement. The constructor measures what the first repetition requires."""

    def __init__(self, runner: TrialRunner, settings: SettingsT) -> None:
        self.runner = runner
        self.settings = settings

    @abstractmethod
    def once(self, known: float | None) -> Measurement:
        """Measure once; `known` is the value of the previous repetition, None = there is none."""

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:  # noqa: ARG002 - for those that have some
        """Return facts about this metric that a reader must know; called after the last repetition."""
        return ()

    def phase1_notes(self) -> Sequence[Note]:
        """Return notes on how connections were established; called after the last repetition."""
        return ()


@dataclass(frozen=True, slots=True)
class Answered:
    """Replaces repetitions where the result is known before the first one, and no repetition would change it."""

    measurement: Measurement
    notes: Sequence[Note]


class Repeated(Protocol):
    """A metric of a gateway, or a cell of a campaign: `lacks` a repetition of a number, from 1, or `measure` it."""

    def lacks(self, number: int) -> bool: ...  # noqa: D102
    def measure(self, number: int) -> None: ...  # noqa: D102


def in_rounds(most: int, turns: Callable[[int], Iterable[Repeated]]) -> None:
    """Measure what lacks repetitions, in at most so many rounds; `turns` returns all in the order of a round.

    A measurement is a run of one, and a campaign is a run of many that take turns.
    """
    for number in range(1, most + 1):
        for each in turns(number):
            if each.lacks(number):
                each.measure(number)


@dataclass(slots=True)
class Series:
    """The repetitions of one metric of one gateway, in one go.

    A device that is gone after some repetitions ends them, and so does a further repetition that cannot begin, for
    example because its lab cannot be made. A repetition that the time cut off counts only where there is no other: its
    value is no more than a bound. What ends the first repetition is raised. `once` gets the answer of the repetition
    before, or None.
    """

    runner: TrialRunner
    times: Repeat
    once: Callable[[float | None], Measurement]
    done: list[Measurement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    has_ended: bool = False

    def lacks(self, number: int) -> bool:
        """Whether the repetition is requested, and may begin."""
        enough = is_enough([repetition.value for repetition in self.done], self.times, self.runner.repetitions)
        return len(self.done) < number and not (self.has_ended or enough)

    def measure(self, number: int) -> None:
        """Measure once more."""
        known, begun = self.done[-1].value or None if self.done else None, False
        repetition: Measurement | None = None
        try:
            self.runner.start_repetition(number)
            begun = True
            repetition = self.once(known)
            why = next((note.text for note in repetition.notes if note.word == "undecided"), "")
        except TimeUpError as error:
            why = str(error)
            if not self.done:
                repetition = stopped(self.runner.attempts, error)
        except NatgaugeError as error:
            if not self.done or (begun and not isinstance(error, GoneError)):
                raise
            self._end("ended early", f": {error}")
            return
        if repetition is None or (self.done and repetition.limited_by == TIME):
            self._end("time used up", f"; of the next one is known: {why}")
        else:
            self.done.append(repetition)
            self.has_ended = repetition.limited_by == TIME

    def _end(self, word: NoteWord, why: str) -> None:
        self.has_ended = True
        self.notes.append(Note(word, f"repetitions after {len(self.done)} of {self.runner.repetitions} at most{why}"))


def is_enough(values: Sequence[float], times: Repeat, most: int) -> bool:
    """Whether these are all repetitions that are requested: "auto" ends once the median is well known."""
    return len(values) >= most or (isinstance(times, str) and well_known(values))


def well_known(values: Sequence[float]) -> bool:
    """Whether the median's confidence interval (98 %, at least seven values) is as narrow as `NARROW` requires."""
    interval = median_interval(values, AUTO_CONFIDENCE)
    if interval is None or interval.coverage < AUTO_CONFIDENCE:
        return False
    return (interval.upper - interval.lower) / 2 <= NARROW * abs(statistics.median(values))
