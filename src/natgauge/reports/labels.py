# SPDX-License-Identifier: Apache-2.0
"""Short labels that distinguish results of one metric, and the names of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from natgauge.records.measurement import Result
from natgauge.records.parameters import TRANSPORT_NAMES
from natgauge.reports.rows import whole

#: Text by parameter, in the order of the label.
_WORDS: Final = {
    "transport": "{} frames",
    "connections": "{} connections",
    "device_cores": "{} cores",
    "frame_size": "{} octets",
    "frame_sizes": "{} octets",
    "down_frame_sizes": "{} octets down",
    "subscribers": "{} subscribers",
    "directions": "{}",
}


def differing(results: Sequence[Result]) -> list[str]:
    """Return the names of labelled parameters in which these results differ."""
    return [name for name in _WORDS if len({str(result.parameter(name)) for result in results}) > 1]


def differing_within(results: Sequence[Result]) -> list[str]:
    """Return the names of labelled parameters in which results of one device differ."""
    gateways = dict.fromkeys(result.gateway for result in results)
    own = [[result for result in results if result.gateway == gateway] for gateway in gateways]
    return list(dict.fromkeys(name for each in own for name in differing(each)))


def words(result: Result, names: Sequence[str]) -> str:
    """Return a result's values of these parameters as text; missing values are left out."""
    values = {name: result.parameter(name) for name in names}
    texts = [_in_words(_WORDS[name], value) for name, value in values.items() if isinstance(value, int | str)]
    return ", ".join(texts)


def names_of(results: Sequence[Result]) -> list[str]:
    """Return a name for each result: its device, and what distinguishes it from other results of its metric."""
    names, seen = [], Counter[tuple[str, str]]()
    for result in results:
        group = [other for other in results if other.metric == result.metric]
        name = ", ".join(part for part in (result.gateway, words(result, differing(group))) if part)
        seen[result.metric, name] += 1
        again = seen[result.metric, name]
        names.append(name if again == 1 else f"{name} ({again})")
    return names


def _in_words(words_of: str, value: int | str) -> str:
    value = next((name for transport, name in TRANSPORT_NAMES.items() if transport == value), value)
    return (words_of.removesuffix("s") if value == 1 else words_of).format(whole(value))
