# SPDX-License-Identifier: Apache-2.0
"""Notes on a result as data: a word from a closed set for programs, a text for people; properties of each doubt.

Code compares words. The text may be reworded at any time, and nothing reads it.

`natgauge.doubts` declares each doubt in one entry, with the condition on the facts of a measurement. A record is read
without what measured it, so `DECLARED` has a copy of the entries without their conditions, for programs that store,
compare or show results.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Final, Literal, get_args

from natgauge.doubt_words import DoubtWord

#: The file with the copy, made of the entries by `python -m tools.described`.
DECLARED: Final = "known_doubts.toml"

#: What a doubt can change: the answer; the interval of the figure; nothing, but a reader must know it.
Grade = Literal["answer", "interval", "information"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDoubt:
    """The properties of a doubt that do not depend on a measurement.

    Attributes:
        plainly: what happened, as the end of a sentence for readers of a paper, who do not know the word.
        grade: what the doubt can change, unless a note has a grade of its own.
        remedy: what to do about the doubt where it could change the answer; empty = its text says it.
        share: direction in which a rate may be wrong by the share that is the note's value. "too high": the device
            surely does rate / (1 + share). "too low": the tester took this share of the device's time, and the device
            does rate / (1 - share) without it. Empty = the value is no such share.
        leaves: end of a rate that stays certain where the doubt could change the answer: "at least" this rate, or "at
            most"; "bounds" where two bounds already express the doubt. Empty = the doubt leaves no end certain.
        limit: what limited instead of the rate of the device, for the line "Bottleneck"; empty = the doubt names none.
        shows_text: whether tables print the text even if the doubt could not change the answer: the text has a fact on
            the device that the figure lacks.
        cause_of: word of the doubt whose text names this one as a cause, wherever a result has both; empty = none does.
        told_by: words of doubts whose texts say this one, too, wherever these count trials (`Note.count` above 1).
    """

    word: str
    plainly: str = ""
    grade: Grade = "interval"
    remedy: str = ""
    share: Literal["", "too high", "too low"] = ""
    leaves: Literal["", "at least", "at most", "bounds"] = ""
    limit: str = ""
    has_cause: bool = False
    hides: bool = False
    shows_text: bool = False
    cause_of: str = ""
    told_by: tuple[str, ...] = ()


@cache
def known_doubts() -> Mapping[str, KnownDoubt]:
    """Every doubt by its word, in the order of the entries."""
    stored = tomllib.loads(resources.files(__package__).joinpath(DECLARED).read_text(encoding="utf-8"))
    return {
        word: KnownDoubt(word=word, **{**properties, "told_by": tuple(properties.get("told_by", ()))})
        for word, properties in stored.items()
    }


def known(word: str) -> KnownDoubt:
    """The properties of a doubt; of a word that is no doubt, those of one that changes nothing."""
    return known_doubts().get(word) or KnownDoubt(word=word, grade="information")


def words_of(having: Callable[[KnownDoubt], bool]) -> frozenset[str]:
    """Return the words of the doubts that have a property."""
    return frozenset(word for word, doubt in known_doubts().items() if having(doubt))


#: Words of doubts, and subjects of notes that are no reason for doubt.
NoteWord = Literal[
    DoubtWord,
    "device", "method", "own delay", "phase 1", "repetitions", "search", "settings", "tester", "throughput", "trials",
]  # fmt: skip
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
