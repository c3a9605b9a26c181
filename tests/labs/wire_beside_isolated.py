# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.wire_beside_isolated`: whether a wire and an isolated lab tell the same connection rate.

The same NAT44 runs twice on the same core: in a lab of ours, and as one that is not ours between two ports, emptied
by the user's own command. The two are measured in turn (needs root and two CPUs; about a minute a pair): the host's
speed wanders, so the ratio of each pair counts, and the median of these must be within the tolerance.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from tests.labs.external import external_nat
from tests.labs.program import begins

import natgauge
from natgauge.words import Verdict

NAT = "nftables-nat44"
CONNECTIONS = 50_000
TOLERANCE = 0.15
#: Longer than any trial: nothing is forgotten but by the command.
TIMEOUT = 120


def rate(folder: Path, where: dict[str, Any]) -> natgauge.Result:
    """The connection rate there."""
    return natgauge.measure(
        "connection-rate",
        NAT,
        results=folder,
        profile="quick",
        connections=CONNECTIONS,
        repeat=1,
        loss_verifications=2,
        **where,
    )


def main() -> int:
    """Measure so many pairs; 0 when the median of their ratios is within the tolerance."""
    parser = argparse.ArgumentParser(description="Connection rate on a wire beside that of an isolated lab.")
    parser.add_argument("--pairs", type=int, default=4, help="(default %(default)s)")
    pairs = parser.parse_args().pairs
    if not begins("wire", cores=2):
        return 3
    ratios = []
    with (
        tempfile.TemporaryDirectory(prefix="natgauge-wire-") as name,
        external_nat("wire-beside", NAT, TIMEOUT) as (_, ports),
    ):
        folder = Path(name)
        wire = {**ports, "empty_command": "ip netns exec ng-wire-beside-gateway conntrack -F"}
        isolated = {"placement": "isolated", "lab_name": "isolated-beside"}
        for number in range(pairs):
            # Whoever comes first, comes second in the next pair.
            order = [("wire", wire), ("isolated", isolated)][:: 1 if number % 2 == 0 else -1]
            found = {what: rate(folder, where) for what, where in order}
            medians = {what: answer.document()["median"] for what, answer in found.items()}
            invalid = {what: answer.trials[Verdict.INVALID] for what, answer in found.items()}
            if not all(medians.values()):
                click.echo(f"no rate: {medians}")
                return 1
            ratios.append(medians["wire"] / medians["isolated"])
            told = ", ".join(f"{what} {medians[what]:,.0f}/s ({invalid[what]} INVALID)" for what in sorted(found))
            click.echo(f"{told}: {ratios[-1]:.3f}")
    median = statistics.median(ratios)
    good = abs(median - 1) <= TOLERANCE
    click.echo(f"median {median:.3f}: {'within' if good else 'NOT within'} {TOLERANCE:.0%}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
