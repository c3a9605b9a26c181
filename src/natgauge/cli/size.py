# SPDX-License-Identifier: Apache-2.0
"""`natgauge size`: whether a gateway carries a number of subscribers, by what was measured of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import cloup

from natgauge import file_access
from natgauge.cli.names import WholeRange
from natgauge.cli.parameters import ValueType
from natgauge.cli.say import document, epilog, say, say_copies
from natgauge.errors import UsageError
from natgauge.inputs.input import Number
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.analysis.sizing import Subscribers
    from natgauge.reports.collected import StoredResults
    from natgauge.reports.sizing.answer import SizeAnswer

_AMOUNT: Final = ValueType(Number())
#: The least and the most of anything that a subscriber may take: less or more would say nothing of networks, and much
#: of typing errors. By less, results would be more subscribers than a float holds.
_LEAST: Final = 1e-9
_MOST: Final = 1e9


@cloup.command(
    "size",
    short_help="Say whether a gateway carries a number of subscribers.",
    epilog=epilog(
        "size", "natgauge size results/day --subscribers 5000 --connections-each 60 --new-each 0.5 --mbit-each 2"
    ),
)
@click.argument("folders", nargs=-1, required=True, metavar="RESULT...", type=click.Path(path_type=Path))
@click.option("--subscribers", required=True, metavar="N", type=WholeRange(1, 10**9), help="Number of subscribers.")
@click.option("--connections-each", metavar="C", type=_AMOUNT, help="Open connections of each at the busiest time.")
@click.option("--new-each", metavar="R", type=_AMOUNT, help="New connections/s of each at the busiest time.")
@click.option("--mbit-each", metavar="M", type=_AMOUNT, help="Mbit/s of IP packets of each, in the busier direction.")
@click.option(
    "--mean-frame",
    metavar="OCTETS",
    type=WholeRange(64, 9216),
    help="Mean size of their frames, with FCS, without VLAN tags; by default that of the throughput's frames.",
)
@click.option(
    "--outside-addresses",
    metavar="A",
    type=WholeRange(1, 2**24),
    help="IPv4 addresses that the gateway translates to; each connection takes a port, or each subscriber a block.",
)
@click.option(
    "--device-timeout",
    metavar="SECONDS",
    type=_AMOUNT,
    help="Time for which the gateway keeps a connection after its last frame; by default that of the results.",
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the page of natgauge report --html, too, which begins with this answer; - prints the page alone.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(
    *,
    folders: tuple[Path, ...],
    subscribers: int,
    connections_each: float | None,
    new_each: float | None,
    mbit_each: float | None,
    mean_frame: int | None,
    outside_addresses: int | None,
    device_timeout: float | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Print which gateways carry the subscribers, what ends them first, how many cores all need, and what to change.

    RESULT is a results folder, a folder with several of them, or a campaign's: connection-rate for new connections,
    table-capacity for open ones, throughput for bits. The page of --html has the comparisons among them, too. Name at
    least one of --connections-each, --new-each and --mbit-each. The exit status is 0 if every gateway carries them, 1
    if one does not, and 5 if it cannot be told.
    """
    from natgauge.analysis.sizing import Subscribers, takes_addresses
    from natgauge.reports.sizing import answer, words
    from natgauge.stored import find_results

    asked = Subscribers(
        subscribers, connections_each, new_each, mbit_each, mean_frame, outside_addresses, device_timeout
    )
    _refuse(asked)
    is_page = html is not None and file_access.is_stream(html)
    if as_json and is_page:
        raise UsageError("size: --json: standard output has the page; leave one out, or name a file with --html")
    collected = find_results.find(folders, failed=html is not None)
    say_copies(collected)
    results = collected.results
    found = words.sized(results, asked)
    takes_ports = any(one.asked.entries is not None for one in found)
    if found and outside_addresses is not None and not takes_ports and not any(map(takes_addresses, found)):
        raise UsageError(
            f"--outside-addresses: {outside_addresses} limits nothing here, because no gateway's blocks of ports are "
            "known; add --connections-each, or leave it out",
            at="outside_addresses",
        )
    if html is not None:
        _write(collected, html, answer.answer_of(found))
    if as_json:
        document(answer.document(found, asked, results))
    elif not is_page:
        say(answer.text(found, asked, results, columns()))
    return answer.exit_status(found, subscribers)


def _refuse(asked: Subscribers) -> None:
    """Refuse a question that nothing answers, and amounts that no subscriber has."""
    if not asked.needs():
        raise UsageError(
            "size: what does a subscriber take? Name at least one of --connections-each, --new-each and --mbit-each"
        )
    for name, amount in (
        ("connections_each", asked.connections),
        ("new_each", asked.new),
        ("mbit_each", asked.megabits),
        ("device_timeout", asked.kept),
    ):
        if amount is not None and not _LEAST <= amount <= _MOST:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: {amount:g} is outside of its range: {_LEAST:g} to {_MOST:g}", at=name)
    if asked.kept is not None and asked.new is None:
        raise UsageError(
            f"--device-timeout: {asked.kept:g} says nothing without new connections; add --new-each, or leave it out",
            at="device_timeout",
        )
    if asked.mean_frame is not None and asked.megabits is None:
        raise UsageError(
            f"--mean-frame: {asked.mean_frame} says nothing without bits; add --mbit-each, or leave it out",
            at="mean_frame",
        )


def _write(collected: StoredResults, path: Path, answer: SizeAnswer) -> None:
    from natgauge.reports.heading import OwnWords
    from natgauge.reports.html import page
    from natgauge.trial.question import command_again

    page.write(collected, path, command_again, OwnWords(answer.title), answer)
    if not file_access.is_stream(path):
        say(path, err=True)
