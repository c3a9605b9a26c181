# SPDX-License-Identifier: Apache-2.0
"""TOML text as natgauge reads it: recipes, plans and published tables."""

from __future__ import annotations

import tomllib
from typing import Any, Final

#: TOML 1.0 guarantees integers of 64 bits; Python's have no limit, and cannot all be printed.
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def parse(text: str) -> dict[str, Any]:
    """Read a TOML document.

    Raises:
        ValueError: the text is not TOML 1.0, is nested too deeply, has an integer of more than 64 bits, or has the
            character U+0000, which no path and no shell command can have. The message names the reason.
    """
    try:
        document = tomllib.loads(text)
        _check(document)
    except RecursionError:
        raise ValueError("arrays or tables are nested too deeply") from None
    return document


def _check(value: object) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(name)
            _check(inner)
    elif isinstance(value, list):
        for inner in value:
            _check(inner)
    elif isinstance(value, str) and "\0" in value:
        raise ValueError(f"the text {value[: value.index(chr(0))]!r} goes on with the character U+0000")
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ValueError(f"an integer of {value.bit_length()} bits; 64 are possible")
