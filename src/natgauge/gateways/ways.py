# SPDX-License-Identifier: Apache-2.0
"""Chosen ways: of removing all connections of a gateway before a trial, and of logging its connections."""

from __future__ import annotations

from natgauge.errors import did_you_mean
from natgauge.gateways.far_side import Playable
from natgauge.gateways.logging_ways import LoggingWay
from natgauge.gateways.recipe import Recipe
from natgauge.gateways.recipe_model import BY_RESTART, BY_VERB, Emptying
from natgauge.inputs.checks import wrong


def emptying_of(recipe: Playable, name: str | None) -> Emptying | None:
    """Return the way of removing all connections; None = the gateway keeps none."""
    verbs = recipe.verbs
    if not recipe.stateful:
        if name is not None:
            raise wrong("emptying", f"{recipe.name} keeps no connections, so there is nothing to empty; leave it out")
        return None
    ways = {
        BY_VERB: Emptying(run=verbs.pieces("empty")),
        BY_RESTART: Emptying(run=stopping(recipe), starts_again=True),
        **recipe.emptyings,
    }
    wanted = name or BY_VERB
    if wanted not in ways:
        raise wrong("emptying", f'"{wanted}": {recipe.name} has no such way; {did_you_mean(wanted, ways)}')
    return ways[wanted]


def starting(recipe: Playable) -> tuple[str, ...]:
    """Return the snippets that start a gateway. Processes are started last and stopped first."""
    return (*recipe.verbs.pieces("start"), *(process.start for process in recipe.process))


def stopping(recipe: Playable) -> tuple[str, ...]:
    """Return the snippets that stop a gateway."""
    return (*(process.stop for process in reversed(recipe.process)), *recipe.verbs.pieces("stop"))


def way_of(recipe: Recipe, name: str) -> LoggingWay:
    """Return the way of this name; refuse one that the gateway has not."""
    if name not in recipe.logging:
        known = "has no way; leave it out, or let the recipe declare one ([logging.NAME])"
        if recipe.logging:
            known = f"has no such way; {did_you_mean(name, recipe.logging)}"
        raise wrong("logging", f'"{name}": {recipe.name} {known}')
    return recipe.logging[name]


def logged(recipe: Recipe, name: str | None, cpus: str | None = None) -> Recipe:
    """Return the gateway with its log, which starts after it and stops before it; None = it does not log.

    `cpus` are cores of what writes the log, such as "0,2"; None = those of the device.
    """
    if name is None:
        return recipe
    way, verbs = way_of(recipe, name), recipe.verbs
    told = {"NG_LOG_PORT": None if way.udp_port is None else str(way.udp_port), "NG_LOG_CPUS": cpus}
    with_log = {
        "start": (*verbs.start, *way.starting),
        "stop": (*verbs.stop, *way.stopping),
        "check": (*verbs.check, *filter(None, [way.check])),
        "faults": (*verbs.faults, *filter(None, [way.dropped])),
    }
    return recipe.model_copy(
        update={
            "environment": {**recipe.environment, **{key: text for key, text in told.items() if text is not None}},
            "needs": (*recipe.needs, *way.needs),
            "modules": (*recipe.modules, *way.modules),
            "process": (*recipe.process, *way.process),
            "verbs": verbs.model_copy(update=with_log),
        }
    )
