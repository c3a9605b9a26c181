# SPDX-License-Identifier: Apache-2.0
"""`natgauge gateways`: the gateways that can be measured; a recipe of a rule set that a router runs."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Final

import click
import cloup

from natgauge import tables
from natgauge.cli.names import GATEWAY, Commands
from natgauge.cli.say import json_object, say, wrapped
from natgauge.errors import UsageError

if TYPE_CHECKING:
    from natgauge.gateways.recipe import Recipe

_PATH: Final = click.Path(path_type=Path)
#: Width of the wrapped lines of -v.
_COLUMNS: Final = 100
_RUNS_HEADINGS: Final = ("name", "kind", "where", "date", "system", "software")
#: Lines below the table of runs; each is printed if its key is in the table.
_LEGEND: Final = {
    "": "Each row is the last run of a gateway's lab test by natgauge's authors at a place: here = namespaces of their "
    "machine, guest = a virtual machine on it (--lab vm), ssh = another machine.",
    "-fc-v": "Linux ...-fc-v...: the kernel of the authors' virtual machine, which is not their distribution's kernel.",
    "not recorded": "not recorded: at that time the test did not record it.",
    "rules from ": "rules from ...: the source of the rule set that the recipe loads; the named software did not run.",
    "a reference": "natgauge-engine ..., a reference: natgauge's own tunnel end or translator (natgauge-softwire), "
    "made for comparison.",
    "softwire by ": "softwire by ...: what the kernel makes IPv4-in-IPv6 packets with, a tunnel interface (ip6tnl) or "
    "a route of segment routing (SRv6, encap.red). The packets are the same.",
    "libbpf": "ip utility, ..., libbpf ...: what `ip -V` prints: the version of iproute2, and the version of a library "
    "as far as `ip` knows it.",
}


@cloup.group(
    "gateways",
    cls=Commands,
    short_help="List the gateways that can be measured.",
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.option("-v", "--verbose", is_flag=True, help="Print titles, places, and the last run of each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, *, verbose: bool, as_json: bool) -> None:
    """List the gateways that can be measured, by kind; `show` prints the whole recipe of a gateway.

    With -v it says where a gateway can run once its programs are installed (natgauge doctor names those that are
    ready): in namespaces of this machine, in a guest (--lab vm), on another machine over SSH.
    """
    if context.invoked_subcommand is not None:
        if lost := "--json" if as_json else "--verbose" if verbose else "":
            name = context.invoked_subcommand
            after = f"write natgauge gateways {name} {lost}" if as_json and name != "new" else "leave it out"
            raise UsageError(f"gateways: {lost}: before {name} is an option of the list; {after}")
        return
    from natgauge.gateways.recipe import available

    available_paths = available()
    recipes, broken = _readable(path for paths in available_paths.values() for path in paths)
    if as_json:
        _print_json(recipes, broken)
    else:
        _print_list(recipes, {name for name, paths in available_paths.items() if len(paths) > 1}, verbose=verbose)
    # The list is incomplete, so the exit status is that of a broken recipe.
    for number, (path, error) in enumerate(broken.items(), 1):
        # The error may be that of another file, such as a device of a chain.
        message = f"{error}; {path.name} is left out of the list"
        if number == len(broken):
            raise type(error)(message)
        say(f"natgauge: {message}", err=True)


def _readable(paths: Iterable[Path]) -> tuple[list[Recipe], dict[Path, UsageError]]:
    """Return the recipes that can be read, and for every other file the rule that it breaks."""
    from natgauge.gateways.recipe import load

    recipes: list[Recipe] = []
    broken: dict[Path, UsageError] = {}
    for path in paths:
        try:
            recipes.append(load(path))
        except UsageError as error:
            broken[path] = error
    return recipes, broken


def _print_json(recipes: Sequence[Recipe], broken: Mapping[Path, UsageError]) -> None:
    from natgauge.gateways.support import last_run, places

    keys = {
        *("name", "title", "kind", "system", "initiator_family", "responder_family", "stateful", "origin", "rules_from")
    }
    listed = [
        {
            **recipe.model_dump(mode="json", include=keys),
            "places": list(places(recipe)),
            "last_run": run.as_dict() if (run := last_run(recipe)) else None,
        }
        for recipe in recipes
    ]
    left_out = [{"file": str(path), "error": str(error)} for path, error in broken.items()]
    json_object("gateways", {"gateways": listed, "broken": left_out})


def _print_list(recipes: Sequence[Recipe], same: Collection[str], *, verbose: bool) -> None:
    """Print the names by kind, with `verbose` lines of each gateway; `same`: names that several recipes have."""
    if not verbose:
        for line in _by_kind(recipes, same):
            say(wrapped(line))
        return
    width = max((len(recipe.name) for recipe in recipes), default=0)
    for recipe in recipes:
        for line in _listed(recipe, width, twice=recipe.name in same):
            say(line)


def _by_kind(recipes: Sequence[Recipe], same: Collection[str]) -> Iterator[str]:
    """Yield a line for each kind with its gateways; a recipe that no name finds alone, or of the user, has its path."""
    from natgauge.gateways.recipe import is_own
    from natgauge.gateways.support import KINDS

    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for recipe in recipes:
        path = f" ({recipe.origin})" if recipe.name in same or not is_own(recipe.origin) else ""
        kinds[recipe.kind].append(f"{recipe.name}{path}")
    for kind, names in kinds.items():
        if names:
            yield f"{kind}: {', '.join(names)}"
    yield f"{len(recipes)} gateways. All of one, and what its kind is: natgauge gateways show NAME."
    yield "Places and last runs: natgauge gateways -v. Ready on this machine: natgauge doctor."


def _listed(recipe: Recipe, width: int, *, twice: bool) -> Iterator[str]:
    """Yield lines of one gateway: name, kind and title, then places where it can run and its last recorded run."""
    from natgauge.gateways.recipe import is_own
    from natgauge.gateways.support import last_run, places_in_words, run_in_words

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


@click.command("new")
@click.argument("name")
@click.option("--from-nft", "source", required=True, metavar="FILE", type=_PATH, help="Rule set of nftables, one file.")
@click.option("--inside", required=True, metavar="NAME", help="Interface of the file towards the subscribers.")
@click.option("--outside", required=True, metavar="NAME", help="Interface of the file towards the Internet.")
@click.option("--inside-network", metavar="NETWORK", help="Network of the subscribers in the file, if it is there.")
@click.option("--outside-address", metavar="ADDRESS", help="Address of the file that is translated to, if it is there.")
@click.option("--into", metavar="FOLDER", show_default="this one", type=_PATH, help="Where it is made.")
@click.option("--beside", is_flag=True, help="Make only NAME.toml, beside the file, which it names; for git.")
def new(
    *,
    name: str,
    source: Path,
    inside: str,
    outside: str,
    inside_network: str | None,
    outside_address: str | None,
    into: Path | None,
    beside: bool,
) -> None:
    """Make a gateway of an existing rule set: a folder NAME with a recipe and a copy of the rules.

    In a lab the interfaces, and the network and the address if they are named, are those of the lab.
    """
    from natgauge.new_recipe import from_nft, unlike_lab

    given = {"inside": inside, "outside": outside, "inside-network": inside_network, "outside-address": outside_address}
    if empty := next((option for option, word in given.items() if word is not None and not word.strip()), None):
        raise UsageError(f"--{empty}: is empty; write it as the rule set does", at=empty.replace("-", "_"))
    if inside == outside:
        raise UsageError(f"outside: {outside} is the inside interface, too; name the two of the rules", at="outside")
    if beside and into is not None:
        raise UsageError("into: the recipe is made beside the file; leave out one of --into and --beside", at="into")
    variables = {
        inside: "NG_INSIDE",
        outside: "NG_OUTSIDE",
        inside_network: "NG_INITIATOR_NETWORK4",
        outside_address: "NG_OUTSIDE_ADDRESS4",
    }
    names = {own: variable for own, variable in variables.items() if own is not None}
    words = {"from-nft": str(source), **given, "into": None if into is None else str(into)}
    options = [word for option, value in words.items() if value is not None for word in (f"--{option}", value)]
    made_by = shlex.join(["natgauge", "gateways", "new", name, *options, *(["--beside"] if beside else [])])
    made = from_nft(name, source, names, made_by, beside=beside)
    written = made.write_beside(source) if beside else made.write((into or Path()) / name)
    again = f"rm {'' if beside else '-r '}{shlex.quote(str(written))} && {made_by}"
    for unlike in unlike_lab(made, again):
        say(f"natgauge: {source}: {unlike}", err=True)
    path = str(written) if written.is_absolute() else f"./{written}"
    file = path if beside else f"{path}/gateway.toml"
    trying = f"; try it: natgauge compare nftables-nat44 {shlex.quote(path)}"
    say(f"{file}{trying if made.only_from is None else ''}")


command.add_command(new)


@command.command("runs")
@click.argument("names", metavar="[NAME]...", nargs=-1, type=GATEWAY)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    help="Format of the table: text (the default), or markdown for a page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def runs(names: Sequence[str], form: str | None, *, as_json: bool) -> None:
    """Print the last run of each gateway at each place: date, system and versions; and the gateways never run.

    The runs are those of natgauge's authors. With NAMEs only the runs of these gateways are printed.
    """
    from natgauge.gateways.recipe import available, is_own, load
    from natgauge.gateways.support import runs_of

    if as_json and form is not None:
        raise UsageError(f"gateways runs: --json prints JSON, not {form}; leave out one of --json and --format")
    chosen = dict.fromkeys(names) or [path for paths in available().values() for path in paths if is_own(path)]
    recipes = [load(each) for each in chosen]
    if as_json:
        keys = {"name", "title", "kind", "initiator_family", "responder_family", "rules_from"}
        listed = [
            {**recipe.model_dump(mode="json", include=keys), "runs": [run.as_dict() for run in runs_of(recipe)]}
            for recipe in recipes
        ]
        json_object("runs", {"runs": listed})
        return
    rows = [row for recipe in recipes for row in _runs_rows(recipe)]
    legend = [line for text, line in _LEGEND.items() if any(text in cell for row in rows for cell in row)]
    if form != "markdown":
        say("\n".join(_fitting([_RUNS_HEADINGS, *rows], tables.columns())))
        say("\n" + tables.wrapped("\n".join(legend), tables.columns()))
        return
    from natgauge.reports import markup

    titles = {recipe.name: recipe.title for recipe in recipes}
    headings = (*_RUNS_HEADINGS[:2], "title", *_RUNS_HEADINGS[2:])
    say("\n".join([markup.row(headings), "| --- " * len(headings) + "|"]))
    for row in rows:
        say(markup.row((*row[:2], titles[row[0]], *row[2:])))
    say("\n" + "\n".join(f"- {line}" for line in legend))


def _runs_rows(recipe: Recipe) -> Iterator[tuple[str, ...]]:
    from natgauge.gateways.support import runs_of

    recorded = runs_of(recipe)
    rules = [f"rules from {recipe.rules_from}"] if recipe.rules_from else []
    if not recorded:
        yield recipe.name, recipe.kind, "-", "never", "-", "-"
    for run in recorded:
        software = "; ".join([*run.software, *rules]) or "the kernel alone"
        yield recipe.name, recipe.kind, run.place, run.date, run.system, software


def _fitting(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the table of runs; where it is too wide, the last two cells of each row are below the others."""
    table = tables.aligned(rows)
    if max(map(len, table)) <= width:
        yield from table
        return
    for line, row in zip(tables.aligned([row[:-2] for row in rows]), rows, strict=True):
        yield line
        if row[-1] != "-":
            yield from tables.wrapped(f"  {'; '.join(row[-2:])}", width).splitlines()


@command.command("show")
@click.argument("name", type=GATEWAY)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, as_json: bool) -> None:
    """Print the whole recipe of a gateway; NAME may be the path of a recipe file."""
    from natgauge.gateways.recipe import is_own, load
    from natgauge.gateways.recipe_model import VERBS
    from natgauge.gateways.support import KINDS, last_run, places_in_words, run_in_words

    recipe = load(name)
    if as_json:
        json_object("recipe", recipe.model_dump(mode="json", exclude_none=True))
        return
    say(f"{recipe.name}: {recipe.title}")
    say(f"  file      {recipe.origin}")
    say(f"  kind      {recipe.kind}: {KINDS[recipe.kind]}")
    say(f"  frames    {recipe.initiator_family} at the Initiator, {recipe.responder_family} at the Responder")
    say(f"  source    {recipe.source}; {'keeps connections' if recipe.stateful else 'no connections'}")
    say(f"  runs      {places_in_words(recipe)} ({recipe.system})")
    if is_own(recipe.origin):
        say(f"  recorded  {run_in_words(last_run(recipe))}")
    if recipe.rules_from:
        say(f"  rules     from {recipe.rules_from}")
    for line in _wanted(recipe):
        say(line)
    for knob, facts in recipe.knobs.named().items():
        bounds = f"{facts.minimum} to {facts.maximum}" if facts.maximum is not None else f"from {facts.minimum}"
        say(f"  knob      {knob.replace('_', ' ')}: {bounds} {facts.unit}, of the {facts.scope}")
    for part in recipe.chain:
        keeps = " (keeps the connections)" if part.recipe.stateful else ""
        say(f"  device    {part.device}{keeps}: {part.recipe.name}, {part.recipe.title}")
    for device, played in [(f"{part.device} ", part.recipe) for part in recipe.chain] or [("", recipe)]:
        for verb in VERBS:
            for piece in played.verbs.pieces(verb):
                say(f"  {device}{verb:<9} " + piece.strip().replace("\n", "\n            "))


def _wanted(recipe: Recipe) -> Iterator[str]:
    from natgauge.gateways.recipe_model import installing

    for need in recipe.needs:
        source = f"package {need.package}" if need.package else need.mends
        yield f"  needs     {', '.join(need.programs)} ({source})"
    for process in recipe.process:
        yield f"  process   {process.name}: {process.command.strip()}"
    for module in dict.fromkeys(module for played in recipe.of_devices(1) for module in played.modules):
        yield f"  kernel    {module.name}; where it is missing: {module.mends}"
    for name, way in recipe.logging.items():
        packages = [need.package for need in way.needs if need.package]
        yield f"  logging   {name}{f' ({installing(packages)})' if packages else ''}"
