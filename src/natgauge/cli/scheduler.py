# SPDX-License-Identifier: Apache-2.0
"""`natgauge scheduler`: the place where workers wait, and campaigns find them."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from natgauge.cli.access import access_options, warn
from natgauge.cli.say import say


@cloup.command("scheduler", short_help="Give the campaigns of several machines their workers.")
@click.argument("address", metavar="dask://ADDRESS:PORT")
@access_options
def command(address: str, certificates: Path | None, *, insecure: bool) -> None:
    """Listen at an address of this machine for workers (`natgauge worker`) and campaigns (`natgauge run --on`).

    It needs no privilege, measures nothing, and ends by Ctrl-C. Only the holders of certificates can connect: see
    `natgauge certificates`.
    """
    from natgauge import spread

    where = spread.scheduler_at(address)
    spread.need_dask()

    from natgauge.spread.access import security_of
    from natgauge.spread.cluster import schedule

    security = security_of("scheduler", where, certificates, insecure=insecure)
    warn(insecure=insecure)
    schedule(where, security, lambda text: say(text, err=True))
