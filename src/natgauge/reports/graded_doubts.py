# SPDX-License-Identifier: Apache-2.0
"""Doubts of several results by what they could change: one description for text, tables, pages and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from natgauge.figure_text import in_percent
from natgauge.notes import GRADES, Grade, Note, known, words_of
from natgauge.reports.labels import grouped

NameT = TypeVar("NameT")

#: What the doubts of each grade can do.
GRADE_TITLES: Final[Mapping[Grade, str]] = {
    "answer": "Could change the answer",
    "interval": "Widens intervals",
    "information": "For information",
}
#: Marks of figures with doubts of each grade; those for information need none.
MARKS: Final[Mapping[Grade, str]] = {"answer": "†", "interval": "*", "information": ""}
#: What each mark says of its figure.
_MARKED: Final[Mapping[Grade, str]] = {"answer": "may be another value", "interval": "a doubt about its interval"}
#: The same of results that have a doubt in a lesser grade than others.
_LESSER: Final[Mapping[Grade, str]] = {"interval": "about the interval", "information": "for information"}
#: Doubts whose texts are printed below tables whatever their grade.
_FINDINGS: Final = words_of(lambda doubt: doubt.shows_text)
#: The most texts of such a doubt that are printed; of more, only the word is.
_MOST_TEXTS: Final = 4


@dataclass(frozen=True, slots=True)
class Doubted(Generic[NameT]):
    """A doubt, and the results that have it.

    Attributes:
        names: names of the results, or of the gateways of a comparison, that have a doubt of this word and grade.
        lesser: names of those that have the doubt in a lesser grade alone, by that grade.
    """

    doubt: Note
    names: tuple[NameT, ...]
    lesser: Mapping[Grade, tuple[NameT, ...]] = field(default_factory=dict)

    @property
    def remedy(self) -> str:
        """What to do about it; empty where it could not change the answer, or says it itself."""
        return known(self.doubt.word).remedy if self.doubt.grade == "answer" else ""


def mark(doubts: Iterable[Note]) -> str:
    """Return the mark of a figure with these doubts, by the gravest of them; empty where it needs none."""
    grades = {doubt.grade for doubt in doubts}
    return next((sign for grade, sign in MARKS.items() if grade in grades), "")


def read_in(cells: Iterable[str]) -> str:
    """Return what the marks at the ends of cells mean, whose doubts are below; empty where no cell has one."""
    ends = {cell[-1:] for cell in cells}
    said = "; ".join(f"{MARKS[grade]} {meaning}" for grade, meaning in _MARKED.items() if MARKS[grade] in ends)
    return f"{said} (see below)." if said else ""


def explained(every: Iterable[Sequence[Note]]) -> str:
    """Return what the marks of figures with these doubts mean, as sentences; empty where there is no mark."""
    words: dict[Grade, dict[str, None]] = {}
    for doubts in every:
        sign = mark(doubts)
        for doubt in doubts:
            if sign and doubt.grade is not None and MARKS[doubt.grade] == sign:
                words.setdefault(doubt.grade, {})[_plainly(doubt)] = None
    texts = (f"{MARKS[grade]} {said}: {'; '.join(words[grade])}." for grade, said in _MARKED.items() if grade in words)
    return " ".join(texts)


def _plainly(doubt: Note) -> str:
    """What a doubt says to readers who do not know its word; of a doubt of another version there is only the word."""
    return known(doubt.word).plainly or doubt.word


def doubted(
    every: Iterable[tuple[NameT, Iterable[Note]]], apart: Callable[[Note], bool] | None = None
) -> Mapping[Grade, Sequence[Doubted[NameT]]]:
    """Return doubts by grade, each word once, in its gravest grade.

    Args:
        apart: whether a doubt is separate from doubts of its word with other texts; then those of other grades are
            separate, too. None = no doubt is.
    """
    having: dict[tuple[str, str, str], list[tuple[Grade, Note, NameT]]] = {}
    for name, doubts in every:
        for doubt in doubts:
            grade = doubt.grade or "information"
            own = ("", "") if apart is None else (grade, doubt.text if apart(doubt) else "")
            having.setdefault((doubt.word, *own), []).append((grade, doubt, name))
    found: dict[Grade, list[Doubted[NameT]]] = {grade: [] for grade in GRADES}
    for alike in having.values():
        names: dict[Grade, tuple[NameT, ...]] = {}
        for grade in GRADES:
            graver = {name for own in names.values() for name in own}
            own_names = dict.fromkeys(name for of, _, name in alike if of == grade and name not in graver)
            names |= {grade: tuple(own_names)} if own_names else {}
        gravest, *_ = names
        first = next(doubt for grade, doubt, _ in alike if grade == gravest)
        lesser = {grade: own for grade, own in names.items() if grade != gravest}
        found[gravest].append(Doubted(first, names[gravest], lesser))
    return found


def without_causes(named: Iterable[tuple[NameT, Sequence[Note]]]) -> list[tuple[NameT, Sequence[Note]]]:
    """Return doubts without those that others name as their causes.

    A word stays with all its results where one of them lacks the other doubt: with some of them it would seem that only
    these have it.
    """
    every = _without_told(named)
    stay = {one.word for _, doubts in every for one in doubts if not _is_named(one, doubts)}
    return [(name, [one for one in doubts if one.word in stay]) for name, doubts in every]


def _without_told(named: Iterable[tuple[NameT, Sequence[Note]]]) -> list[tuple[NameT, Sequence[Note]]]:
    """Return doubts without those that speak of the same trials as the text of another one of their results.

    What is not told so of one of several results stays with all: beside its name the others would seem to lack it.
    """
    every = list(named)
    untold = {one.word for _, doubts in every for one in doubts if not _is_told(one, doubts)}
    return [(name, [one for one in doubts if one.word in untold]) for name, doubts in every]


def _is_told(doubt: Note, doubts: Iterable[Note]) -> bool:
    by = known(doubt.word).told_by
    return any(other.word in by and other.count > 1 for other in doubts)


def _is_named(doubt: Note, doubts: Iterable[Note]) -> bool:
    """Whether another of these doubts of a result names this one as a cause."""
    of = known(doubt.word).cause_of
    return doubt.grade != "answer" and any(other.word == of for other in doubts)


def graded(  # noqa: PLR0913 - how the lines are told, by keyword
    named: Iterable[tuple[NameT, Sequence[Note]]],
    having: Callable[[Sequence[NameT]], str],
    *,
    called: Callable[[NameT], str] = str,
    brief: bool = False,
    each: bool = False,
    marked: bool = False,
    instead: Mapping[str, str] | None = None,
    grades: Collection[Grade] = GRADES,
) -> list[str]:
    """Return doubts of some grades as lines; doubts that could change the answer come first.

    Args:
        having: returns the text that follows the word of a doubt: the names that have the doubt.
        called: returns the name of the result of which a text is an example.
        brief: whether only doubts that could change the answer have their text, and others only their word; causes that
            a doubt names are with that doubt alone.
        each: whether doubts of a word with different texts have a line each, and facts on the device have their text;
            otherwise the text is that of the first, as an example.
        instead: by the word of a doubt, what to do about it here instead of its own remedy.
    """
    every_named = _without_told(named)
    texts_of = {
        word: {one.text for _, doubts in every_named for one in doubts if one.word == word} for word in _FINDINGS
    }

    def in_full(doubt: Note) -> bool:
        is_finding = each and len(texts_of.get(doubt.word, "")) in range(1, _MOST_TEXTS + 1)
        return not brief or doubt.grade == "answer" or is_finding

    shown = without_causes(every_named) if brief else every_named
    lines = []
    for grade, every in doubted(shown, in_full if each else None).items():
        if grade not in grades:
            continue
        title = _title(grade, marked=marked)
        named_doubts = [(one, f"{one.doubt.word}{_of_each_grade(one, having)}") for one in every]
        for one, name in named_doubts:
            if in_full(one.doubt):
                example = ""
                if not each and len({other.text for other in _alike(one.doubt, every_named)}) > 1:
                    example = f", for example{f' of {called(one.names[0])}' if len(every_named) > 1 else ''}"
                remedy = (instead or {}).get(one.doubt.word, one.remedy)
                lines.append(f"{title}: {name}{example}: {one.doubt.text}. {remedy}".rstrip())
        words = ", ".join(
            f"{name}{_share(one.doubt, every_named)}{_causes(one, every_named) if brief else ''}"
            for one, name in named_doubts
            if not in_full(one.doubt)
        )
        lines += [f"{title}: {words}."] if words else []
    return lines


def _of_each_grade(one: Doubted[NameT], having: Callable[[Sequence[NameT]], str]) -> str:
    """The names that have a doubt, those of lesser grades behind the others."""
    return having(one.names) + "".join(f", {_LESSER[grade]}{having(names)}" for grade, names in one.lesser.items())


def summed(every: Sequence[tuple[NameT, Sequence[Note]]]) -> Mapping[Grade, Sequence[Doubted[NameT]]]:
    """Return doubts by grade, each word once, without the causes that others name.

    The text of a doubt is that of its first result. Where those of others differ, the causes that these name are in
    parentheses behind it, as causes of others: the first may have none of them.
    """

    def with_causes(one: Doubted[NameT]) -> Doubted[NameT]:
        texts = {doubt.text for _, doubts in every for doubt in doubts if doubt.word == one.doubt.word}
        causes = _causes(one, every, "causes in other results") if len(texts) > 1 else ""
        return replace(one, doubt=replace(one.doubt, text=f"{one.doubt.text}{causes}"))

    return {grade: list(map(with_causes, own)) for grade, own in doubted(without_causes(every)).items()}


def _causes(one: Doubted[NameT], every: Sequence[tuple[NameT, Sequence[Note]]], head: str = "possible causes") -> str:
    """The words of the causes that a doubt names, which have no place of their own, in parentheses."""
    stay = {doubt.word for _, doubts in without_causes(every) for doubt in doubts}
    names = {name for own in (one.names, *one.lesser.values()) for name in own}
    causes = dict.fromkeys(
        doubt.word
        for name, doubts in every
        for doubt in doubts
        if name in names and known(doubt.word).cause_of == one.doubt.word and doubt.word not in stay
    )
    return f" ({head}: {', '.join(causes)})" if causes else ""


def _alike(doubt: Note, every: Iterable[tuple[object, Sequence[Note]]]) -> Iterator[Note]:
    """The doubts of this word and grade."""
    return (one for _, doubts in every for one in doubts if (one.word, one.grade) == (doubt.word, doubt.grade))


def _title(grade: Grade, *, marked: bool) -> str:
    return f"{MARKS[grade] if marked else ''} {GRADE_TITLES[grade]}".lstrip()


def in_paper(
    named: Iterable[tuple[NameT, Sequence[Note]]], having: Callable[[Sequence[NameT]], str], *, brief: bool = False
) -> list[str]:
    """Return doubts as a line for each grade, for readers who measure nothing: what happened, without their words.

    Each is there once, and nothing says what to do. `brief`: those of figures with a mark alone, by the mark.
    """
    every_named, lines = _without_told(named), list[str]()
    shown = without_causes(every_named) if brief else every_named
    if brief:
        shown = [(name, [one for one in doubts if mark([one]) == mark(doubts)]) for name, doubts in shown]
    for grade, every in doubted(shown, lambda _: False).items():
        title = f"{MARKS[grade]} {_MARKED.get(grade, '')}" if brief else _title(grade, marked=True)
        said = [
            f"{_plainly(one.doubt)}{f'{having(one.names)}{_share(one.doubt, every_named)}'.replace(') (', '; ')}"
            for one in every
        ]
        lines += [f"{title}: {'; '.join(said)}."] if said and (MARKS[grade] or not brief) else []
    return lines


def _share(doubt: Note, every: Iterable[tuple[object, Sequence[Note]]]) -> str:
    """The share by which a rate may be wrong, of several results the smallest and the largest, in parentheses."""
    values = sorted({one.value for one in _alike(doubt, every) if one.value is not None})
    words = {"too high": "too high by up to {}", "too low": "too low by at least {}"}
    direction = known(doubt.word).share
    if not values or not direction:
        return ""
    least, most = (in_percent(value) for value in (values[0], values[-1]))
    shares = most if least == most else f"{least.removesuffix(' %')} to {most}"
    return f" ({words[direction].format(shares)})"


def of_columns(
    every: Sequence[tuple[str, str, Sequence[Note]]], noun: str = "", *, brief: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the doubts of a table's columns as lines, with the columns that have each doubt; and those of a paper.

    Args:
        every: block and heading of each column, and its doubts; the block is empty in a table of one block.
    """

    def having(found: Sequence[tuple[str, str]]) -> str:
        return f" ({columns(found, noun)})" if len(found) < len(every) else " (all)" if len(every) > 1 else ""

    named = [((block, heading), doubts) for block, heading, doubts in every]
    shown = graded(named, having, brief=True, each=True, marked=True)
    return tuple(shown), tuple(in_paper(named, having, brief=brief))


def columns(places: Sequence[tuple[str, str]], noun: str = "") -> str:
    """Return the names of columns by block, such as "throughput of x: columns 1, 3"."""
    texts = []
    for block, headings in grouped(places).items():
        nouns = f"{noun}{'s' if len(headings) > 1 else ''} " if noun else ""
        texts.append(": ".join(filter(None, (block, f"{nouns}{', '.join(headings)}"))))
    return "; ".join(texts)
