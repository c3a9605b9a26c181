# SPDX-License-Identifier: Apache-2.0
"""`natgauge diff`: two stored results, or two folders of them, held against each other."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("diff", short_help="Hold one stored result, or run, against another.")
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--about",
    multiple=True,
    metavar="NAME",
    help="A parameter (kernel, version ...), or a group of them (settings, traffic, place, device), that may differ; "
    "may be given several times.",
)
@click.option(
    "--across",
    multiple=True,
    metavar="NAME",
    help="A parameter that was varied on purpose (connections, device_cores ...): it, and what grows with it, may "
    "differ; may be given several times.",
)
@click.option(
    "--margin",
    metavar="SHARE",
    default="0",
    show_default=True,
    help="Changes up to this share, such as 5%, are no difference; results that did not take turns need one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
@click.pass_context
def command(
    context: click.Context,
    *,
    first: Path,
    second: Path,
    about: tuple[str, ...],
    across: tuple[str, ...],
    margin: str,
    as_json: bool,
) -> None:
    """Hold run B against run A: per metric B's median over A's, and the interval that holds the true ratio with 95 %.

    A and B are results folders, folders that hold several, or campaigns. Results set up differently are not compared,
    and the parameters that differ are named; --about and --across allow some. Results that did not take turns (as in
    rounds of one campaign) are called better or worse only beyond a --margin: runs differ by more than repetitions.

    Exit status: 0 nothing is worse, 1 something is worse (or changed, where neither is better), 5 something cannot be
    told or is not compared; 2 to 4 are errors.
    """
    from natgauge.reports import difference, stored

    found = difference.diff(
        stored.find([first]).results,
        stored.find([second]).results,
        about=about,
        across=across,
        margin=_share(margin),
    )
    if as_json:
        import json

        click.echo(json.dumps(difference.document(found), allow_nan=False))
    else:
        click.echo(difference.text(found))
    context.exit(found.exit_status)


def _share(text: str) -> float:
    """A share of 1, from "5%" or "0.05"; its range is judged where it is used."""
    from natgauge.errors import UsageError

    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise UsageError(f"diff: margin {text!r} is no share; give one such as 5%") from None
    return number / 100 if text.endswith("%") else number
