# SPDX-License-Identifier: Apache-2.0
"""`natgauge report`: tables from stored results."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
def command(folders: tuple[Path, ...]) -> None:
    """Print the table of RFC 9693 section 6 for results folders, one column each."""
    from natgauge.reports.text import read_summary, table

    click.echo(table([read_summary(folder) for folder in folders]))
