# SPDX-License-Identifier: Apache-2.0
"""`natgauge worker`: measure on this machine, or on some of its cores, for campaigns on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import cloup

from natgauge.cli.access import access_options, warn
from natgauge.cli.generator import CORES
from natgauge.cli.say import say
from natgauge.host.cpus import check_cpus, usable_cpus
from natgauge.inputs.cores import format_cores


@cloup.command("worker", short_help="Measure for campaigns on other machines.")
@click.argument("scheduler", metavar="dask://HOST:PORT")
@click.option("--cores", type=CORES, metavar="CORES", help="Cores for this worker alone, e.g. 2-3.  [default: all]")
@click.option(
    "--lab", "labs", multiple=True, metavar="NAME", help="Name of a lab of this worker; repeatable.  [default: default]"
)
@click.option("--name", help="Unique name, written to the journal.  [default: digits and the cores]")
@access_options
def command(
    scheduler: str,
    cores: tuple[int, ...] | None,
    labs: Sequence[str],
    name: str | None,
    certificates: Path | None,
    *,
    insecure: bool,
) -> None:
    """Measure cells for a scheduler (`natgauge scheduler`) until that scheduler ends.

    `natgauge run PLAN --on dask://HOST:PORT` then measures here, in labs with these names. Scheduler, workers and
    `natgauge run` can run any program on this machine as root. So each proves by a certificate that it is one of them
    (see `natgauge certificates`), and the worker listens only at the address from which it reaches the scheduler.
    """
    from natgauge import spread
    from natgauge.setup.setup import check_host

    where = spread.scheduler_at(scheduler)
    spread.need_dask()
    from natgauge.spread.access import security_of

    security = security_of("worker", where, certificates, insecure=insecure)
    check_host()
    mine = check_cpus(cores or usable_cpus(), "cores", "cores")

    from natgauge.spread.cluster import serve
    from natgauge.spread.resources import machine_digest, reserved

    # Not the host's name, because journals are published.
    called = name or f"{machine_digest()[:6]}-{format_cores(mine).replace(',', '-')}"
    warn(insecure=insecure)
    with reserved(called, mine, labs or ("default",)) as offer:
        serve(where, security, offer, lambda text: say(text, err=True))
