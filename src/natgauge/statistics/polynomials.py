# SPDX-License-Identifier: Apache-2.0
"""Polynomials in q, of whose factors Gaussian coefficients are made."""

from __future__ import annotations

from collections.abc import Sequence


def multiplied(counts: Sequence[int], power: int) -> list[int]:
    """Return the product of a polynomial, given by its coefficients, and 1 - q**power."""
    product = [*counts, *([0] * power)]
    for at, count in enumerate(counts):
        product[at + power] -= count
    return product


def divided(counts: Sequence[int], power: int) -> list[int]:
    """Over 1 - q**power, without a remainder."""
    quotient: list[int] = []
    for at, count in enumerate(counts):
        quotient.append(count + (quotient[at - power] if at >= power else 0))
    return quotient[: len(counts) - power]
