# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.small_differences`: differences that repeated comparisons find (needs root; about 15 minutes).

nftables NAT44 is compared with itself, with a copy that has one counter rule in a forward chain, and with a copy that
has twenty. The three cases take turns, so that the quiet minutes of the host are not all of one case. All comparisons
are made twice: on the host as it is, and while another process takes half of the core at random times.
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
from tests.labs.nat44 import with_rules
from tests.labs.program import begins

import natgauge
from natgauge.host.cpus import usable_cpus
from natgauge.records.comparison import RatioEstimate

NAT = "nftables-nat44"
ITSELF = "itself"
CONNECTIONS = 1_000
#: The resolution that is requested, and the largest half width of an interval that contains 1.
RESOLVE, MOST_HALF, MOST_SECONDS = "0.8%", 0.008, 13.5
#: Longest time of a comparison, with all that it makes and undoes.
LONGEST_SECONDS = 15.0
#: Largest share of the intervals at 95 % that may miss the truth.
MOST_MISSES = 0.1
#: Mean time that the burner takes the core, and mean time from one beginning to the next, in milliseconds.
BURNT_MS, EVERY_MS = 10, 20


@dataclass(frozen=True, slots=True)
class Run:
    """One comparison.

    Attributes:
        figure: ratio of the second gateway to the first one.
        control: ratio of the first gateway to its own copy, the A/A control.
        seconds: duration of the whole comparison.
    """

    figure: RatioEstimate
    control: RatioEstimate
    seconds: float


def compare_once(folder: Path, other: str | Path, core: int, connections: int) -> Run:
    """Compare nftables NAT44 with another gateway."""
    began = time.monotonic()
    comparison = natgauge.compare(
        NAT,
        other,
        results=folder,
        quantities="up",
        connections=connections,
        resolve=RESOLVE,
        most_seconds=MOST_SECONDS,
        core=core,
    )
    seconds = time.monotonic() - began
    (figure,), (control,) = comparison.result.estimates, comparison.result.control
    return Run(figure, control, seconds)


def contains_one(figure: RatioEstimate) -> bool:
    """Whether the interval contains 1, as that of two equal gateways must."""
    return figure.low is not None and figure.high is not None and figure.low <= 1 <= figure.high


def row(case: str, runs: Sequence[Run]) -> tuple[str, list[str]]:
    """Return a line of the table, and what is not as it should be: verdicts, width of the intervals, time."""
    alike = case == ITSELF
    ratios = [run.figure.ratio for run in runs if run.figure.ratio is not None]
    halves = [run.figure.half_width for run in runs if run.figure.half_width is not None]
    right = sum(contains_one(run.figure) if alike else run.figure.verdict == "costs more" for run in runs)
    longest = max(run.seconds for run in runs)
    verdict = f"{right} of {len(runs)} {'contain 1' if alike else 'cost more'}"
    cells = [
        case,
        f"{min(ratios):.3f} to {max(ratios):.3f}, median {statistics.median(ratios):.3f}",
        f"{100 * statistics.median(halves):.2f} %, {100 * max(halves):.2f} %",
        verdict,
        f"{statistics.median(run.seconds for run in runs):.1f} s, {longest:.1f} s",
    ]
    wrong = [
        (right < len(runs) - (MOST_MISSES * len(runs) if alike else 0), f"only {verdict}"),
        (alike and max(halves) > MOST_HALF, f"an interval is {max(halves):.2%} to each side, not {MOST_HALF:.1%}"),
        (longest > LONGEST_SECONDS, f"a comparison took {longest:.1f} s, not {LONGEST_SECONDS:.0f} s"),
    ]
    return f"| {' | '.join(cells)} |", [f"{case}: {words}" for is_wrong, words in wrong if is_wrong]


def main() -> int:
    """Make the comparisons; return 0 if verdicts, widths and times are as they should be, 1 if not, 3 without root."""
    parser = argparse.ArgumentParser(description="Differences that repeated comparisons find.")
    parser.add_argument("--times", type=int, default=10, help="comparisons of each case (default %(default)s)")
    parser.add_argument(
        "--connections", type=int, default=CONNECTIONS, help="established connections (default %(default)s)"
    )
    arguments = parser.parse_args()
    times = arguments.times
    if not begins("small differences"):
        return 3
    core = usable_cpus()[0]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="natgauge-small-") as name:
        folder = Path(name)
        cases: dict[str, str | Path] = {
            ITSELF: NAT,
            "one counter rule": with_rules(folder, "one-rule", "counter"),
            "twenty counter rules": with_rules(folder, "twenty-rules", *["counter"] * 20),
        }
        for host, burner in (
            ("the host as it is", nullcontext()),
            ("half of the core taken at random times", burning(core, BURNT_MS, EVERY_MS, by_chance=True)),
        ):
            runs: dict[str, list[Run]] = {case: [] for case in cases}
            with burner:
                for number in range(times):
                    for case, other in cases.items():
                        run = compare_once(folder, other, core, arguments.connections)
                        runs[case].append(run)
                        click.echo(f"{host}, {number + 1}, {case}, {run.seconds:.1f} s: {run.figure.text}", err=True)
            every = [run for each in runs.values() for run in each]
            controls = sum(contains_one(run.control) for run in every)
            click.echo(f"\n{host}, N = {arguments.connections:,}: compared with {NAT}\n")
            click.echo("| Gateway | Ratio | Half width: median, largest | Verdict | Time: median, longest |")
            click.echo("|---|---|---|---|---|")
            for case, each in runs.items():
                text, of_case = row(case, each)
                wrong += [f"{host}: {words}" for words in of_case]
                click.echo(text)
            spent = [run.figure.nanoseconds for run in runs[ITSELF] if run.figure.nanoseconds is not None]
            click.echo(f"\nThe interval of the A/A control contained 1 in {controls} of {len(every)}.")
            click.echo(f"A frame of {NAT} cost {min(spent):.0f} to {max(spent):.0f} ns.\n")
    click.echo("\n".join(wrong) or "All verdicts are right, and all intervals narrow enough.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
