# SPDX-License-Identifier: Apache-2.0
"""Figures of a load that is measured beside a flood: one host opens connections as fast as it can."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure

#: The load without the flood; with it, as a share of that, and what the bounds of both searches allow of this share.
WITHOUT_FLOOD: Final = "load_without_flood"
KEPT: Final = "kept_share"
KEPT_LEAST: Final = "kept_least_share"
KEPT_MOST: Final = "kept_most_share"
#: Connections/s of the flood. At the load that passes without it: what was lost of it, and of the others.
FLOOD: Final = "flood_per_second"
FLOOD_LOST: Final = "flood_lost_percent"
NEW_LOST: Final = "new_lost_beside_flood_percent"
FRAMES_LOST: Final = "frames_lost_beside_flood_percent"

FIGURES: Final = (
    DeclaredFigure(FLOOD, "flood of one host", "connections/s", answer="beside a host that opens {} connections/s"),
    DeclaredFigure(WITHOUT_FLOOD, "load without the flood"),
    DeclaredFigure(KEPT, "kept beside the flood", "of 1", answer="{} of the load without it"),
    DeclaredFigure(KEPT_LEAST, "kept at least", "of 1"),
    DeclaredFigure(KEPT_MOST, "kept at most", "of 1"),
    DeclaredFigure(NEW_LOST, "new connections lost at that load", "%"),
    DeclaredFigure(FRAMES_LOST, "frames lost at that load", "%"),
    DeclaredFigure(FLOOD_LOST, "flood lost at that load", "%"),
)
