# SPDX-License-Identifier: Apache-2.0
"""Notes on chains of unequal length: each further device adds a hop, whose cost is not that of address translation."""

from __future__ import annotations

from collections.abc import Mapping

from natgauge.notes import Note
from natgauge.words import Quantity


def length_notes(devices: Mapping[str, int], hop: Mapping[Quantity, float | None]) -> list[Note]:
    """A note where gateways have unequal numbers of devices.

    Args:
        devices: number of devices of each gateway by its label.
        hop: cost of one more device that only forwards, by quantity, ns a frame; empty = not measured.
    """
    if len({*devices.values()}) == 1:
        return []
    numbers = ", ".join(f"{label} {number}" for label, number in devices.items())
    known = ", ".join(f"{quantity} {ns:,.0f} ns" for quantity, ns in hop.items() if ns is not None)
    cost = f"plain forwarding takes {known} a frame here" if known else "its cost was not measured here"
    what = f"the chains have unequal numbers of devices ({numbers})"
    text = f"{what}: each further device adds a hop ({cost}); a difference of that size says nothing of the gateways"
    return [Note("device", text)]
