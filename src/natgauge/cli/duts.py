# SPDX-License-Identifier: Apache-2.0
"""`natgauge duts`: the gateways that can be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Final

import click
import cloup

from natgauge.cli.names import GATEWAY

#: Width of the wrapped lines of -v.
_COLUMNS: Final = 100
_HEADINGS: Final = ("name", "kind", "runs", "last run by us", "title")
_RUNS_HEADINGS: Final = ("name", "translates", "where", "date", "system", "software")

if TYPE_CHECKING:
    from natgauge.duts.recipe import Recipe


@cloup.group(
    "duts", short_help="List the gateways that can be measured.", invoke_without_command=True, no_args_is_help=False
)
@click.option("-v", "--verbose", is_flag=True, help="Print full titles, and the versions at the last run of each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, *, verbose: bool, as_json: bool) -> None:
    """List the gateways that can be measured, one per line; `show` prints the whole recipe of a gateway."""
    if context.invoked_subcommand is not None:
        return
    from natgauge.duts.recipe import available, load
    from natgauge.duts.support import last_run, places
    from natgauge.tables import columns

    available_paths = available()
    recipes = [load(path) for paths in available_paths.values() for path in paths]
    if as_json:
        import json

        keys = {"name", "title", "kind", "system", "initiator_family", "responder_family", "stateful", "origin"}
        listed = [
            {
                **recipe.model_dump(mode="json", include=keys),
                "places": list(places(recipe)),
                "last_run": run.as_dict() if (run := last_run(recipe)) else None,
            }
            for recipe in recipes
        ]
        click.echo(json.dumps({"duts": listed}))
        return
    if not verbose:
        same = {name for name, paths in available_paths.items() if len(paths) > 1}
        rows = [_HEADINGS, *(_row(recipe, twice=recipe.name in same) for recipe in recipes)]
        for line in _table(rows, columns()):
            click.echo(line)
        return
    width = max((len(recipe.name) for recipe in recipes), default=0)
    for recipe in recipes:
        for line in _listed(recipe, width, twice=len(available_paths[recipe.name]) > 1):
            click.echo(line)


def _row(recipe: Recipe, *, twice: bool) -> tuple[str, ...]:
    """Return one gateway's cells by heading; the user's own recipe has its path before its title."""
    from natgauge.duts.recipe import is_own
    from natgauge.duts.support import last_run, places

    run = last_run(recipe)
    when = f"{run.date} {run.place}" if run else "never" if is_own(recipe.origin) else "-"
    where = "" if is_own(recipe.origin) else f"{recipe.origin}: "
    same = f"same name as another, give the path {recipe.origin}: " if twice else where
    return recipe.name, recipe.kind, " ".join(places(recipe)) or "-", when, same + recipe.title


def _table(rows: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """Rows as lines of at most `columns` characters, the last cell cut where it is too long.

    The other cells are never cut; nor is a path at the beginning of the last one.
    """
    from natgauge.tables import aligned

    for row, line in zip(rows, aligned(rows), strict=True):
        path, colon, _ = row[-1].rpartition(".toml: ")
        least = len(line) - len(row[-1]) + len(path + colon)
        yield line if len(line) <= max(columns, least) else line[: max(columns - 1, least)] + "…"


def _listed(recipe: Recipe, width: int, *, twice: bool) -> Iterator[str]:
    """Yield lines of one gateway: name, kind and title, then places where it can run and our last run."""
    from natgauge.duts.recipe import is_own
    from natgauge.duts.support import last_run, places_in_words, run_in_words

    origin = "" if is_own(recipe.origin) else f"  ({recipe.origin})"
    same = "  same name as another: give the path" if twice else ""
    yield from _wrapped(
        f"{recipe.name:<{width}}  {recipe.kind:<8}  {recipe.title}{origin}{same}", "", " " * (width + 12)
    )
    ours = f"; {run_in_words(last_run(recipe))}" if is_own(recipe.origin) else ""
    indent = " " * (width + 2)
    yield from _wrapped(f"runs {places_in_words(recipe)}{ours}", indent, indent)


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return TextWrapper(
        _COLUMNS, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    ).wrap(text)


@command.command("runs")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    help="Format of the table: text, or markdown for a page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def runs(form: str, *, as_json: bool) -> None:
    """Print our last run of each gateway at each place: date, system and versions; and the gateways never run."""
    from natgauge.duts.recipe import available, is_own, load
    from natgauge.duts.support import runs_of
    from natgauge.tables import aligned

    recipes = [load(path) for paths in available().values() for path in paths if is_own(path)]
    if as_json:
        import json

        keys = {"name", "title", "kind", "initiator_family", "responder_family"}
        listed = [
            {**recipe.model_dump(mode="json", include=keys), "runs": [run.as_dict() for run in runs_of(recipe)]}
            for recipe in recipes
        ]
        click.echo(json.dumps({"runs": listed}))
        return
    rows = [_RUNS_HEADINGS, *(row for recipe in recipes for row in _runs_rows(recipe, whole=form == "markdown"))]
    if form == "text":
        click.echo("\n".join(aligned(rows)))
        return
    from natgauge.reports import markdown

    click.echo("\n".join([markdown.row(rows[0]), "| --- " * len(rows[0]) + "|", *map(markdown.row, rows[1:])]))


def _runs_rows(recipe: Recipe, *, whole: bool) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each recorded run of a gateway; with `whole` the kind is followed by the title."""
    from natgauge.duts.support import runs_of

    translates = f"{recipe.kind}: {recipe.title}" if whole else recipe.kind
    recorded = runs_of(recipe)
    if not recorded:
        yield recipe.name, translates, "never", "-", "-", "-"
    for run in recorded:
        software = "; ".join(run.software) or "the kernel alone"
        yield recipe.name, translates, run.place, run.date, run.system or "not recorded", software


@command.command("show")
@click.argument("name", type=GATEWAY)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, as_json: bool) -> None:
    """Print the whole recipe of a gateway; NAME may be the path of a recipe file."""
    from natgauge.duts.recipe import is_own, load
    from natgauge.duts.recipe_model import VERBS
    from natgauge.duts.support import last_run, places_in_words, run_in_words

    recipe = load(name)
    if as_json:
        click.echo(recipe.model_dump_json(exclude_none=True))
        return
    click.echo(f"{recipe.name}: {recipe.title}")
    click.echo(f"  file      {recipe.origin}")
    click.echo(f"  kind      {recipe.kind}, {recipe.initiator_family} to {recipe.responder_family}")
    click.echo(f"  source    {recipe.source}; {'keeps connections' if recipe.stateful else 'no connections'}")
    click.echo(f"  runs      {places_in_words(recipe)} ({recipe.system})")
    if is_own(recipe.origin):
        click.echo(f"  by us     {run_in_words(last_run(recipe))}")
    for line in _wanted(recipe):
        click.echo(line)
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


def _wanted(recipe: Recipe) -> Iterator[str]:
    """Yield the gateway's requirements and its programs."""
    for need in recipe.needs:
        source = f"package {need.package}" if need.package else need.mends
        yield f"  needs     {', '.join(need.programs)} ({source})"
    for process in recipe.process:
        yield f"  process   {process.name}: {process.command.strip()}"
    for module in dict.fromkeys(module for played in recipe.of_devices(1) for module in played.modules):
        yield f"  kernel    {module.name}; where it is missing: {module.mends}"


def _played(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Yield the recipe for each device, and the device's name in front where there are several."""
    yield from ((f"{part.device} ", part.recipe) for part in recipe.chain)
    if not recipe.chain:
        yield "", recipe
