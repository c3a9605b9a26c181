# SPDX-License-Identifier: Apache-2.0
"""A seed for each repetition, so that repetitions sample permutations of the four tuples instead of sharing one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from natgauge.inputs.question import Cell

_SEED_OCTETS: Final = 8


def seed_of_repetition(seed: int, number: int) -> int:
    """Return the seed of a repetition; a measurement's seed always gives the same sequence.

    The first repetition has the measurement's seed itself. So a measurement with the seed of any repetition repeats
    that repetition.

    Args:
        seed: seed of the measurement, 0 to 2**64 - 1.
        number: number of the repetition, from 1.

    Returns:
        A seed, 0 to 2**64 - 1.
    """
    if number == 1:
        return seed
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=_SEED_OCTETS).digest()
    return int.from_bytes(digest, "big")


def in_repetition(cell: Cell, seed: int | None, number: int) -> Cell:
    """Return the cell with the seed of this repetition; `seed` of the measurement, None = each bench draws its own."""
    if seed is None:
        return cell
    return replace(cell, lab=replace(cell.lab, seed=seed_of_repetition(seed, number)))
