# SPDX-License-Identifier: Apache-2.0
"""Names of figures that results of several metrics have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: The rate of all directions together, frames/s.
IN_ALL: Final = "frames_per_second_total"
#: The length of the trial behind an answer, in seconds.
TRIAL_SECONDS: Final = "trial_seconds"
#: Frames of the device's busiest core divided by the mean of all cores; 1 = even.
CORE_IMBALANCE: Final = "core_imbalance"
#: Number of the device's cores that did next to nothing.
IDLE_CORES: Final = "idle_cores"
#: Octets of a connection in the kernel of the device's machine.
OCTETS_PER_CONNECTION: Final = "octets_per_connection"
#: Connections that the device itself calls open, after the trial that gave the value.
ESTABLISHED: Final = "established"
#: Name of a figure before the device's name: lost frames that the device's rings and interfaces dropped, in percent.
LOST_PERCENT_AT: Final = "lost_percent_at_"
#: A device limits a chain if at least this share of the lost frames was dropped there, in percent.
LEAST_PERCENT: Final = 50.0


def limiting_device(figures: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the device that dropped most of the lost frames, and its share in percent; None = not known.

    Args:
        figures: the figures `LOST_PERCENT_AT`, among others.
    """
    shares = {
        name.removeprefix(LOST_PERCENT_AT): share for name, share in figures.items() if name.startswith(LOST_PERCENT_AT)
    }
    device = max(shares, key=lambda name: shares[name], default=None)
    return None if device is None or shares[device] < LEAST_PERCENT else (device, shares[device])
