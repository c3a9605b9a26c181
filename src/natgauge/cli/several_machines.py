# SPDX-License-Identifier: Apache-2.0
"""Campaigns on several machines: `natgauge certificates`, `scheduler` and `worker`, and who `run` is to them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import cloup

from natgauge.cli.parameters import CORES
from natgauge.cli.say import say
from natgauge.host.machine import check_cpus, usable_cpus
from natgauge.inputs.measuring_types import format_cores

Command = TypeVar("Command", bound=Callable[..., Any])


def access_options(command: Command) -> Command:
    """Add `--certificates` and `--insecure`, by which scheduler, worker and `run` prove to each other who they are."""
    for option in (
        click.option(
            "--insecure",
            is_flag=True,
            help="Go without certificates: whoever reaches the scheduler or a worker can run programs as root there.",
        ),
        click.option(
            "--certificates",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder made by `natgauge certificates`.  [default: what Dask's configuration names]",
        ),
    ):
        command = option(command)
    return command


def warn(*, insecure: bool) -> None:
    """Print what going without certificates means."""
    if insecure:
        say(
            "natgauge: WARNING: --insecure: without certificates every user and program, on any machine, that reaches "
            "the scheduler or a worker can run programs as root on all of these machines",
            err=True,
        )


@cloup.command("certificates", short_help="Make the certificates of several machines.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def certificates_command(folder: Path) -> None:
    """Make the certificates that `natgauge scheduler`, `worker` and `run --on` ask each other for, in a new folder.

    Copy the folder to each of these machines. Whoever has one of its keys can run programs as root on all workers.
    """
    from natgauge import spread

    spread.need_dask()
    from natgauge.spread import access

    access.make_certificates(folder)
    say(f"{folder}: valid for {access.DAYS} days; whoever has a key of it can run programs as root on workers")
    named = shlex.quote(str(folder))
    address = f"dask://ADDRESS:{spread.PORT} --certificates {named}"
    for who, what in (
        ("copy it to each machine", f"scp -rp {named} HOST:"),
        ("one machine", f"natgauge scheduler {address}"),
        ("each that measures", f"natgauge worker {address}"),
        ("where the plan is", f"natgauge run PLAN --on {address}"),
    ):
        say(f"  {who + ':':25}{what}")


@cloup.command("scheduler", short_help="Give the campaigns of several machines their workers.")
@click.argument("address", metavar="dask://ADDRESS:PORT")
@access_options
def scheduler_command(address: str, certificates: Path | None, *, insecure: bool) -> None:
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


@cloup.command("worker", short_help="Measure for campaigns on other machines.")
@click.argument("scheduler", metavar="dask://HOST:PORT")
@click.option("--cores", type=CORES, metavar="CORES", help="Cores for this worker alone, e.g. 2-3.  [default: all]")
@click.option(
    "--lab", "labs", multiple=True, metavar="NAME", help="Name of a lab of this worker; repeatable.  [default: default]"
)
@click.option("--name", help="Unique name, written to the journal.  [default: digits and the cores]")
@access_options
def worker_command(
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
    from natgauge.spread.worker import machine_digest, reserved

    # Not the host's name, because journals are published.
    called = name or f"{machine_digest()[:6]}-{format_cores(mine).replace(',', '-')}"
    warn(insecure=insecure)
    with reserved(called, mine, labs or ("default",)) as offer:
        serve(where, security, offer, lambda text: say(text, err=True))
