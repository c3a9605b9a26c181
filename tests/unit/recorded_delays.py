# SPDX-License-Identifier: Apache-2.0
"""Delays of single frames, as a receiver would record them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

from natgauge.delays import Delays, Variation


def inter_packet_variations(delays: Sequence[float | None]) -> list[float | None]:
    """D(i) - D(i-1) of frames in the order they were sent (RFC 5481 section 4.1); None where one of a pair was lost."""
    return [None if before is None or delay is None else delay - before for before, delay in itertools.pairwise(delays)]


def recorded(delays: Sequence[float | None]) -> Delays:
    """Delays of single frames, in the order they were sent (None = lost), as a receiver would record them.

    Raises:
        ValueError: no frame came.
    """
    came = [delay for delay in delays if delay is not None]
    if not came:
        raise ValueError("no frame came, so there is no delay")
    return Delays(
        frames=len(came),
        minimum=min(came),
        maximum=max(came),
        mean=math.fsum(came) / len(came),
        negative=sum(delay < 0 for delay in came),
        buckets=_exact(came),
        variation=_variation([variation for variation in inter_packet_variations(delays) if variation is not None]),
    )


def _variation(differences: Sequence[float]) -> Variation | None:
    if not differences:
        return None
    return Variation(len(differences), min(differences), max(differences), _exact(differences))


def _exact(values: Sequence[float]) -> tuple[tuple[float, float, int], ...]:
    """Buckets without width: exact, as there are few values."""
    return tuple((value, value, frames) for value, frames in sorted(Counter(values).items()))
