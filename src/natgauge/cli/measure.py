# SPDX-License-Identifier: Apache-2.0
"""`natgauge measure`: one metric of one gateway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from natgauge.bench.question import GROUPS, place_options
from natgauge.cli import settings as procedure_settings
from natgauge.cli.choices import only_in, options
from natgauge.labs import kinds
from natgauge.options import options_of

if TYPE_CHECKING:
    from natgauge.measurements.measure import Answer

#: Every option of any kind of lab; those that not all have say which do.
_PLACE = [
    option if len(having) == len(kinds.kinds()) else only_in(option, having)
    for option, having in place_options().values()
]


_LABS = ", ".join(f"{name} ({kind.summary})" for name, kind in kinds.kinds().items())
_CELL = [
    option.with_help(f"{option.help}: {_LABS}") if option.name == "lab" else option
    for option in options_of(GROUPS["options"])
]


@click.command("measure", short_help="Measure one metric of one gateway.")
@click.argument("metric")
@click.option(
    "--dut", required=True, metavar="NAME", help="Gateway to measure: see `natgauge duts`; or a recipe's path."
)
@options(options_of(GROUPS["traffic"]))
@procedure_settings.options
@options(_CELL)
@options(_PLACE)
@options(options_of(GROUPS["wishes"]))
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Folder.")
@click.option(
    "--host-name", is_flag=True, help="Write the host's name into the results folder, which may be published."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(metric: str, dut: str, results: Path, host_name: bool, as_json: bool, **choices: Any) -> None:
    """Measure METRIC (connection-rate, throughput ...) of one gateway.

    Progress goes to standard error, the result to standard output, the evidence of every trial to a results folder.
    """
    from natgauge.bench.question import ask
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.measurements.measure import answer

    question = ask(metric, dut, choices)
    with ProgressDisplay() as display:
        found = answer(question, display, results=results, host_name=host_name)
    show(found, as_json=as_json)


def show(found: Answer, *, as_json: bool) -> None:
    """Print an answer: one JSON object, or words and where the evidence lies."""
    if as_json:
        import json

        click.echo(json.dumps(found.document, allow_nan=False))
        return
    from natgauge.records.measurement import Result
    from natgauge.reports.text import verdict

    click.echo(verdict(Result.from_document(found.document)))
    click.echo(f"  Evidence: {found.folder}")
