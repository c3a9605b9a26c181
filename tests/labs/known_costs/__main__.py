# SPDX-License-Identifier: Apache-2.0
"""What `compare` finds of programs that are busy for a known time: `python -m tests.labs.known_costs` (needs root).

Where a program and a lab come to lie in memory makes a nanosecond, and stays for a comparison: so there are several.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from tests.labs.known_costs.devices import Recipe, forwarding, loop_ns, nat64

import natgauge

#: Asked for, in ns.
WANTED = (20, 100, 500)
#: What even the first gateway is busy for, in ns: see busy.bpf.c.
BASE = 50


def found_ns(
    seconds: float, wanted: Sequence[int] = WANTED, cpu: int = 0, recipe: Recipe = forwarding
) -> list[tuple[float, float, float, float]]:
    """Of each time: as calibrated, as found, and the ends of the interval, in ns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = loop_ns(folder, cpu)
        base = round(BASE / before)
        loops = [max(1, round(one / before)) for one in wanted]
        devices = [recipe(folder, f"busy-{one}-ns-more", base + each) for one, each in zip(wanted, loops, strict=True)]
        compared = natgauge.compare(
            recipe(folder, "busy", base),
            *devices,
            results=folder,
            quantities="up",
            connections=5_000,
            resolve="0.1%",
            most_seconds=seconds,
            core=cpu,
        )
        each_ns = (before + loop_ns(folder, cpu)) / 2
    first_ns = compared.result.baseline_costs[0].nanoseconds
    assert first_ns is not None
    told = []
    for figure, number in zip(compared.result.estimates, loops, strict=True):
        assert figure.ratio is not None
        assert figure.low is not None
        assert figure.high is not None
        ratio, low, high = ((one - 1) * first_ns for one in (figure.ratio, figure.low, figure.high))
        told.append((number * each_ns, ratio, low, high))
    return told


def main() -> None:
    """Compare so often, and tell the medians."""
    parser = argparse.ArgumentParser(description="What compare finds of known costs.")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a comparison (default %(default)s)")
    parser.add_argument("--times", type=int, default=9, help="comparisons (default %(default)s)")
    parser.add_argument("--nat64", action="store_true", help="of a NAT64 instead of plain forwarding")
    arguments = parser.parse_args()
    runs = []
    for _ in range(arguments.times):
        runs.append(found_ns(arguments.seconds, recipe=nat64 if arguments.nat64 else forwarding))
        for known, found, low, high in runs[-1]:
            click.echo(f"known {known:.1f} ns, found {found:.1f} ({low:.1f} to {high:.1f})", err=True)
    click.echo("| Known | Found: median | of | least to most | |\n|--:|--:|--:|---|--:|")
    for one in zip(*runs, strict=True):
        known, found = (statistics.median(each[at] for each in one) for at in (0, 1))
        off = statistics.median(each[1] / each[0] for each in one) - 1
        ends = f"{min(each[1] for each in one):.1f} to {max(each[1] for each in one):.1f} ns"
        click.echo(f"| {known:.1f} ns | {found:.1f} ns | {len(one)} | {ends} | {off:+.1%} |")


if __name__ == "__main__":
    main()
