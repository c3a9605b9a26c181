# SPDX-License-Identifier: Apache-2.0
"""Durations in words: known ones, and those that an estimate makes likely."""

from __future__ import annotations

import math
from typing import Final

#: From here on a duration has minutes, or hours, in place of the smaller unit.
_SECONDS: Final = 90
_MINUTES: Final = 90
#: Campaigns on machines with two shared cores took 1.1 to 2.4 times their estimates: other devices are slower than the
#: simulated one, and disturbed trials are repeated.
_LIKELY_TIMES: Final = 2.5


def duration(seconds: float) -> str:
    """Return seconds in words: "89 s", "1 min 31 s", "1 h 30 min"."""
    if seconds < _SECONDS:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < _MINUTES:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def likely(estimated_seconds: float, most_seconds: float = math.inf) -> str:
    """Return the likely range of a duration that procedures needed on a simulated device: "1 to 3 min".

    `most_seconds` is when a limit of the time ends it.
    """
    estimated_seconds = min(estimated_seconds, most_seconds)
    most = min(estimated_seconds * _LIKELY_TIMES, most_seconds)
    unit, name = (1, "s") if most <= _SECONDS else (60, "min") if most <= 60 * _MINUTES else (3600, "h")
    lower, upper = max(1, round(estimated_seconds / unit)), math.ceil(most / unit)
    return f"{lower} to {upper} {name}" if lower < upper else f"{upper} {name}"
