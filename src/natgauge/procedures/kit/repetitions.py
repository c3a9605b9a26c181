# SPDX-License-Identifier: Apache-2.0
"""A running measurement: the part specific to a metric, and the number of repetitions."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from natgauge.errors import NatgaugeError
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.runner import GoneError, TrialRunner
from natgauge.procedures.kit.settings import MOST_AUTO_REPETITIONS, Repeat, TrialSettings
from natgauge.procedures.kit.time_budget import TIME, TimeUpError, stopped
from natgauge.statistics.interval import CONFIDENCE
from natgauge.statistics.order_statistics import median_interval

#: Half the width of the median's interval, as a share of the median, at which "auto" stops repeating.
NARROW = 0.025

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


def repeat(
    runner: TrialRunner, times: Repeat, once: Callable[[float | None], Measurement]
) -> tuple[list[Measurement], list[Note]]:
    """Measure several times; the measurements, and a note where the time did not suffice for all of them.

    A device that is gone after some repetitions ends the series, and so does a further repetition that cannot begin,
    for example because its lab cannot be made; a note says so. A repetition that the time cut off counts only where
    there is no other: its value is no more than a bound. "auto" repeats until the interval that holds the median with
    95 % is narrow, at most 20 times. `once` gets the answer of the repetition before, or None. What ends the first
    repetition is raised.
    """
    done: list[Measurement] = []
    most = MOST_AUTO_REPETITIONS if isinstance(times, str) else times
    while len(done) < most and not (isinstance(times, str) and well_known([repetition.value for repetition in done])):
        try:
            runner.start_repetition(len(done) + 1)
        except NatgaugeError as error:
            if not done:
                raise
            return done, [_ended(len(done), most, error)]
        try:
            repetition = once(done[-1].value or None if done else None)
        except TimeUpError as error:
            if not done:
                return [stopped(runner.attempts, error)], []
            return done, [_left_out(len(done), most, str(error))]
        except GoneError as error:
            if not done:
                raise
            return done, [_ended(len(done), most, error)]
        if repetition.limited_by == TIME:
            why = next((note.text for note in repetition.notes if note.word == "undecided"), "")
            return (done, [_left_out(len(done), most, why)]) if done else ([repetition], [])
        done.append(repetition)
    return done, []


def _ended(done: int, most: int, error: NatgaugeError) -> Note:
    return Note("ended early", f"repetitions after {done} of {most} at most: {error}")


def _left_out(done: int, most: int, why: str) -> Note:
    return Note("time used up", f"repetitions after {done} of {most} at most; of the next one is known: {why}")


def well_known(values: Sequence[float]) -> bool:
    """Whether the median's confidence interval (95 %, at least six values) is as narrow as `NARROW` requires."""
    interval = median_interval(values)
    if interval is None or interval.coverage < CONFIDENCE:
        return False
    return (interval.upper - interval.lower) / 2 <= NARROW * abs(statistics.median(values))
