# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.small_differences`: what `compare` finds, again and again (needs root; about 6 minutes).

nftables NAT44 stands beside itself, beside the same with one counter rule in a forward chain, and beside the same with
twenty; all in turn, so that no case has the quiet minutes. The whole is done as the host is, and while something takes
half of the core by chance. Every comparison is one that a user could have started, with its start and its end.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click
from tests.labs.burner import burning
from tests.labs.program import begins
from tests.labs.test_compare import recipe

import natgauge
from natgauge.host.cpus import usable_cpus
from natgauge.records.comparison import RatioEstimate

NAT = "nftables-nat44"
ITSELF = "itself"
CONNECTIONS = 1_000
#: Asked for, and what half of an interval that holds nothing must keep to.
RESOLVE, MOST_HALF, MOST_SECONDS = "0.8%", 0.008, 13.5
#: A comparison is no longer than this, with all that it makes and undoes.
LONGEST_SECONDS = 15.0
#: Of ten intervals at 95 % one may miss.
MAY_MISS = 0.1
#: Mean time that the burner takes the core, and mean time from one beginning to the next, in milliseconds.
BURNT_MS, EVERY_MS = 10, 20


@dataclass(frozen=True, slots=True)
class Run:
    """One comparison.

    Attributes:
        figure: of the second gateway.
        twin: of the first one against itself.
        seconds: all of it took.
    """

    figure: RatioEstimate
    twin: RatioEstimate
    seconds: float


def compared(folder: Path, beside: str | Path, core: int, connections: int) -> Run:
    """Nftables NAT44 beside this one."""
    began = time.monotonic()
    found = natgauge.compare(
        NAT,
        beside,
        results=folder,
        quantities="up",
        connections=connections,
        resolve=RESOLVE,
        most_seconds=MOST_SECONDS,
        core=core,
    )
    seconds = time.monotonic() - began
    (figure,), (twin,) = found.result.estimates, found.result.control
    return Run(figure, twin, seconds)


def holds_one(figure: RatioEstimate) -> bool:
    """Whether nothing against nothing was told."""
    return figure.low is not None and figure.high is not None and figure.low <= 1 <= figure.high


def row(case: str, runs: Sequence[Run]) -> tuple[str, bool]:
    """A line of the table, and whether it shows what it must."""
    alike = case == ITSELF
    ratios = [run.figure.ratio for run in runs if run.figure.ratio is not None]
    halves = [run.figure.half_width for run in runs if run.figure.half_width is not None]
    right = sum(holds_one(run.figure) if alike else run.figure.verdict == "costs more" for run in runs)
    longest = max(run.seconds for run in runs)
    found = f"{right} of {len(runs)} {'hold 1' if alike else 'cost more'}"
    cells = [
        case,
        f"{min(ratios):.3f} to {max(ratios):.3f}, median {statistics.median(ratios):.3f}",
        f"{100 * statistics.median(halves):.2f} %, {100 * max(halves):.2f} %",
        found,
        f"{statistics.median(run.seconds for run in runs):.1f} s, {longest:.1f} s",
    ]
    enough = right >= (1 - MAY_MISS) * len(runs) if alike else right == len(runs)
    narrow = not alike or max(halves) <= MOST_HALF
    return f"| {' | '.join(cells)} |", enough and narrow and longest <= LONGEST_SECONDS


def main() -> int:
    """Compare so often; 0 when what is there is found, and nothing else."""
    parser = argparse.ArgumentParser(description="What compare finds, again and again.")
    parser.add_argument("--times", type=int, default=10, help="each comparison (default %(default)s)")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="standing ones (default %(default)s)")
    arguments = parser.parse_args()
    times = arguments.times
    if not begins("small differences"):
        return 3
    core = usable_cpus()[0]
    good = True
    with tempfile.TemporaryDirectory(prefix="natgauge-small-") as name:
        folder = Path(name)
        cases: dict[str, str | Path] = {
            ITSELF: NAT,
            "one counter rule": recipe(folder, "one-rule", "counter"),
            "twenty counter rules": recipe(folder, "twenty-rules", *["counter"] * 20),
        }
        for host, burner in (
            ("the host as it is", nullcontext()),
            ("half of the core taken by chance", burning(core, BURNT_MS, EVERY_MS, by_chance=True)),
        ):
            runs: dict[str, list[Run]] = {case: [] for case in cases}
            with burner:
                for number in range(times):
                    for case, beside in cases.items():
                        run = compared(folder, beside, core, arguments.connections)
                        runs[case].append(run)
                        click.echo(f"{host}, {number + 1}, {case}, {run.seconds:.1f} s: {run.figure.text}", err=True)
            every = [run for each in runs.values() for run in each]
            twins = sum(holds_one(run.twin) for run in every)
            click.echo(f"\n{host}, N = {arguments.connections:,}: {NAT} beside\n")
            click.echo("| Beside | Ratio | Half of the interval: median, largest | Found | Time: median, longest |")
            click.echo("|---|---|---|---|---|")
            for case, each in runs.items():
                text, enough = row(case, each)
                good = good and enough
                click.echo(text)
            spent = [run.figure.nanoseconds for run in runs[ITSELF] if run.figure.nanoseconds is not None]
            click.echo(f"\nThe twin's interval held 1 in {twins} of {len(every)}.")
            click.echo(f"A frame cost {min(spent):.0f} to {max(spent):.0f} ns beside itself.\n")
    click.echo("All is found." if good else "NOT all is found.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
