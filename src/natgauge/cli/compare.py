# SPDX-License-Identifier: Apache-2.0
"""`natgauge compare`: what gateways cost beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge.bench.question import inputs_of_part
from natgauge.cli.generator import grouped, json_option, option, results_option
from natgauge.cli.help import epilog
from natgauge.cli.names import GATEWAY
from natgauge.comparisons.asked import CompareOptions
from natgauge.errors import UsageError
from natgauge.inputs.input import inputs_of
from natgauge.notes import Note

if TYPE_CHECKING:
    from natgauge.comparisons.figures import Figure
    from natgauge.comparisons.running import Compared


_FORMAT = cloup.Option(
    ["--format", "form"],
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="For people, or for a comment on a change.",
)
_PLACE: Final = ("by", "placement", "core")


def _options() -> dict[str, list[click.Option]]:
    """All options, by heading."""
    own = {one.name: option(one) for one in inputs_of(CompareOptions)}
    return {
        "Comparison": [each for name, each in own.items() if name not in _PLACE],
        "Traffic": [option(one) for one in inputs_of_part("traffic")],
        "Lab": [own[name] for name in _PLACE],
        "Device": [option(one) for one in inputs_of_part("wishes")],
        "Output": [results_option(), _FORMAT, json_option()],
    }


@cloup.command(
    "compare",
    short_help="Compare what gateways cost, slice by slice.",
    params=grouped(_options()),
    epilog=epilog(
        "compare",
        "natgauge compare nftables-nat44 iptables-nat44",
        "natgauge compare ./base.toml ./new.toml --fail-above 3%",
    ),
)
@click.argument("gateways", nargs=-1, metavar="BASELINE GATEWAY...", type=GATEWAY)
def command(gateways: tuple[str, ...], results: Path, form: str, as_json: bool, **choices: Any) -> int:
    """Compare gateways that are up at once, in slices of a fraction of a millisecond that alternate on one core.

    Those that work in processes of their own, or behind a wire, are compared by the highest rates they have in turn.

    A gateway is a name (see `natgauge duts`) or a recipe's path; settings may follow:
    nftables-nat44:connections=1000000
    """
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.comparisons.running import compare

    if as_json and form != "text":
        raise UsageError(f"compare: --json prints JSON, not {form}; leave out one of --json and --format")
    with ProgressDisplay() as display:
        found = compare(*gateways, results=results, observe=display, look=_tell, **choices)
    _show(found, form=form, as_json=as_json)
    return found.exit_status


def _tell(seconds: float, rounds: int, figures: Sequence[Figure]) -> None:
    """The intervals as they close."""
    for figure in figures:
        if figure.ratio is not None and figure.low is not None and figure.high is not None:
            click.echo(
                f"{seconds:.0f} s, {rounds} rounds: {figure.quantity} of {figure.gateway}: "
                f"{figure.ratio:.4f} ({figure.low:.4f} to {figure.high:.4f})",
                err=True,
            )


def _show(found: Compared, *, form: str, as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(found.document, allow_nan=False))
        return
    from natgauge.cli.comment import answer, comment, doubts_told

    document = found.document
    if form == "markdown":
        click.echo(comment(found))
        return
    what = "of the device's own work on one core" if document["by"] == "slices" else "of time at the highest rate"
    click.echo(f"Beside {document['baseline']}, {what}:")
    for figure in found.figures:
        costs = _costs(figure.nanoseconds, figure.share_of_forwarding)
        click.echo(f"  {figure.text}{costs}{_lengths(document['devices'], figure.gateway, document['baseline'])}")
    click.echo("The first gateway against itself:")
    for figure in found.twin:
        click.echo(f"  {figure.text}")
    click.echo(f"Costs of {document['baseline']}, which move with the host:")
    for one in document["baseline_costs"]:
        costs = _costs(one["nanoseconds"], one["share_of_forwarding"]).removeprefix("; ") or "not known"
        tester = one["tester_nanoseconds"]
        click.echo(f"  {one['quantity']}: {costs}" + ("" if tester is None else f"; the tester's own: {tester:.0f} ns"))
    for remark in [
        *(f"Note: {Note(**note)}" for note in document["notes"]),
        *(f"Doubt: {one}" for one in doubts_told(document)),
    ]:
        click.echo(f"  {remark}")
    if document["fail_above"] is not None:
        click.echo(f"Answer: {answer(found)}")
    for label, rates in document.get("rates", {}).items():
        told = (rate_shown(document, label, name, rate) for name, rate in rates.items() if rate is not None)
        click.echo(f"  Rates of {label}: {', '.join(told)}")
    click.echo(f"  {document['seconds']:.0f} s, {document['rounds']} rounds. Evidence: {document['evidence']}")


def _lengths(devices: Mapping[str, int], gateway: str, baseline: str) -> str:
    """The numbers of devices of a gateway and of the baseline, where these are unequal."""
    own, other = devices[gateway], devices[baseline]
    return "" if own == other else f"; {own} {'device' if own == 1 else 'devices'}, the baseline has {other}"


def rate_shown(document: Mapping[str, Any], label: str, quantity: str, rate: float) -> str:
    """A rate, and whether the gateway may have a higher one."""
    of_rate = [one for one in document["limits"] if (one["gateway"], one["quantity"]) == (label, quantity)]
    limited = 2 * sum(one["searches"] for one in of_rate) > max((one["of"] for one in of_rate), default=0)
    return f"{quantity} {'at least ' if limited else ''}{rate:,.0f}/s"


def _costs(nanoseconds: float | None, share: float | None) -> str:
    parts = []
    if nanoseconds is not None:
        parts.append(f"{nanoseconds:,.0f} ns")
    if share is not None:
        parts.append(f"{share:.2f} x plain forwarding")
    return "; " + ", ".join(parts) if parts else ""
