# SPDX-License-Identifier: Apache-2.0
"""Port sets of a device's subscribers, with the PSID length and offset that the user chose (RFC 7597 section 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from natgauge.errors import UsageError
from natgauge.inputs.question import DeviceOptions

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.port_sets import PortSets
    from natgauge.gateways.recipe import Recipe


def chosen_sets(recipe: Recipe, options: DeviceOptions) -> PortSets | None:
    """Return the port sets of the recipe, with the user's PSID length and offset; None = it has no subscribers."""
    sets = recipe.port_sets
    if sets is None:
        refuse_sets(recipe, options)
        return None
    try:
        chosen = sets.chosen(options.psid_length, options.psid_offset)
        if chosen is not sets and (recipe.half or recipe.kind.startswith("map-")):
            chosen.refuse_long_rule()
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"port sets of {recipe.name}: {fault}") from None
    except ValueError as error:
        raise UsageError(f"port sets of {recipe.name}: {error}") from None
    return chosen


def refuse_sets(recipe: Recipe, options: DeviceOptions) -> None:
    """Refuse a PSID length or offset of a device whose subscribers are not known."""
    for at, name, value in (
        ("psid_length", "PSID length", options.psid_length),
        ("psid_offset", "PSID offset", options.psid_offset),
    ):
        if value is not None:
            raise UsageError(
                f"{name}: {value} asked for, but the port sets of {recipe.name} are not known here, or it has none; "
                "leave it out, or choose a gateway of ours of kind lw4o6, map-e or map-t",
                at=at,
            )
