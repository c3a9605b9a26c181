# SPDX-License-Identifier: Apache-2.0
"""Which device limits a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.metrics.shared_figures import LOST_PERCENT_AT

#: A device limits a chain if at least this share of the lost frames was dropped there, in percent.
LEAST_PERCENT: Final = 50.0


def limiting_device(figures: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the device that dropped most of the lost frames, and its share in percent; None = not known."""
    shares = {
        name.removeprefix(LOST_PERCENT_AT): share for name, share in figures.items() if name.startswith(LOST_PERCENT_AT)
    }
    device = max(shares, key=lambda name: shares[name], default=None)
    return None if device is None or shares[device] < LEAST_PERCENT else (device, shares[device])
