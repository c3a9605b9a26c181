# SPDX-License-Identifier: Apache-2.0
"""`natgauge explain`: where the frames of a trial were lost, hop by hop."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from natgauge.cli.names import WholeRange
from natgauge.cli.say import document, epilog, say, wrapped


@cloup.command(
    "explain",
    short_help="Show where the frames of a trial were lost.",
    epilog=epilog("explain", "natgauge explain results/2026-11-23-101500-throughput-nftables-nat44 7"),
)
@click.argument("result", metavar="RESULT", type=click.Path(path_type=Path))
@click.argument("trial", metavar="[TRIAL]", required=False, type=WholeRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(*, result: Path, trial: int | None, as_json: bool) -> None:
    """Print the hop that lost the frames of a trial, the counters that say so, and what changes them.

    RESULT is the results folder of a measurement. TRIAL is the number of a trial, from 1; without it, the answer of the
    result, and the last trial that failed. The hops are the tester's port, receive ring, backlog (softnet), header
    check, connection tracking, routing, rules, the gateway's own causes, the way out, and the tester's port on the
    other side.
    """
    from natgauge.reports import failures
    from natgauge.stored import find_results

    find_results.refuse_edited(result)
    lead = failures.answered(result) if trial is None else []
    if lead and not failures.has_trials(result):
        empty = {"schema": failures.EXPLANATION_SCHEMA, "results": str(result), "trial": None, "answers": lead}
        document(empty) if as_json else say(wrapped("\n".join([*lead, "It has no trials to explain."])))
        return
    explained = failures.explain(result, trial)
    if as_json:
        document({**failures.document_of_explanation(explained), "answers": lead})
    else:
        say(wrapped("\n".join([*lead, failures.text_of_explanation(explained)])))
