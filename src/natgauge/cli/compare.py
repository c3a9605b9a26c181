# SPDX-License-Identifier: Apache-2.0
"""`natgauge compare`: costs of gateways, compared with a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import cloup

from natgauge.cli.names import GATEWAY
from natgauge.cli.parameters import grouped, json_option, option, results_option, verbose_option
from natgauge.cli.say import document, epilog, say, wrapped
from natgauge.comparisons.request import OF_ALL, CompareOptions
from natgauge.errors import UsageError
from natgauge.inputs.input import inputs_of
from natgauge.setup.cell import inputs_of_part
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.records.comparison import RatioEstimate


_FORMAT = cloup.Option(
    ["--format", "form"],
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="Format of the result: text, or markdown for a comment on a change.",
)
_PLACE: Final = ("by", "placement", "core")


def _options() -> dict[str, list[click.Option]]:
    own = {input_.name: option(input_) for input_ in inputs_of(CompareOptions)}
    return {
        "Comparison": [each for name, each in own.items() if name not in _PLACE],
        "Traffic": [option(input_) for input_ in inputs_of_part("traffic")],
        "Lab": [
            *(own[name] for name in _PLACE),
            *(option(input_) for input_ in inputs_of_part("lab") if input_.name in OF_ALL),
        ],
        "Device": [option(input_) for input_ in inputs_of_part("device")],
        "Output": [results_option(), _FORMAT, verbose_option(), json_option()],
    }


@cloup.command(
    "compare",
    short_help="Compare the costs of gateways with a baseline.",
    params=grouped(_options()),
    epilog=epilog(
        "compare",
        "natgauge compare nftables-nat44 iptables-nat44",
        "natgauge compare ./base.toml ./new.toml --fail-above 3%",
    ),
)
@click.argument("gateways", nargs=-1, metavar="BASELINE GATEWAY...", type=GATEWAY)
def command(gateways: tuple[str, ...], results: Path, form: str, verbose: bool, as_json: bool, **choices: Any) -> int:
    """Compare the costs of gateways, each with the costs of BASELINE.

    Gateways in the kernel are timed in short slices that alternate on one core. Gateways with processes, or behind a
    wire, are compared by their highest rates, which are searched in turn.

    A gateway is a name (see `natgauge gateways`) or the path of a recipe. Settings may follow it:
    nftables-nat44:connections=1000000
    """
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.comparisons.compare import compare
    from natgauge.reports import comparison

    if as_json and form != "text":
        raise UsageError(f"compare: --json prints JSON, not {form}; leave out one of --json and --format")
    with ProgressDisplay(verbose=verbose) as display:
        on_interim = partial(_show_intervals, display)
        compared = compare(*gateways, results=results, observe=display, on_interim=on_interim, **choices)
    if as_json:
        document(compared.result.document())
    elif form == "markdown":
        say(comparison.comment(compared.result))
    else:
        say(wrapped(comparison.text(compared.result, brief=not verbose, width=columns())))
    return compared.exit_status


def _show_intervals(display: ProgressDisplay, seconds: float, rounds: int, estimates: Sequence[RatioEstimate]) -> None:
    from natgauge.reports.comparison import change, interval

    display.interim(
        "\n".join(
            f"{seconds:.0f} s, {rounds} rounds: {estimate.quantity} of {estimate.gateway}: "
            f"{change(estimate, estimate.ratio)} ({interval(estimate)})"
            for estimate in estimates
            if estimate.ratio is not None and estimate.low is not None and estimate.high is not None
        )
    )
