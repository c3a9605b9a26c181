# SPDX-License-Identifier: Apache-2.0
"""The outside addresses of a gateway, where it has others than the one of its interface (RFC 9693 section 3.2)."""

from __future__ import annotations

from natgauge.gateways.recipe import Recipe
from natgauge.inputs.checks import wrong
from natgauge.labs.common.pool import parse_range, pool_of, refuse_pool
from natgauge.labs.contract import Addresses


def pool_for(recipe: Recipe, number: int | None) -> Addresses | None:
    """Return the outside addresses that a lab must have for a gateway; None = that of its interface alone.

    Args:
        number: chosen by the user; None = not chosen.
    """
    if recipe.pool4 is not None:
        stated = parse_range("pool4", recipe.pool4, "ipv4")
        refuse_pool(f"pool4 of {recipe.name}", stated)
        if number not in (None, stated.count):
            raise wrong("outside_addresses", f"{number}, but the recipe of {recipe.name} names {stated}; leave it out")
        return stated
    if number in (None, 1):
        return None
    if not recipe.takes_pool:
        raise wrong(
            "outside_addresses",
            f"{number}, but the recipe of {recipe.name} has one outside address; leave it out, or let the recipe "
            "translate to $NG_POOL4_FIRST-$NG_POOL4_LAST",
        )
    return pool_of(number or 1)
