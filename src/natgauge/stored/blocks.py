# SPDX-License-Identifier: Apache-2.0
"""Blocks of ports of results that are older than their parameter: those of the recipe that is stored beside them."""

from __future__ import annotations

from natgauge.foreign import is_there
from natgauge.records.measurement import Result
from natgauge.records.reading import read_document
from natgauge.records.store import RECIPE, RECIPE_SCHEMA
from natgauge.reports.collected import Stored


def with_blocks(stored: Stored) -> Result:
    """Return a result with the parameter `port_blocks`, where its gateway gives blocks and the folder says so.

    Port sets are left out: those of a measurement may have another PSID than the recipe's.
    """
    result, path = stored.result, stored.folder / RECIPE
    # A recipe does not state the blocks of an external device, of which no version is known.
    if "port_blocks" in result.parameters.device or "version" not in result.parameters.device or not is_there(path):
        return result
    recipe = read_document(path, RECIPE_SCHEMA).get("recipe")
    limits = recipe.get("limits") if isinstance(recipe, dict) else None
    blocks = limits.get("port_blocks") if isinstance(limits, dict) else None
    if blocks is None:
        return result
    device = {**result.parameters.device, "port_blocks": blocks}
    return result.model_copy(update={"parameters": result.parameters.model_copy(update={"device": device})})
