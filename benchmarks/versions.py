# SPDX-License-Identifier: Apache-2.0
"""Two versions of the tester beside each other: `python -m benchmarks.versions OLD_ENGINE NEW_ENGINE` (root).

Each version's share of the redirect floor is taken in rounds of a few tenths of a second that alternate at random. The
floor, in the same slices, takes the host's speed out of both. Each round loads the programs anew, because where their
tables come to lie in memory moves a round by up to a tenth: the ratio is the median over many pairs of rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Final, get_args

from natgauge.agreement.process import compare
from natgauge.errors import NatgaugeError
from natgauge.ethernet import IP_HEADER, LEAST_OCTETS
from natgauge.statistics.summary import median_estimate
from natgauge.tester.cable import CableLab, FrameKind
from natgauge.tester.own_rates import FloorTester
from natgauge.words import FAMILIES, QUANTITIES, Transport

#: A round of few blocks: it is the loads that differ, not the blocks of one.
BLOCKS: Final = 12
ALPHA: Final = 0.05


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engines", nargs=2, type=Path, metavar="ENGINE", help="the old one, then the new one")
    parser.add_argument("--pairs", type=int, default=60, help="of rounds (default 60)")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the one core (default the last)")
    parser.add_argument("--family", choices=FAMILIES, default="ipv4")
    parser.add_argument("--transport", choices=get_args(Transport), default="udp")
    parser.add_argument("--delays", action="store_true", help="time every frame")
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--quantity", choices=QUANTITIES, default="both")
    return parser.parse_args()


def main() -> int:
    """Measure and print the ratio of the new one's speed to the old one's, with its interval."""
    arguments = _arguments()
    least = LEAST_OCTETS[arguments.transport] + IP_HEADER[arguments.family] - IP_HEADER["ipv4"]
    kind = FrameKind(arguments.family, least, arguments.delays, transport=arguments.transport)
    shares: tuple[list[float], list[float]] = ([], [])
    try:
        with CableLab(f"versions-{os.getpid()}") as cable:
            testers = [
                FloorTester(
                    cable,
                    arguments.cpu,
                    partial(compare, engine=engine.resolve()),
                    connections=arguments.connections,
                    quantity=arguments.quantity,
                )
                for engine in arguments.engines
            ]
            for _ in range(arguments.pairs):
                for which in random.choice(((0, 1), (1, 0))):  # noqa: S311 - an order, no secret
                    pairs = testers[which].round(kind, BLOCKS)
                    shares[which].append(statistics.median(pair.floor / pair.tester for pair in pairs))
    except NatgaugeError as error:
        print(f"versions: {error}", file=sys.stderr)
        return error.exit_status
    found = median_estimate([new / old for old, new in zip(*shares, strict=True)], ALPHA)
    old, new = (statistics.median(one) for one in shares)
    text = (
        "too few pairs for an interval"
        if found is None
        else f"{found.value:.3f} ({found.lower:.3f} to {found.upper:.3f})"
    )
    print(
        f"{arguments.family} {kind.transport} {kind.frame_size} octets, {arguments.quantity}, "
        f"N = {arguments.connections:,}, "
        f"{'every frame timed' if kind.delays else 'not timed'}: share of the floor {old:.3f} -> {new:.3f}, "
        f"new / old {text}, {arguments.pairs} pairs of rounds"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
