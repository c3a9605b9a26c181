# SPDX-License-Identifier: Apache-2.0
"""The order of the slices of a block."""

from __future__ import annotations

from collections.abc import Sequence


def both_slices(order: Sequence[int], nanoseconds: Sequence[int]) -> list[int]:
    """Return the duration of both slices of each contestant of a block together, ns, by the contestant's position.

    Args:
        order: positions in the order of the first slices; the second ones follow in the reverse order.
        nanoseconds: duration of each slice in its order.
    """
    both = [0] * len(order)
    for position, first, second in zip(order, nanoseconds, reversed(nanoseconds), strict=False):
        both[position] = first + second
    return both
