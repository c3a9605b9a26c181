# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.aa_diff`: an A/A control of `natgauge diff` (needs root; about 25 minutes).

One gateway is measured again and again by runs of their own, the metrics in turn. Every pair of runs of one metric is
held against each other. Nothing differs, so a `diff` at 95 % may call at most one pair of twenty "worse" or "better",
which is rounded up to 5 of the 45 pairs of ten runs. The table also tells what the repetitions of both runs would say
alone, and how far runs lie from one another. Results stay in the folder, so a long control can be measured in parts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import click
from tests.labs.program import begins

import natgauge
from natgauge.analysis.contrast import contrast
from natgauge.records.measurement import Result
from natgauge.reports.difference import diff
from natgauge.stored import find_results

GATEWAY: Final = "nftables-nat44"
#: Four repetitions are the fewest that give an interval of 95 % (Mann-Whitney).
REPETITIONS: Final = 4
METRICS: Final[dict[str, dict[str, Any]]] = {
    "connection-rate": {"connections": 20_000},
    "throughput": {"connections": 5_000, "connection_rate": 50_000, "trial_seconds": 0.2},
    "cost": {"connections": 10_000, "rounds": 3},
}
#: Share of the pairs that may be called "worse" or "better", and what it comes to of ten runs.
MAY_MISS: Final = 0.05
MOST_MISSES: Final = 5
RUNS: Final = 10


def measured(folder: Path, metric: str) -> list[Result]:
    """The runs of this metric so far."""
    return list(find_results.find([folder / metric]).results) if (folder / metric).is_dir() else []


def measure(folder: Path, runs: int, most_seconds: float) -> bool:
    """Measure what is missing, the metrics in turn; whether nothing is missing now."""
    began = time.monotonic()
    done = {metric: len(measured(folder, metric)) for metric in METRICS}
    for number in range(1, runs + 1):
        for metric, choices in METRICS.items():
            if done[metric] >= number:
                continue
            if time.monotonic() - began > most_seconds:
                return False
            begun = time.monotonic()
            found = natgauge.measure(
                metric,
                GATEWAY,
                results=folder / metric,
                lab_name=f"aa-diff-{os.getpid()}",
                profile="quick",
                repeat=REPETITIONS,
                **choices,
            )
            said = f"{metric}, run {number}: {found.document()['median']:,.6g} {found.document()['unit']}"
            click.echo(f"{said} ({time.monotonic() - begun:.0f} s)", err=True)
    return True


def row(metric: str, runs: Sequence[Result]) -> tuple[str, bool]:
    """A line of the table, and whether few enough pairs are called different."""
    pairs = list(combinations(runs, 2))
    lines = [diff([first], [second]).lines[0] for first, second in pairs]
    outcomes = Counter(
        f"{line.outcome} ({line.conclusion.reason})" if line.conclusion.reason else line.outcome for line in lines
    )
    misses = outcomes["worse"] + outcomes["better"]
    alone = [contrast(first, second) for first, second in pairs]
    medians = [run.median for run in runs]
    allowed = int(MAY_MISS * len(pairs))
    needed = sorted(
        max(0.0, 1 - one.interval.upper, 1 - 1 / one.interval.lower) if one.interval.lower else 0.0 for one in alone
    )
    cells = [
        metric,
        f"{len(runs)}, {len(pairs)} pairs",
        f"{min(medians):,.4g} to {max(medians):,.4g}",
        f"{statistics.stdev(medians) / statistics.fmean(medians):.1%}, {max(medians) / min(medians) - 1:.1%}",
        f"{sum(one.sure and one.differs for one in alone)}",
        f"{needed[-1 - allowed]:.1%}",
        f"{misses}",
        "; ".join(f"{outcome} {number}" for outcome, number in sorted(outcomes.items())),
    ]
    return f"| {' | '.join(cells)} |", misses <= max(MOST_MISSES * len(pairs) // 45, allowed)


def main() -> int:
    """Measure and hold against each other; 0 where the control holds, 1 where it does not, 5 where runs are missing."""
    parser = argparse.ArgumentParser(description="An A/A control of natgauge diff.")
    parser.add_argument("--folder", type=Path, required=True, help="keeps the results; a second call goes on there")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each metric (default %(default)s)")
    parser.add_argument("--most-seconds", type=float, default=3600, help="begin no run later (default %(default)s)")
    arguments = parser.parse_args()
    if not begins("aa_diff"):
        return 3
    whole = measure(arguments.folder, arguments.runs, arguments.most_seconds)
    click.echo(
        "| Metric | Runs | Medians | Standard deviation of runs, farthest two | Differ by their repetitions alone | "
        "Margin that 95 % keep to | Worse or better | diff says |"
    )
    click.echo("|---|---|---|---|--:|--:|--:|---|")
    good = True
    for metric in METRICS:
        runs = measured(arguments.folder, metric)
        if len(runs) > 1:
            text, few = row(metric, runs)
            good = good and few
            click.echo(text)
    if not whole:
        click.echo("runs are missing; call it again with the same folder", err=True)
        return 5
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
