# SPDX-License-Identifier: Apache-2.0
"""Whether a ratio of costs and its interval follow from the rounds of a comparison, at whichever interim analysis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from natgauge.records.comparison import RatioEstimate
from natgauge.statistics.interim import possible_alphas
from natgauge.statistics.interval import MedianEstimate, finite
from natgauge.stored.contradiction import ContradictionError, expect, same


def check_ratio(estimate: RatioEstimate, at: Callable[[float], MedianEstimate | None], where: Path) -> None:
    """Check a ratio and its interval by what the rounds give at an analysis that spent so much alpha."""
    name = f"{estimate.gateway}, {estimate.quantity}"
    analyses = map(at, possible_alphas(1 - estimate.level))
    # The first one spent most, so that no other one has an interval where it has none.
    first, said = next(analyses), (estimate.low, estimate.high)
    if not any(all(map(same, said, _ends(found))) for found in chain([first], analyses)):
        shown = [" to ".join("none" if end is None else f"{end:.6g}" for end in ends) for ends in (said, _ends(first))]
        source = "its rounds give, at the first analysis,"
        raise ContradictionError(where, f"{name}: the interval of the ratio", shown[0], source, shown[1])
    # There is none where limits leave an end of its interval open.
    if estimate.ratio is not None:
        expect(f"{name}: ratio", estimate.ratio, first and finite(first.value), "its rounds give", where)


def _ends(found: MedianEstimate | None) -> tuple[float | None, float | None]:
    return (None, None) if found is None else (finite(found.lower), finite(found.upper))
