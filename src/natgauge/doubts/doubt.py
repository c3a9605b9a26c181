# SPDX-License-Identifier: Apache-2.0
"""The entry of a doubt: its word, its grade, when it holds, its text, its remedy, and its row in the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

from natgauge.notes import GRADES, Grade, KnownDoubt, Note, NoteWord
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.trials import Trial
from natgauge.words import SearchLimitedBy, Verdict

#: What to do about trials that are too short: those of a rate of new connections last N/R.
LONGER_TRIALS: Final = "Use more --connections for a rate of new connections, otherwise more --trial-seconds."


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a measurement.

    Attributes:
        disturbed: number of trials in which stalls or stolen time were seen, which a folder has without the outcomes.
        of_first: doubts of the rate that was measured first, except those that the result itself has.
    """

    measured: MeasurementResult
    parameters: Parameters
    disturbed: int
    of_first: tuple[Note, ...] = ()

    @property
    def counted(self) -> list[Trial]:
        """Outcomes of the trials that are not INVALID, in the order of the repetitions.

        A result that was read from its folder has none: the folder does not have the outcomes.
        """
        every = (attempt for repetition in self.measured.measurements for attempt in repetition.attempts)
        counted = (attempt for attempt in every if attempt.outcome.verdict is not Verdict.INVALID)
        return [outcome for attempt in counted for outcome in [attempt.outcome] * attempt.times]


@dataclass(frozen=True, slots=True)
class Said:
    """A doubt that holds.

    Attributes:
        count: number of events in the text, at least 1.
        value: the number in the text that a program needs; None = there is none.
        grade: what the doubt can change here; None = the grade of the entry.
    """

    text: str
    count: int = 1
    value: float | None = None
    grade: Grade | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt(KnownDoubt):
    """One doubt. Each module of `natgauge.doubts` declares its doubts in a tuple `DOUBTS`.

    Attributes:
        about: what the doubt is about: trials, repetitions, or the result as a whole.
        grades: when a note has another grade than that of the entry, for the documentation; empty = never.
        holds: yields the doubt where it follows from the facts of the measurement, usually once; None = only the
            procedure knows, and writes the doubt itself as a note on its result.
        of_median: whether the doubt is about a median over repetitions; ratios within rounds do not have it.
        is_inherited: whether the rates that are shares of another rate are doubtful if that rate has this doubt.
        ended_by: what ended a search instead of the device, for comparisons; empty = the doubt does not say that.
        foreseen: whether a plan and the rate of the device decide it, so that `plan check` tells it.
        not_stored: why the files of a results folder do not show the doubt; empty = they do.
    """

    about: Literal["trial", "repetition", "result"]
    meaning: str
    grades: str = ""
    holds: Callable[[Facts], Iterable[Said]] | None = None
    sums: bool = False
    of_median: bool = False
    of_single: bool = False
    is_inherited: bool = True
    foreseen: bool = False
    ended_by: SearchLimitedBy | Literal[""] = ""
    not_stored: str = ""

    def notes(self, facts: Facts) -> Iterator[Note]:
        """Yield the doubt as notes, where it holds."""
        for said in () if self.holds is None else self.holds(facts):
            word = cast("NoteWord", self.word)
            yield Note(word, said.text, said.count, said.value, said.grade or self.grade)


def by_grade(doubts: Iterable[Note]) -> list[Note]:
    """Return doubts in the order of their grades: those that could change the answer come first."""
    return sorted(doubts, key=lambda doubt: GRADES.index(doubt.grade or "information"))


def count_of(notes: Iterable[Note], word: NoteWord) -> int:
    """Return the number of events in the notes with this word."""
    return sum(note.count for note in notes if note.word == word)
