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
def command(folders: tuple[Path, ...], form: str) -> None:
    """Print the table of RFC 9693 section 6 for results folders, one column each."""
    from natgauge.reports import csv_table, text

    results = [text.read_summary(folder) for folder in folders]
    click.echo((csv_table if form == "csv" else text).table(results))
