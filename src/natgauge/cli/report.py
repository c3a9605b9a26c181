# SPDX-License-Identifier: Apache-2.0
"""`natgauge report`: tables from stored results."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv"]),
    default="text",
    show_default=True,
    help="A table for people, or one line per result.",
)
@click.option(
    "--published",
    multiple=True,
    metavar="NAME",
    help="Lay this published table beside it, measured on their hardware; `natgauge published` lists them.",
)
def command(folders: tuple[Path, ...], form: str, published: tuple[str, ...]) -> None:
    """Print the table of RFC 9693 section 6 for results folders, one column each."""
    from natgauge.errors import UsageError
    from natgauge.reports import csv_table, text
    from natgauge.reports.published import beside

    if published and form == "csv":
        raise UsageError(
            f"report: --published {published[0]}: stands beside a text only; leave out --format csv, or take "
            f'"natgauge published {published[0]} --json"'
        )
    results = [text.read_summary(folder) for folder in folders]
    theirs = beside(published, results)
    ours = (csv_table if form == "csv" else text).table(results)
    click.echo(f"Measured here:\n{ours}\n\n{theirs}" if theirs else ours)
