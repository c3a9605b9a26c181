# SPDX-License-Identifier: Apache-2.0
"""A gateway with the chosen way of logging its connections."""

from __future__ import annotations

from natgauge.errors import UsageError
from natgauge.gateways.logging_ways import LoggingWay
from natgauge.gateways.recipe import Recipe
from natgauge.suggestions import did_you_mean


def way_of(recipe: Recipe, name: str) -> LoggingWay:
    """Return the way of this name; refuse one that the gateway has not."""
    if name not in recipe.logging:
        known = "has no way; leave it out, or let the recipe declare one ([logging.NAME])"
        if recipe.logging:
            known = f"has no such way; {did_you_mean(name, recipe.logging)}"
        raise UsageError(f'logging: "{name}": {recipe.name} {known}', at="logging")
    return recipe.logging[name]


def logged(recipe: Recipe, name: str | None) -> Recipe:
    """Return the gateway with its log, which starts after it and stops before it; None = it does not log."""
    if name is None:
        return recipe
    way, verbs = way_of(recipe, name), recipe.verbs
    with_log = {
        "start": (*verbs.start, *way.starting),
        "stop": (*verbs.stop, *way.stopping),
        "check": (*verbs.check, *filter(None, [way.check])),
        "faults": (*verbs.faults, *filter(None, [way.dropped])),
    }
    return recipe.model_copy(
        update={
            "needs": (*recipe.needs, *way.needs),
            "modules": (*recipe.modules, *way.modules),
            "process": (*recipe.process, *way.process),
            "verbs": verbs.model_copy(update=with_log),
        }
    )
