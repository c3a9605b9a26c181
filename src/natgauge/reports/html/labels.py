# SPDX-License-Identifier: Apache-2.0
"""What tells results of one metric from each other, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.records.measurement import Result
from natgauge.reports.rows import whole

#: By parameter, in the order in which they are told.
_WORDS: Final = {
    "connections": "N = {}",
    "device_cores": "{} cores",
    "frame_size": "{} octets",
    "subscribers": "{} subscribers",
    "directions": "{}",
}


def differing(results: Sequence[Result]) -> list[str]:
    """Names of the parameters that these results differ in, of those that are told."""
    return [name for name in _WORDS if len({str(result.parameter(name)) for result in results}) > 1]


def words(result: Result, names: Sequence[str]) -> str:
    """Its values of these parameters; those that it has none of are left out."""
    values = {name: result.parameter(name) for name in names}
    texts = [_in_words(_WORDS[name], value) for name, value in values.items() if isinstance(value, int | str)]
    return ", ".join(texts)


def _in_words(words_of: str, value: int | str) -> str:
    return (words_of.removesuffix("s") if value == 1 else words_of).format(whole(value))
