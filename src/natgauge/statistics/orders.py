# SPDX-License-Identifier: Apache-2.0
"""Numbers of orders of a sample: Gaussian multinomial coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache


@cache
def falling_pairs(alike: tuple[int, ...]) -> tuple[int, ...]:
    """Number of orders of a sample with 0, 1, 2 ... falling pairs.

    `alike` is how often each different value occurs, at least once.
    """
    counts, before = [1], 0
    for number in alike:
        # The Gaussian binomial of these and those before them, factor by factor.
        for step in range(1, number + 1):
            counts = _divided(_multiplied(counts, before + step), step)
        before += number
    return tuple(counts)


def _multiplied(counts: Sequence[int], power: int) -> list[int]:
    """Return the product of a polynomial in q, given by its coefficients, and 1 - q**power."""
    product = [*counts, *([0] * power)]
    for at, count in enumerate(counts):
        product[at + power] -= count
    return product


def _divided(counts: Sequence[int], power: int) -> list[int]:
    """Over 1 - q**power, without a remainder."""
    quotient: list[int] = []
    for at, count in enumerate(counts):
        quotient.append(count + (quotient[at - power] if at >= power else 0))
    return quotient[: len(counts) - power]
