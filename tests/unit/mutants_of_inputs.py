# SPDX-License-Identifier: Apache-2.0
"""Mutants of documents that people write by hand: slips of the pen, misread manuals, other programs' files."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.unit.mutants import ODD, document, mangled, places, removed, replaced

Table = dict[str, Any]
#: What a terminal, a log or a table obeys.
CONTROLS = ("\u001b[31mred", "\u202etxt.exe", "bell\a", "a\rb", "\u0085next", "\u2028line", "\ud7ff\u200b", "\u007f")
#: Numbers that no setting has.
NUMBERS = (-1, 0, 2**63 - 1, -(2**63), 2**64, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 0.1)
#: Keys that no document has.
UNKNOWN = ("x", "", "a b", "ü", "__class__", "NG_X", "connections ", "Name", "k" * 300, "two\nlines")


def misspelled(word: str, chance: Random) -> str:
    """The word with a letter left out, twice, exchanged with the next one, or in another case."""
    if not word:
        return "x"
    at = chance.randrange(len(word))
    return chance.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
            word.swapcase(),
            word.replace("_", "-"),
            f" {word}",
        )
    )


def _pick(table: Table, chance: Random, kinds: type | tuple[type, ...] = object) -> tuple[Any, ...] | None:
    """The path of a value of these kinds."""
    found = [place for place in places(table) if isinstance(at(table, place), kinds)]
    return chance.choice(found) if found else None


def at(value: Any, place: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for step in place:
        value = value[step]
    return value


def _changed(table: Table, place: tuple[Any, ...] | None, by: Callable[[Any], Any]) -> Table:
    if place is None:
        return table
    changed: Table = replaced(table, place, by(at(table, place)))
    return changed


def _without(table: Table, chance: Random) -> Table:
    place = _pick(table, chance)
    return table if place is None else removed(table, place)


def _odd(table: Table, chance: Random) -> Table:
    return _changed(table, _pick(table, chance), lambda _: chance.choice((*ODD, *NUMBERS, *CONTROLS)))


def _number(table: Table, chance: Random) -> Table:
    place = _pick(table, chance, (int, float))
    return _changed(
        table,
        place,
        lambda old: chance.choice((*NUMBERS, -old, old * 10**6, str(old) if abs(old) < 2**64 else "huge", [old])),
    )


def _word(table: Table, chance: Random) -> Table:
    return _changed(table, _pick(table, chance, str), lambda old: misspelled(old, chance))


def _control(table: Table, chance: Random) -> Table:
    return _changed(table, _pick(table, chance, str), lambda old: old + chance.choice(CONTROLS))


def _renamed(table: Table, chance: Random) -> Table:
    """A key is misspelled, or has a name that no key has."""
    place = _pick(table, chance)
    if place is None or not isinstance(place[-1], str):
        return table
    name = misspelled(place[-1], chance) if chance.random() < 0.7 else chance.choice((*UNKNOWN, *CONTROLS))
    inner = at(table, place[:-1])
    renamed = {name if key == place[-1] else key: value for key, value in inner.items()}
    changed: Table = replaced(table, place[:-1], renamed)
    return changed


def _added(table: Table, chance: Random) -> Table:
    place = _pick(table, chance, dict) if chance.random() < 0.5 else ()
    return _changed(table, place, lambda old: {**old, chance.choice((*UNKNOWN, *CONTROLS)): chance.choice(ODD)})


def _nested(table: Table, chance: Random) -> Table:
    """A value is one level too deep."""
    wrap: tuple[Callable[[Any], Any], ...] = (lambda old: [old], lambda old: {"value": old}, lambda old: [[old], old])
    return _changed(table, _pick(table, chance), chance.choice(wrap))


def _moved(table: Table, chance: Random) -> Table:
    """A key is in another table."""
    place, target = _pick(table, chance), _pick(table, chance, dict)
    if place is None or target is None or not isinstance(place[-1], str) or target[: len(place)] == place:
        return table
    value = at(table, place)
    moved = _changed(table, target, lambda old: {**old, place[-1]: value})
    return moved if chance.random() < 0.5 else removed(moved, place)


def _twice(table: Table, chance: Random) -> Table:
    """An item of a list is there twice, or very often."""
    return _changed(table, _pick(table, chance, list), lambda old: old * chance.choice((2, 2, 2, 600)))


_STRUCTURED = (_without, _odd, _number, _word, _word, _control, _renamed, _renamed, _added, _nested, _moved, _twice)


def mutant(table: Table, text: bytes, chance: Random) -> bytes:
    """The file with one slip or several, in what it says or in how it is written."""
    kind = chance.random()
    if kind < 0.25:
        return mangled(text, chance)
    if kind < 0.28:
        return text.decode().encode(chance.choice(("utf-16", "utf-32", "utf-8-sig")))
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3))):
        table = chance.choice(_STRUCTURED)(table, chance)
    written = document(table)
    if kind < 0.33:
        # A key that is there twice.
        lines = written.splitlines(keepends=True) or ["\n"]
        written += chance.choice(lines)
    return written.encode("utf-8", "surrogatepass")


#: Values of a command line: of every type, with the slips of people who type.
TYPED = (
    *("", " ", "0", "-1", "-0", "1e9", "1e400", "nan", "inf", "0x10", "1_000", "1,000", "10k", "5M", "2m", "1h", "½"),
    *("1%", "10", "100%", "101%", "-1%", "%", "true", "yes", "None", "null", "[]", "{}", "a=b", "ce=", "ce=0,ce=1"),
    *("0-", "3-1", "1-2-3", "0,0", "99999", "1024-65535", "65536", "0-0", "198.18.0.1", "198.18.0.1-198.18.0.0"),
    *("8.8.8.8", "::1", "2001:2::1", "300.1.1.1", "198.18.0.0/16", "shared ", "SHARED", "9" * 5000, "x" * 5000),
    *("$(id)", "; id", "`id`", "\n", "a\nb", "\t", "/", "../..", "~", "--help", "-", "--", "#", "'", '"', *CONTROLS),
)


def typed(value: object, chance: Random) -> str:
    """A text for an option, which its usual value may resemble."""
    usual = "1" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
    return misspelled(usual, chance) if chance.random() < 0.2 else chance.choice(TYPED)
