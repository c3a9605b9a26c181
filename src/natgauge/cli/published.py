# SPDX-License-Identifier: Apache-2.0
"""`natgauge published`: tables that others have published, as printed, computed again, and as plans of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from natgauge import file_access
from natgauge.cli.names import PUBLISHED
from natgauge.cli.say import json_object, say
from natgauge.errors import HostError, UsageError, unwritable

if TYPE_CHECKING:
    from natgauge.published.model import Size, Table


@cloup.command("published", short_help="Show results that other authors have published.")
@click.argument("names", nargs=-1, metavar="[NAME]...", type=PUBLISHED)
@click.option(
    "--check", is_flag=True, help="Show which figures that follow from other printed figures agree with them."
)
@click.option("--plan", "as_plan", is_flag=True, help="Print a plan of the same measurements, for `natgauge run`.")
@click.option(
    "--small",
    is_flag=True,
    help="With --plan: the same series with smaller numbers, for two cores, at most 20 minutes.",
)
@click.option(
    "--lab",
    type=click.Choice(["netns", "vm"]),
    help="With --small: measure in namespaces (default), or in a guest, with much smaller numbers.",
)
@click.option(
    "--here",
    is_flag=True,
    help="With --plan: leave out tables of which no device can run in namespaces of this machine, or in the guest.",
)
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --plan: write a file for each table into this folder instead, without NAME for all that have a plan.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    names: tuple[str, ...],
    *,
    check: bool,
    as_plan: bool,
    small: bool,
    lab: str | None,
    here: bool,
    into: Path | None,
    as_json: bool,
) -> None:
    """List published tables, or show those with NAME; their authors measured them, on their hardware.

    With --plan and one NAME, print a plan of the same measurements as TOML. The list says which tables have a plan; for
    the others, --plan names the row and what it needs. The exit status is then 3 if only this host lacks it, and 2 if
    natgauge does.
    """
    from natgauge.published import model, printed

    if as_plan or small or lab or here or into:
        only_with = "--small" if small else "--lab" if lab else "--here" if here else "--into"
        _refuse(names, check=check, as_plan=as_plan, as_json=as_json, only_with=only_with, many=into is not None)
    if lab == "vm" and not small:
        raise UsageError("published: --lab vm: a guest is too slow for the numbers of the publication; add --small")
    tables = [model.table(name) for name in dict.fromkeys(names) or model.names()]
    size: Size = "guest" if lab == "vm" else "small" if small else "full"
    if as_plan and into is not None:
        _write(tables, into, size=size, here=here, needed=bool(names))
    elif as_plan:
        say(_plan(tables[0], size=size, here=here), nl=False)
    elif check:
        if as_json:
            json_object("published-checks", {"checks": printed.checks(*(table.name for table in tables))})
        else:
            say(printed.check_lines(tables))
    elif as_json:
        json_object("published", {"tables": list(map(printed.document, tables))})
    else:
        say("\n\n".join(map(printed.view, tables)) if names else printed.listing(tables))


def _plan(table: Table, *, size: Size, here: bool) -> str:
    from natgauge.published.model import plan_text

    text = plan_text(table, size=size)
    if here and (needs := _needs_here(table, size)):
        raise HostError(f"published: --here {table.name}: {needs}")
    return text


def _needs_here(table: Table, size: Size) -> str:
    """The rows of a table whose devices do not run in the lab of its plan; empty where one does."""
    from natgauge.gateways.recipe import load
    from natgauge.gateways.support import lacking, lacking_in_guest
    from natgauge.published.model import sources

    needs: dict[str, str] = {}
    for name, quantity in table.quantities.items():
        for recipe in sources().recipes.get(quantity.device, ()):
            if not (lacks := (lacking_in_guest if size == "guest" else lacking)(load(recipe))):
                return ""
            label = next((row.label for row in table.rows if row.quantity == name and row.is_in_unit), name)
            needs.setdefault(recipe, f'row "{label}" needs {recipe}, which needs {" and ".join(lacks)}')
    return "; ".join(needs.values())


def _write(tables: Sequence[Table], folder: Path, *, size: Size, here: bool, needed: bool) -> None:
    """Write a file for each table that has a plan, and print its name; name the other tables on standard error.

    Args:
        needed: whether the user named the tables, so that it is an error if none of them has a plan.
    """
    from natgauge.published.model import plan_file

    has_written = False
    for number, table in enumerate(tables, start=1):
        try:
            text = _plan(table, size=size, here=here)
        except (HostError, UsageError) as error:
            if needed and not has_written and number == len(tables):
                raise
            say(f"natgauge: {error}; left out", err=True)
            continue
        path = folder / plan_file(table, size=size)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error, what="published: --into", remedy="name a folder of yours") from error
        file_access.write(path, text, what="published: --into", remedy="name a folder of yours")
        has_written = True
        say(path)


def _refuse(names: tuple[str, ...], *, check: bool, as_plan: bool, as_json: bool, only_with: str, many: bool) -> None:
    if not as_plan:
        raise UsageError(f"published: {only_with}: is an option of a plan; add --plan")
    if check or as_json:
        other = "--check" if check else "--json"
        raise UsageError(f"published: --plan: prints a plan as TOML; leave out {other}")
    if len(names) != 1 and not many:
        raise UsageError(
            f"published: --plan: takes the name of one table, not {len(names)}; or write a file for each: --into"
        )
