# SPDX-License-Identifier: Apache-2.0
"""`natgauge lab`: labs that are kept for work by hand, and remains of killed runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import cloup

from natgauge.cli.names import GATEWAY, LAB, Commands
from natgauge.cli.parameters import option
from natgauge.cli.say import json_object, say
from natgauge.inputs.input import inputs_of
from natgauge.interruption import leaves
from natgauge.labs import kinds


@cloup.group("lab", cls=Commands, short_help="Make, list and remove labs.")
def command() -> None:
    """Make a lab and keep it, remove it, list labs, and clean up after killed runs."""


@command.command("up", params=[option(input_) for input_ in inputs_of(kinds.kept().options, "place")])
@click.argument("name", default="default")
@click.option(
    "--gateway",
    type=GATEWAY,
    metavar="NAME",
    help="Gateway that determines the lab's address families and cores.  [default: IPv4 to IPv4]",
)
@click.option("--background", is_flag=True, help="Route native IPv6, too, as --foreground-share requires.")
def up(name: str, gateway: str | None, background: bool, **choices: Any) -> None:
    """Make a lab of network namespaces and keep it; `natgauge lab down` removes it.

    `natgauge measure ... --lab-name NAME` then measures in it, any number of times.
    """
    from natgauge.setup.setup import keep_lab

    lab = keep_lab(name, gateway, choices, background=background)
    say(f"lab {lab.name} is up: tester namespace {lab.initiator.netns}")
    for port, side in ((lab.initiator, "Initiator"), (lab.responder, "Responder")):
        say(f"  {side} port {port.interface}, the device's side is {port.gateway_address} ({port.gateway_mac})")
    for device in lab.devices:
        say(f"  device {device.name}: {device.inside} towards the Initiator, {device.outside} the Responder")


@command.command("guest")
def guest() -> None:
    """Build the guest for `--lab vm` from Debian packages; needed once, requires root, takes some minutes."""
    from natgauge import guest_building

    built = guest_building.build(say)
    say(f"guest with Linux {built.release}: {built.kernel.parent}")


@command.command("down")
@click.argument("name", default="default", type=LAB)
def down(name: str) -> None:
    """Remove one lab and undo its changes."""
    from natgauge import cleaning

    with leaves("natgauge lab status lists what is left"), _told() as tell:
        if not cleaning.take_down(name, tell):
            tell(f"lab {name} had nothing left to undo")


@command.command("clean")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; nothing is changed.")
@click.option(
    "--strays", is_flag=True, help="Remove also namespaces named ng-... that natgauge did not make, with processes."
)
def clean(*, dry_run: bool, strays: bool) -> None:
    """Remove the remains of killed runs and all kept labs, of every user, except labs in use.

    Only namespaces that natgauge made are removed. Others whose names begin with "ng-" are listed with their processes;
    --strays removes them, too. The network namespace of the machine, and processes that natgauge was started from, are
    never touched.
    """
    from natgauge import cleaning
    from natgauge.labs.common.undoing import Left

    decisions = cleaning.decide(strays=strays)
    if dry_run:
        for line in cleaning.would(decisions):
            say(line)
    else:
        with leaves("natgauge lab clean removes what is left"), _told() as tell:
            cleaning.carry_out(decisions, tell)
    outcomes = [outcome for decision in decisions for outcome in decision.outcomes]
    if all(isinstance(outcome, Left) and not outcome.fails for outcome in outcomes):
        say("nothing to clean")


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """List the labs of this machine."""
    from natgauge import cleaning
    from natgauge.host.private_files import HiddenLabsError

    hidden = ""
    try:
        labs = cleaning.status()
    except HiddenLabsError as error:
        labs, hidden = [], str(error)
    if as_json:
        json_object("labs", {"labs": labs, "hidden": hidden or None})
        return
    if hidden:
        say(hidden)
    elif not labs:
        say("no labs")
    for lab in labs:
        user = f" by process {lab.pid}" if lab.pid else f" by {lab.user}" if lab.user and lab.state == "kept" else ""
        say(f"{lab.name}: {lab.kind}, {lab.state}{user}; namespaces {', '.join(lab.namespaces) or 'none'}")
        for path, value in lab.changed.items():
            say(f"  changed {path}, was {value}")


@contextmanager
def _told() -> Iterator[Callable[[str], object]]:
    """Print the lines of the block once it has ended, also with an error: a full or closed output stops no undoing."""
    lines: list[str] = []
    try:
        yield lines.append
    finally:
        for line in lines:
            say(line)
