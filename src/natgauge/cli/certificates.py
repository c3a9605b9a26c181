# SPDX-License-Identifier: Apache-2.0
"""`natgauge certificates`: keys and certificates for scheduler, workers and campaigns on several machines."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import cloup

from natgauge.cli.say import say


@cloup.command("certificates", short_help="Make the certificates of several machines.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Make the certificates that `natgauge scheduler`, `worker` and `run --on` ask each other for, in a new folder.

    Copy the folder to each of these machines. Whoever has one of its keys can run programs as root on all workers.
    """
    from natgauge import spread

    spread.need_dask()
    from natgauge.spread import certificates

    certificates.make(folder)
    say(f"{folder}: valid for {certificates.DAYS} days; whoever has a key of it can run programs as root on workers")
    named = shlex.quote(str(folder))
    address = f"dask://ADDRESS:{spread.PORT} --certificates {named}"
    for who, what in (
        ("copy it to each machine", f"scp -rp {named} HOST:"),
        ("one machine", f"natgauge scheduler {address}"),
        ("each that measures", f"natgauge worker {address}"),
        ("where the plan is", f"natgauge run PLAN --on {address}"),
    ):
        say(f"  {who + ':':25}{what}")
