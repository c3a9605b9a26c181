# SPDX-License-Identifier: Apache-2.0
"""`natgauge gateways new`: a recipe of a rule set that a router runs."""

from __future__ import annotations

from pathlib import Path

import click

from natgauge.cli.say import say
from natgauge.errors import UsageError

_PATH = click.Path(path_type=Path)


@click.command("new")
@click.argument("name")
@click.option("--from-nft", "source", required=True, metavar="FILE", type=_PATH, help="Rule set of nftables, one file.")
@click.option("--inside", required=True, metavar="NAME", help="Interface of the file towards the subscribers.")
@click.option("--outside", required=True, metavar="NAME", help="Interface of the file towards the Internet.")
@click.option("--inside-network", metavar="NETWORK", help="Network of the subscribers in the file, if it is there.")
@click.option("--outside-address", metavar="ADDRESS", help="Address of the file that is translated to, if it is there.")
@click.option("--into", metavar="FOLDER", default=".", show_default="this one", type=_PATH, help="Where it is made.")
def new(
    *,
    name: str,
    source: Path,
    inside: str,
    outside: str,
    inside_network: str | None,
    outside_address: str | None,
    into: Path,
) -> None:
    """Make a gateway of an existing rule set: a folder NAME with a recipe and a copy of the rules.

    In a lab the interfaces, and the network and the address if they are named, are those of the lab.
    """
    from natgauge.new_recipe import from_nft

    given = {"inside": inside, "outside": outside, "inside-network": inside_network, "outside-address": outside_address}
    if empty := next((option for option, word in given.items() if word is not None and not word.strip()), None):
        raise UsageError(f"--{empty}: is empty; write it as the rule set does", at=empty.replace("-", "_"))
    if inside == outside:
        raise UsageError(f"outside: {outside} is the inside interface, too; name the two of the rules", at="outside")
    variables = {
        inside: "NG_INSIDE",
        outside: "NG_OUTSIDE",
        inside_network: "NG_INITIATOR_NETWORK4",
        outside_address: "NG_OUTSIDE_ADDRESS4",
    }
    made = from_nft(name, source, {own: variable for own, variable in variables.items() if own is not None})
    folder = made.write(into / name)
    path = folder if folder.is_absolute() else f"./{folder}"
    say(f"{path}/gateway.toml; try it: natgauge compare nftables-nat44 {path}")
