# SPDX-License-Identifier: Apache-2.0
"""Documents with odd values and damaged octets, for tests of what refuses them."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "natgauge" / "gateways" / "recipes"
EXAMPLES = ROOT / "examples"
#: Values of every TOML type, and those at which a shell, a path or a number breaks.
ODD: tuple[Any, ...] = (
    *("", " ", "x", "../x", "a/b", "two\nlines", "\u0000", "ü", "x" * 5000, "NG_X"),
    *(0, -1, 2**63, 16**5000, 1.5, math.nan, math.inf, True),
    *([], [[]], [1], [""], [{}], {}, {"": ""}, {"x": {"y": [1]}}),
)
#: Recipes of every shape: a chain, a process, all knobs, another system, port sets.
RECIPES = ("464xlat-tayga", "map-t", "nftables-nat44", "tayga-nat64", "openbsd-pf-nat44")

#: A plan with every part.
PLAN: dict[str, Any] = {
    "name": "small",
    "gateways": ["nftables-nat44"],
    "repetitions": "auto",
    "profile": "quick",
    "seed": 1,
    "lab": {"placement": "shared", "cores": "1"},
    "traffic": {"frame_size": 64},
    "device": {"hash_size": "2^ceil(log2(N))"},
    "series": {"udp_timeout": [300], "error": ["5%"]},
    "point": [{"name": "first", "connections": 1000, "repetitions": 1}],
    "measure": [{"metric": "throughput", "gateways": ["nftables-nat44"], "points": ["first"], "trial_seconds": 1}],
}

Step = str | int


def written(value: Any) -> str:
    """A value as TOML has it, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        # Hexadecimal digits have no limit, neither in TOML nor in Python.
        return hex(value) if value >= 0 else str(value)
    if isinstance(value, float):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\u007f", "\\u007f")


def document(table: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(name)} = {written(value)}\n" for name, value in table.items())


def places(value: Any, *above: Step) -> Iterator[tuple[Step, ...]]:
    """The path of every value in a document, the document's own excepted."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*above, step)
        yield from places(one, *above, step)


def replaced(value: Any, place: tuple[Step, ...], by: Any) -> Any:
    """A copy with another value at one place."""
    if not place:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], by)
    return copy


def removed(value: Any, place: tuple[Step, ...]) -> Any:
    """A copy without the value at one place."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = removed(value[place[0]], place[1:])
    return copy


def mutants(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with each value removed, and with each value replaced by each odd one."""
    for place in places(table):
        yield removed(table, place)
        for odd in ODD:
            yield replaced(table, place, odd)


def mutant_of_several(table: dict[str, Any], chance: Random) -> dict[str, Any]:
    """The document with one to five of its values, mostly one or two, removed or replaced by odd ones."""
    mutant: dict[str, Any] = table
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        if not (known := list(places(mutant))):
            break
        place = chance.choice(known)
        mutant = removed(mutant, place) if chance.random() < 0.2 else replaced(mutant, place, chance.choice(ODD))
    return mutant


def parsed(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def mangled(text: bytes, chance: Random) -> bytes:
    """The text with one to three of its octets, spans or lines changed, removed, repeated or exchanged."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(_MANGLINGS)(text, chance)
    return text


def _octet(text: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]


def _bit(text: bytes, chance: Random) -> bytes:
    at = chance.randrange(max(1, len(text)))
    return text[:at] + bytes(octet ^ 1 << chance.randrange(8) for octet in text[at : at + 1]) + text[at + 1 :]


def _cut(text: bytes, chance: Random) -> bytes:
    return text[: chance.randrange(len(text) + 1)]


def _without_span(text: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.randint(1, 40) :]


def _with_span_twice(text: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    span = text[at : at + chance.randint(1, 400)]
    return text[:at] + span + text[at:]


def _with_token(text: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(_TOKENS) + text[at:]


def _of_lines(text: bytes, chance: Random) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


#: Pieces at which a parser may stumble.
_TOKENS = (
    *(b"null", b"NaN", b"1e999", b"-0", b"9" * 400, b"0x10", b"true", b'"', b"'", b"\\", b"\\u0000", b"\\ud800"),
    *(
        b"[" * 300,
        b"{" * 300,
        b"]]",
        b"}}",
        b",",
        b":",
        b"=",
        b"#",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
    ),
)
_MANGLINGS = (_octet, _bit, _cut, _without_span, _with_span_twice, _with_token, _of_lines)
