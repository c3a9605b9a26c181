# SPDX-License-Identifier: Apache-2.0
"""Short labels that distinguish results of one metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.records.measurement import Result
from natgauge.reports.rows import whole

#: Text by parameter, in the order of the label.
_WORDS: Final = {
    "connections": "N = {}",
    "device_cores": "{} cores",
    "frame_size": "{} octets",
    "subscribers": "{} subscribers",
    "directions": "{}",
}


def differing(results: Sequence[Result]) -> list[str]:
    """Return the names of labelled parameters in which these results differ."""
    return [name for name in _WORDS if len({str(result.parameter(name)) for result in results}) > 1]


def words(result: Result, names: Sequence[str]) -> str:
    """Return a result's values of these parameters as text; missing values are left out."""
    values = {name: result.parameter(name) for name in names}
    texts = [_in_words(_WORDS[name], value) for name, value in values.items() if isinstance(value, int | str)]
    return ", ".join(texts)


def _in_words(words_of: str, value: int | str) -> str:
    return (words_of.removesuffix("s") if value == 1 else words_of).format(whole(value))
