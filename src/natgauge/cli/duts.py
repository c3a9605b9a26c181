# SPDX-License-Identifier: Apache-2.0
"""`natgauge duts`: the gateways that can be measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from natgauge.duts.recipe import Recipe


@click.group("duts", invoke_without_command=True, no_args_is_help=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the gateways that can be measured; `show` tells more of one."""
    if context.invoked_subcommand is not None:
        return
    from natgauge.duts.recipe import available, is_own, load

    found = available()
    recipes = [load(path) for paths in found.values() for path in paths]
    if as_json:
        import json

        keys = {"name", "title", "kind", "initiator_family", "responder_family", "stateful", "origin"}
        click.echo(json.dumps({"duts": [recipe.model_dump(mode="json", include=keys) for recipe in recipes]}))
        return
    width = max((len(recipe.name) for recipe in recipes), default=0)
    for recipe in recipes:
        origin = "" if is_own(recipe.origin) else f"  ({recipe.origin})"
        twice = "  same name as another: give the path" if len(found[recipe.name]) > 1 else ""
        click.echo(f"{recipe.name:<{width}}  {recipe.kind:<7}  {recipe.title}{origin}{twice}")


@command.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, as_json: bool) -> None:
    """Tell everything of one gateway's recipe; NAME may be the path of a recipe file."""
    from natgauge.duts.ingredients import VERBS
    from natgauge.duts.recipe import load

    recipe = load(name)
    if as_json:
        click.echo(recipe.model_dump_json(exclude_none=True))
        return
    click.echo(f"{recipe.name}: {recipe.title}")
    click.echo(f"  file      {recipe.origin}")
    click.echo(f"  kind      {recipe.kind}, {recipe.initiator_family} to {recipe.responder_family}")
    click.echo(f"  source    {recipe.source}; {'keeps connections' if recipe.stateful else 'no connections'}")
    for need in recipe.needs:
        click.echo(f"  needs     {', '.join(need.programs)} (package {need.package})")
    for knob, facts in recipe.knobs.named().items():
        bounds = f"{facts.minimum} to {facts.maximum}" if facts.maximum is not None else f"from {facts.minimum}"
        click.echo(f"  knob      {knob.replace('_', ' ')}: {bounds} {facts.unit}, of the {facts.scope}")
    for part in recipe.chain:
        keeps = " (keeps the connections)" if part.recipe.stateful else ""
        click.echo(f"  device    {part.device}{keeps}: {part.recipe.name}, {part.recipe.title}")
    for device, played in _played(recipe):
        for verb in VERBS:
            for piece in played.verbs.pieces(verb):
                click.echo(f"  {device}{verb:<9} " + piece.strip().replace("\n", "\n            "))


def _played(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    """What is played on each device, and how the device is called where there are several."""
    yield from ((f"{part.device} ", part.recipe) for part in recipe.chain)
    if not recipe.chain:
        yield "", recipe
