# SPDX-License-Identifier: Apache-2.0
"""`natgauge demo`: a first result in under two minutes, without hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

_DUT: Final = "nftables-nat44"
_CONNECTIONS: Final = 100_000


@click.command("demo")
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Folder.")
def command(results: Path) -> None:
    """Measure the kernel's own NAT44 in namespaces: connection rate, then throughput."""
    from natgauge.campaigns.measure import Answer, Question, answer
    from natgauge.campaigns.plan import TrafficOptions
    from natgauge.cli.measure import show
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.reports.text import table

    traffic = TrafficOptions(connections=_CONNECTIONS)

    def ask(metric: str, **settings: object) -> Answer:
        with ProgressDisplay() as display:
            question = Question(metric=metric, dut=_DUT, traffic=traffic, settings=settings, results=results)
            return answer(question, display)

    rate = ask("connection-rate", repeat=3)
    known = rate.result.summary.median
    found = [rate, ask("throughput", repeat=3, trial_seconds=1.0, **({"connection_rate": known} if known else {}))]
    click.echo()
    for each in found:
        show(each, as_json=False)
    click.echo()
    click.echo(table([each.document for each in found]))
