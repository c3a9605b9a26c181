# SPDX-License-Identifier: Apache-2.0
"""TOML text as natgauge reads it: recipes, plans and published tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

#: TOML 1.0 guarantees integers of 64 bits; Python's have no limit, and cannot all be printed.
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
#: The most parts of a dotted key; the time that the parser takes grows with their square.
_MOST_PARTS: Final = 256
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
#: What the parser says of a key, or of a table, that has a value already.
_TWICE: Final = re.compile(
    r"Cannot (?:overwrite a value|declare .* twice) \(at (?:line (\d+), column \d+|end of document)\)"
)
#: The key, or the table, that a line names.
_NAMED: Final = re.compile(rf"\[*{_PART}(?:\.{_PART})*(?:\]+|(?=[ \t]*=))")
_LONG_KEY: Final = re.compile(rf"(?:^|[\[{{,])[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MOST_PARTS}}}", re.MULTILINE)


def parse(text: str) -> dict[str, Any]:
    """Read a TOML document."""
    if (key := _LONG_KEY.search(text)) is not None:
        line = text.count("\n", 0, key.end()) + 1
        raise ValueError(f"a key of more than {_MOST_PARTS} parts (at line {line}); write a shorter one")
    try:
        # Editors on Windows begin a file with a byte order mark, which says nothing of UTF-8.
        document = tomllib.loads(text.removeprefix("\ufeff"))
        _check(document)
    except tomllib.TOMLDecodeError as error:
        raise _plainly(error, text) from None
    except RecursionError:
        raise ValueError(f"arrays or tables are nested too deeply (at line {_deepest(text)})") from None
    return document


def _plainly(error: tomllib.TOMLDecodeError, text: str) -> ValueError:
    """Return the error, in the words of TOML where the parser speaks of its own work: something is there twice."""
    twice = _TWICE.match(str(error))
    if twice is None:
        return error
    lines = text.rstrip().splitlines()
    number = min(int(twice[1] or len(lines)), len(lines))
    # Of a value of several lines the last one is known.
    named = _NAMED.match(lines[number - 1].strip())
    return ValueError(f"{named[0] if named else 'a key'} is there twice (again at line {number}); leave one out")


def _check(value: object, key: str = "") -> None:
    """Refuse values that natgauge can hand to nobody; `key` is the path of the value's key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(name, key)
            # An empty key is a key, too.
            step = name or '""'
            _check(inner, f"{key}.{step}" if key else step)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, f"{key}[{number}]")
    elif isinstance(value, str) and "\0" in value:
        where = f"{key}: " if key else ""
        raise ValueError(f"{where}the text {value[: value.index(chr(0))]!r} continues with the character U+0000")
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ValueError(f"{key}: an integer of {value.bit_length()} bits; 64 are possible, one of them the sign")


def _deepest(text: str) -> int:
    """The number of the line up to which most brackets are open."""
    depths = list(accumulate(sum(map(line.count, "[{")) - sum(map(line.count, "]}")) for line in text.splitlines()))
    return max(range(len(depths)), key=depths.__getitem__, default=0) + 1


#: Rules of pydantic on what a file's author wrote, in the words of TOML, by their type; braces are of its context.
_RULES: Final = {
    "missing": "is missing",
    "dict_type": 'is no table; write "name = value" below [...], one bracket on each side',
    "model_type": 'is no table; write "name = value" below [...], one bracket on each side',
    "list_type": "is no list; write [...], with a comma between two values",
    "tuple_type": "is no list; write [...], with a comma between two values",
    "string_type": "is no text; write it in quotes",
    "int_type": "is no whole number",
    "int_parsing": "is no whole number",
    "int_from_float": "is no whole number",
    "float_type": "is no number",
    "bool_type": "is neither true nor false",
    "too_short": "has too few entries; the least number is {min_length}",
    "too_long": "has too many entries; the largest number is {max_length}",
    "greater_than_equal": "is too small; the least is {ge}",
    "less_than_equal": "is too large; the largest is {le}",
    "greater_than": "is too small; it must be above {gt}",
    "less_than": "is too large; it must be below {lt}",
    "literal_error": "is not {expected}",
    "string_pattern_mismatch": "has characters, or a length, that it may not have; it must match {pattern}",
}


def rule_in_words(error: Mapping[str, Any]) -> str:
    """Return the rule that a value of a file breaks, as what follows the value in a sentence."""
    words = _RULES.get(error["type"])
    return str(error["msg"]) if words is None else words.format(**error.get("ctx", {}))
