# SPDX-License-Identifier: Apache-2.0
"""Counts of phase 1, and of a phase in which nothing was sent."""

from __future__ import annotations

from typing import Final

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.errors import BrokenError


def stream_of(**counts: object) -> StreamCounts:
    """Return counts of which only these are known; the others are 0, or absent."""
    none = {name: 0 for name, field in StreamCounts.model_fields.items() if field.is_required()}
    return StreamCounts.model_validate(none | {"messages": []} | counts)


#: Counts of a phase in which nothing was sent.
NO_FRAMES: Final = stream_of()


def phase1_of(result: TrialResult) -> StreamCounts:
    """Return the counts of phase 1, for trials that have a phase 1."""
    if result.phase1 is None:
        raise BrokenError("trial: natgauge-engine left phase 1 out of its result")
    return result.phase1
