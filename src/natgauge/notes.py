# SPDX-License-Identifier: Apache-2.0
"""Notes on a result as data: a word from a closed set for programs, a text for people.

Code compares words. The text may be reworded at any time, and nothing reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

#: What a doubt can change: the answer; the interval of the figure; nothing, but a reader must know it.
Grade = Literal["answer", "interval", "information"]

#: Reasons to trust a figure less; `natgauge.measurements.doubts` collects those of a result.
DoubtWord = Literal[
    "tester limited", "host limited", "single repetition", "wide spread", "INVALID trials", "disturbed trials",
    "excused trials", "contradictions", "queues", "loss at every rate", "undecided", "time used up",
    "late at every rate", "bucket",
    "table not emptied", "tester unknown", "tester on device cores", "functional", "link limited", "flow control",
    "short trials", "batches", "taking turns", "machine shared", "real server", "server limited",
    "unreliable", "frames in stalls", "excused frames", "collapsed", "ended early", "table inferred", "rare loss",
    "several limits", "mixed", "autocorrelated", "drift", "throughput doubted", "uneven cores", "idle cores",
    "other traffic", "CPU quota",
]  # fmt: skip

#: Doubts that could change the answer.
_OF_ANSWER: Final[frozenset[DoubtWord]] = frozenset(
    {
        "tester limited", "host limited", "server limited", "link limited", "flow control", "undecided", "functional",
        "taking turns", "mixed", "autocorrelated", "drift", "rare loss", "loss at every rate", "collapsed",
        "late at every rate", "bucket",
        "ended early", "unreliable", "table not emptied", "real server", "throughput doubted", "uneven cores",
        "idle cores",
    }
)  # fmt: skip
#: Doubts that only a reader's own judgement needs.
_OF_INFORMATION: Final[frozenset[DoubtWord]] = frozenset(
    {"INVALID trials", "disturbed trials", "excused trials", "table inferred", "tester unknown"}
)

#: Subjects of a note that is no reason for doubt.
SubjectWord = Literal[
    "device", "method", "own delay", "phase 1", "repetitions", "search", "settings", "tester", "throughput", "trials",
]  # fmt: skip

NoteWord = Literal[DoubtWord, SubjectWord]

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
_DOUBTS: Final = frozenset(get_args(DoubtWord))


@dataclass(frozen=True, slots=True)
class Note:
    """A statement on a result, or a reason to doubt it.

    Attributes:
        word: subject of the note.
        text: one line for people, without the word.
        count: number of events in the note, such as loads with contradicting trials; at least 1.
        value: the number in the text that a program needs, in the unit that the text names; None = there is none.
        grade: what a doubt can change; by default that of its word. None = the note is no doubt.
    """

    #: A stored note with an unknown field is refused.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    word: NoteWord
    text: str
    count: int = 1
    value: float | None = None
    grade: Grade | None = None

    def __post_init__(self) -> None:
        """Give a doubt the grade of its word where it has none of its own."""
        if self.grade is None and self.is_doubt:
            object.__setattr__(self, "grade", _grade_of(self.word))

    @property
    def is_doubt(self) -> bool:
        """Whether the note is a reason to trust the figure less."""
        return self.word in _DOUBTS

    def __str__(self) -> str:
        """The text, after its word where that is a reason for doubt."""
        return f"{self.word}: {self.text}" if self.is_doubt else self.text


def _grade_of(word: NoteWord) -> Grade:
    if word in _OF_ANSWER:
        return "answer"
    return "information" if word in _OF_INFORMATION else "interval"


def by_grade(doubts: Iterable[Note]) -> list[Note]:
    """Return doubts in the order of their grades: those that could change the answer come first."""
    return sorted(doubts, key=lambda doubt: GRADES.index(doubt.grade or "information"))


def count_of(notes: Iterable[Note], word: NoteWord) -> int:
    """Return the number of events in the notes with this word."""
    return sum(note.count for note in notes if note.word == word)
