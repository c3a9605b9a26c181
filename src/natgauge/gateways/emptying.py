# SPDX-License-Identifier: Apache-2.0
"""Ways of removing all connections of a gateway before a trial: which ones a gateway has, and which one was chosen."""

from __future__ import annotations

from natgauge.errors import UsageError
from natgauge.gateways.protocol import Playable
from natgauge.gateways.recipe_model import BY_RESTART, BY_VERB, Emptying
from natgauge.suggestions import did_you_mean


def emptying_of(recipe: Playable, name: str | None) -> Emptying | None:
    """Return the way of removing all connections; None = the gateway keeps none.

    Args:
        name: name of the way; None = the verb `empty`.
    """
    verbs = recipe.verbs
    if not recipe.stateful:
        if name is not None:
            raise UsageError(
                f"emptying: {recipe.name} keeps no connections, so there is nothing to empty; leave it out",
                at="emptying",
            )
        return None
    ways = {
        BY_VERB: Emptying(run=verbs.pieces("empty")),
        BY_RESTART: Emptying(run=stopping(recipe), starts_again=True),
        **recipe.emptyings,
    }
    wanted = name or BY_VERB
    if wanted not in ways:
        raise UsageError(
            f'emptying: "{wanted}": {recipe.name} has no such way; {did_you_mean(wanted, ways)}', at="emptying"
        )
    return ways[wanted]


def stopping(recipe: Playable) -> tuple[str, ...]:
    """Return the snippets that stop a gateway. Processes are started last and stopped first."""
    return (*(process.stop for process in reversed(recipe.process)), *recipe.verbs.pieces("stop"))
