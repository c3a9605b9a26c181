# SPDX-License-Identifier: Apache-2.0
"""Draws with replacement: a phase 1 whose frames select their four tuples independently of each other.

RFC 9693 section 4.4 requires that each frame of phase 1 opens a connection. Draws do not: of S four tuples, N draws
select S * (1 - (1 - 1/S)^N) on average, which is S * (1 - e^(-N/S)) for large S. N may be larger than S, as in Table 23
of Lencse, Shima, Cho (Computer Communications 210, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from natgauge.inputs.input import chosen
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.words import DRAWN, MAXIMUM_CONNECTIONS


@dataclass(frozen=True, kw_only=True)
class DrawSettings(TrialSettings):
    """Settings of a metric whose phase 1 may draw four tuples."""

    draws: int | None = chosen(
        None,
        "frames of phase 1 with order with-replacement; may exceed the number of four tuples",
        "frames",
        (1, MAXIMUM_CONNECTIONS),
        default="the number of connections",
        group="traffic",
    )
    four_tuples: int | None = chosen(
        None, "four tuples to draw from", group="traffic", default="the number of connections"
    )

    @property
    def phase1_frames(self) -> int:
        """Number of draws where phase 1 draws, otherwise the number of connections."""
        return self.draws if self.draws is not None and self.order == DRAWN else self.connections

    @property
    def held_at_least(self) -> int:
        """N, or as many as the draws are expected to open."""
        return max(self.connections, round(expected_connections(self._drawn, self.space)))

    def held_at_most(self, top: float) -> int:  # noqa: ARG002 - the draws are as many at every load
        """N, or as many as the draws can open."""
        return max(self.connections, min(self._drawn, self.space))

    def most_opened(self, top: float, sources: int, timeout: int | None) -> int:
        """All that are opened in turn, or all draws."""
        return max(super().most_opened(top, sources, timeout), self._drawn)

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:
        """Draws, too, where their number was chosen."""
        return {**super().fewer_by(most), **({} if self.draws is None else {"fewer --draws": {"draws": 1}})}

    @property
    def _drawn(self) -> int:
        """Number of draws; 0 = nothing is drawn."""
        return (self.draws or self.connections) if self.always_draws or self.order == DRAWN else 0

    @property
    def space(self) -> int:
        """S, the number of four tuples to choose from."""
        return self.four_tuples or self.connections

    @property
    def expected_connections(self) -> float:
        """Expected number of connections after phase 1."""
        return expected_connections(self.phase1_frames, self.space) if self.order == DRAWN else float(self.connections)


def expected_connections(draws: int, space: int) -> float:
    """Expected number of distinct four tuples of `space` after `draws` independent draws."""
    return -space * math.expm1(draws * math.log1p(-1 / space)) if space > 1 else 1.0


def expected_new(draws: int, space: int) -> float:
    """Probability that the next draw selects a four tuple not drawn before."""
    return math.exp(draws * math.log1p(-1 / space)) if space > 1 else 0.0
