# SPDX-License-Identifier: Apache-2.0
"""`natgauge published`: tables that others have published, as printed, computed again, and as plans of campaigns."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
import cloup

from natgauge.cli.names import PUBLISHED


@cloup.command("published", short_help="Show results that other authors have published.")
@click.argument("names", nargs=-1, metavar="[NAME]...", type=PUBLISHED)
@click.option("--check", is_flag=True, help="Recompute the figures that follow from other printed figures.")
@click.option("--plan", "as_plan", is_flag=True, help="Print a plan of the same measurements, for `natgauge run`.")
@click.option(
    "--small", is_flag=True, help="With --plan: the same series with smaller numbers, for two cores and 20 minutes."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(names: tuple[str, ...], *, check: bool, as_plan: bool, small: bool, as_json: bool) -> None:
    """List published tables, or show those with NAME; their authors measured them, on their hardware.

    With --plan and one NAME, print a plan of the same measurements as TOML. The list says which tables have a plan; for
    the others, --plan names the row and what it needs. The exit status is then 3 if only this host lacks it, and 2 if
    natgauge does.
    """
    from natgauge.errors import BrokenError
    from natgauge.published import load
    from natgauge.reports import published

    if as_plan or small:
        _refuse(names, check=check, as_plan=as_plan, as_json=as_json)
    tables = [load.table(name) for name in names or load.names()]
    if as_plan:
        from natgauge.published import plans

        click.echo(plans.text(tables[0], small=small), nl=False)
    elif check:
        checks = published.checked(tables)
        click.echo(json.dumps({"checks": list(map(asdict, checks))}) if as_json else published.check_lines(tables))
        if wrong := [check for check in checks if check.agreement == "differs"]:
            raise BrokenError(
                f"published: {wrong[0].table}: {wrong[0].row}: column {wrong[0].column}: {wrong[0].printed} is not "
                f"{wrong[0].recomputed:g}, and {len(wrong)} figures in all differ without a known slip; report it"
            )
    elif as_json:
        click.echo(json.dumps({"tables": list(map(published.document, tables))}))
    else:
        click.echo("\n\n".join(map(published.view, tables)) if names else published.listing(tables))


def _refuse(names: tuple[str, ...], *, check: bool, as_plan: bool, as_json: bool) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: --small without --plan, --plan without exactly one table, or with another kind of output.
    """
    from natgauge.errors import UsageError

    if not as_plan:
        raise UsageError("published: --small: is a size of a plan; add --plan")
    if check or as_json:
        other = "--check" if check else "--json"
        raise UsageError(f"published: --plan: prints a plan as TOML; leave out {other}")
    if len(names) != 1:
        raise UsageError(f"published: --plan: takes the name of one table, not {len(names)}")
