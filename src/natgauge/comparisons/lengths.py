# SPDX-License-Identifier: Apache-2.0
"""Notes on the lengths of chains: each further device adds a hop, whose cost is not that of address translation."""

from __future__ import annotations

from collections.abc import Mapping

from natgauge.notes import Note
from natgauge.words import Quantity


def length_notes(devices: Mapping[str, int], hop: Mapping[Quantity, float | None]) -> list[Note]:
    """A note where gateways have several devices: what the hops between them cost.

    Args:
        hop: cost of one more device that only forwards, by quantity, ns a frame; empty = not measured.
    """
    lengths = {*devices.values()}
    if lengths == {1}:
        return []
    numbers = ", ".join(f"{label} {number}" for label, number in devices.items())
    known = ", ".join(f"{quantity} {ns:,.0f} ns" for quantity, ns in hop.items() if ns is not None)
    cost = f"plain forwarding takes {known} a frame here" if known else "its cost was not measured here"
    if len(lengths) == 1:
        (length,) = lengths
        text = f"every figure is of {length} devices in a row: each of them is a hop ({cost}), for all gateways alike"
        return [Note("device", text)]
    what = f"the chains have unequal numbers of devices ({numbers})"
    text = f"{what}: each further device adds a hop ({cost}); a difference of that size says nothing of the gateways"
    return [Note("device", text)]
