# SPDX-License-Identifier: Apache-2.0
"""Short labels that distinguish results of one metric, the names of results, and groups by them.

A label is made of the parameters in which results differ, as their records have them. Results that differ in none are
numbered as runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import JsonValue

from natgauge.analysis.derived import AXES, RANGES, varied_with
from natgauge.analysis.unit_frames import MIXES, mix_text, own_size
from natgauge.figure_text import given, with_noun
from natgauge.records.measurement import Result
from natgauge.records.parameters import TRANSPORT_NAMES, describe, is_fact, separated

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

#: Words for a value of these parameters, in the order of the label; other values follow the parameter's label.
_WORDS: Final[Mapping[str, str]] = {
    "transport": "frames",
    "connections": "connections",
    "device_cores": "cores",
    "frame_size": "octets",
    "frame_sizes": "",
    "down_frame_sizes": "from outside",
    "subscribers": "subscribers",
    "directions": "",
    "gateway": "",
}
#: Facts that the user chooses by other inputs.
_CHOSEN: Final = RANGES.union(axis.parameter for axis in AXES)
#: A longer value is cut.
_LONGEST: Final = 24


def differing(results: Sequence[Result]) -> list[str]:
    """Return the names of the parameters that distinguish these results, those with words first.

    Between gateways only parameters with words count: what a gateway is set to differs with it. Parameters that grow
    with another one, and facts of the host where an input differs, too, are left out.
    """
    names = [*_WORDS, *(name for name in _moving(results) if name not in _WORDS)]
    own = set(_differing_within(results))
    found = [
        name for name in names if name in own or (name in _WORDS and name != "gateway" and _differs(name, results))
    ]
    return _without_followers(found, results)


def differing_within(results: Sequence[Result]) -> list[str]:
    """Return the names of the parameters in which results of one gateway differ, as `differing` has them."""
    own = set(_differing_within(results))
    return [name for name in differing(results) if name in own]


def words(result: Result, names: Sequence[str]) -> str:
    """Return a result's values of these parameters as text; missing values are left out."""
    values = ((name, own_size(result.parameters) if name == "frame_size" else result.parameter(name)) for name in names)
    return ", ".join(
        in_words(name, value) if name in _WORDS else in_words(name, value, " = ")
        for name, value in values
        if value is not None
    )


def names_of(results: Sequence[Result]) -> list[str]:
    """Return a name for each result: its gateway, and what distinguishes it from other results of its metric."""
    named: dict[int, str] = {}
    for metric in dict.fromkeys(result.metric for result in results):
        group = [result for result in results if result.metric == metric]
        names = differing(group)
        texts = [", ".join(part for part in (result.gateway, words(result, names)) if part) for result in group]
        named |= dict(zip(map(id, group), _numbered(texts), strict=True))
    return [named[id(result)] for result in results]


def point_of(result: Result, results: Sequence[Result]) -> str:
    """Return what distinguishes a result from others of its metric and gateway; empty where it is alone."""
    alike = (other for other in results if (other.metric, other.gateway) == (result.metric, result.gateway))
    own = list({id(other): other for other in alike}.values())
    names = differing(own)
    texts = _numbered([words(other, names) for other in own])
    return next(text for other, text in zip(own, texts, strict=True) if other is result) if len(own) > 1 else ""


def in_words(name: str, value: JsonValue, sign: str = " ") -> str:
    """Return a parameter's value with what it is, such as "2 cores" or "alpha 0.5"; `sign` is between the two."""
    text = mix_text(value) if name in MIXES and value is not None else text_of(value)
    if name in _WORDS and value is not None:
        return with_noun(text, _WORDS[name]) if _WORDS[name] else text
    described = describe(name)
    if described.unit == "share" and isinstance(value, int | float):
        return f"{described.label}{sign}{given(value)}"
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return f"{described.label}{sign}{text} {'' if value is None else described.unit}".rstrip()


def text_of(value: JsonValue) -> str:
    """Return a parameter's value as people read it."""
    if isinstance(value, str):
        return next((name for transport, name in TRANSPORT_NAMES.items() if transport == value), value)
    return separated(value)


def _numbered(texts: Sequence[str]) -> list[str]:
    """Texts of which those that are there several times have the number of their run."""
    counts, seen = Counter(texts), Counter[str]()
    numbered = []
    for text in texts:
        seen[text] += 1
        run = f"run {seen[text]}" if counts[text] > 1 else ""
        numbered.append(", ".join(part for part in (text, run) if part))
    return numbered


def _moving(results: Sequence[Result]) -> Iterator[str]:
    """Parameters that move a figure of these results, each once."""
    for name in dict.fromkeys(name for result in results for _, name, _ in result.parameters.items()):
        if name != "gateway" and describe(name).moves_figure_of(results[0].metric):
            yield name


def _differing_within(results: Sequence[Result]) -> list[str]:
    """The inputs in which results of one gateway differ; facts of the host only where no input does."""
    by_gateway = grouped((result.gateway, result) for result in results)
    several = [own for own in by_gateway.values() if len(own) > 1]
    found = [name for name in _moving(results) if any(_differs(name, own) for own in several)]
    chosen = [name for name in found if name in _CHOSEN or not is_fact(name)]
    return chosen or found


def _differs(name: str, results: Sequence[Result]) -> bool:
    return len({str(result.parameter(name)) for result in results}) > 1


def _without_followers(names: Collection[str], results: Sequence[Result]) -> list[str]:
    """Names without those that only grow with one before them: equal steps of that one have equal values of it."""
    kept: list[str] = []
    for name in names:
        steps = {(result.gateway, *(str(result.parameter(each)) for each in kept)) for result in results}
        finer = {(result.gateway, *(str(result.parameter(each)) for each in (*kept, name))) for result in results}
        if len(finer) > len(steps) or not any(name in varied_with(before) for before in kept):
            kept.append(name)
    return kept


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key; keys and values are in the order in which they come."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
