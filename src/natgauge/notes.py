# SPDX-License-Identifier: Apache-2.0
"""Notes on a result as data: a word from a closed set for programs, a text for people.

Code compares words. The text may be reworded at any time, and nothing reads it. `natgauge.doubts` declares the doubts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from natgauge.doubt_words import DoubtWord
from natgauge.known_doubts import Grade, known_doubts

#: Subjects of a note that is no reason for doubt.
SubjectWord = Literal[
    "device", "method", "own delay", "phase 1", "repetitions", "search", "settings", "tester", "throughput", "trials",
]  # fmt: skip

NoteWord = Literal[DoubtWord, SubjectWord]

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)


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
            object.__setattr__(self, "grade", known_doubts()[self.word].grade)

    @property
    def is_doubt(self) -> bool:
        """Whether the note is a reason to trust the figure less."""
        return self.word in known_doubts()

    def __str__(self) -> str:
        """The text, after its word where that is a reason for doubt."""
        return f"{self.word}: {self.text}" if self.is_doubt else self.text
