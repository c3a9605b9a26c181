# SPDX-License-Identifier: Apache-2.0
"""`natgauge published`: tables that others have published, as printed, and computed again."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
import cloup

from natgauge.cli.names import PUBLISHED


@cloup.command("published", short_help="Tables that others have published.")
@click.argument("names", nargs=-1, metavar="[NAME]...", type=PUBLISHED)
@click.option("--check", is_flag=True, help="Compute again whatever follows from other printed figures.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(names: tuple[str, ...], check: bool, as_json: bool) -> None:
    """List published tables; with NAMEs show them: measured by their authors, on their hardware."""
    from natgauge.errors import BrokenError
    from natgauge.published import load
    from natgauge.reports import published

    tables = [load.table(name) for name in names or load.names()]
    if check:
        found = published.checked(tables)
        click.echo(json.dumps({"checks": list(map(asdict, found))}) if as_json else published.check_lines(tables))
        if wrong := [one for one in found if one.agreement == "differs"]:
            raise BrokenError(
                f"published: {wrong[0].table}: {wrong[0].row}: column {wrong[0].column}: {wrong[0].printed} is not "
                f"{wrong[0].recomputed:g}, and {len(wrong)} figures in all differ without a known slip; report it"
            )
    elif as_json:
        click.echo(json.dumps({"tables": list(map(published.document, tables))}))
    else:
        click.echo("\n\n".join(map(published.view, tables)) if names else published.listing(tables))
