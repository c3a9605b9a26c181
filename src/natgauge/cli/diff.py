# SPDX-License-Identifier: Apache-2.0
"""`natgauge diff`: the differences between two stored results, or two folders of results."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from natgauge.cli.parameters import SHARE
from natgauge.cli.say import document, epilog, say
from natgauge.tables import columns


@cloup.command(
    "diff",
    short_help="Compare one stored result, or run, with another.",
    epilog=epilog("diff", "natgauge diff before after --margin 5%"),
)
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--about",
    multiple=True,
    metavar="NAME",
    help="A parameter (kernel, version ...), or a group of them (settings, traffic, place, device), that may differ; "
    "repeatable.",
)
@click.option(
    "--across",
    multiple=True,
    metavar="NAME",
    help="A parameter that was varied on purpose (connections, device_cores ...): it may differ, and so may the "
    "parameters that grow with it; repeatable.",
)
@click.option(
    "--margin",
    type=SHARE,
    metavar="SHARE",
    default="0",
    show_default=True,
    help="Changes up to this share, such as 5%, count as no difference; results of separate runs need a margin.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(
    *, first: Path, second: Path, about: tuple[str, ...], across: tuple[str, ...], margin: float, as_json: bool
) -> int:
    """Compare run B with run A: for each metric, the ratio of B's median to A's and its 95 % confidence interval.

    A and B are results folders, folders that contain several, or campaigns. Results with different parameters are not
    compared, and the differing parameters are listed; --about and --across allow some. Runs differ by more than
    repetitions do, so results that did not alternate in one campaign are better or worse only beyond a --margin.

    Comparisons can be compared, too: for each gateway and quantity, the ratio of both ratios to the baseline, which
    must be the same gateway in both.
    """
    from natgauge.reports import difference
    from natgauge.stored import find_results

    before, after = (find_results.find([folder]) for folder in (first, second))
    find_results.refuse_same(before, after)
    found = difference.diff(before.every, after.every, about=about, across=across, margin=margin)
    if as_json:
        document(difference.document(found))
    else:
        say(difference.text(found, columns()))
    return found.exit_status
