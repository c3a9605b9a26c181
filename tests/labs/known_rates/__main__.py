# SPDX-License-Identifier: Apache-2.0
"""What `compare --by rates` finds of gateways of known rates: `python -m tests.labs.known_rates` (needs root).

The first gateway lets 25,000 frames/s through, two others 20,000/s: one drops the rest, the other lets 4,096 frames
wait. A connection of either costs 1.25 times that of the first. With few connections that may be refused, never wrong.

With 200,000 connections at 20,000/s a trial takes 10 s, and a comparison as a user asks for it 20 minutes. `--expected`
and `--level 50%` need a third of that, and prove the same. Every search still tries both of its bounds, whatever rate
it begins at. The rates are constants, so the bounds of each round must hold them, and fewer rounds make the interval
narrower, not wider.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

import click
from tests.labs.known_rates.devices import policing, queueing

import natgauge
from natgauge.errors import UsageError
from natgauge.procedures.kit import rate_search

FAST, SLOW = 25_000, 20_000
TRUTH: Final = FAST / SLOW
#: A gateway of 20,000/s, by what it does with the frames beyond that.
OTHERS: Final[dict[str, Callable[[Path, int], Path]]] = {"drops": policing, "queues": queueing}
CONNECTIONS: Final = (2_000, 20_000, 200_000)
#: Where searches of all gateways may begin: below either rate, and not told apart.
EXPECTED: Final = 19_000.0


@dataclass(frozen=True, slots=True)
class Found:
    """What one comparison said.

    Attributes:
        low: end of the ratio's interval; None where there is none, as is `high`.
        high: the other end.
        text: in words; why, where it was refused.
        refused: whether the connections were too few.
    """

    low: float | None
    high: float | None
    text: str
    refused: bool

    @property
    def answered(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None and self.high is not None

    @property
    def right(self) -> bool:
        """Whether nothing wrong is said; no interval is not wrong."""
        return self.low is None or self.high is None or self.low <= TRUTH <= self.high

    @property
    def word(self) -> str:
        """The outcome in a word."""
        if self.refused:
            return "refused"
        if not self.answered:
            return "open"
        return "right" if self.right else "WRONG"


def _beginning_at(expected: float | None) -> AbstractContextManager[object]:
    """Have each first search begin there, as where slices told what to expect, which they cannot of these gateways."""
    if expected is None:
        return nullcontext()
    return mock.patch.object(rate_search, "expected_rate", return_value=expected)


def compared(
    other: str,
    connections: int,
    *,
    most_seconds: float,
    fail_above: str | None = None,
    level: str | None = None,
    expected: float | None = None,
) -> Found:
    """Compare the gateway of 25,000/s with one of 20,000/s.

    Args:
        other: of `OTHERS`.
        connections: N.
        most_seconds: of the comparison.
        fail_above: asks another question, for which a wide interval may do.
        level: of the interval; None = 95 %.
        expected: rate at which the searches begin, connections/s; None = as natgauge does.
    """
    with tempfile.TemporaryDirectory() as name, _beginning_at(expected):
        folder = Path(name)
        gateways = policing(folder, FAST), OTHERS[other](folder, SLOW)
        try:
            found = natgauge.compare(
                *gateways,
                by="rates",
                quantities="new",
                connections=connections,
                most_seconds=most_seconds,
                fail_above=fail_above,
                level=level,
                results=folder,
            )
        except UsageError as refused:
            return Found(None, None, str(refused), refused=True)
    (figure,) = found.result.estimates
    doubts = "; ".join(
        f"{one.label}: {', '.join(doubt.word for doubt in one.doubts['new'])}" for one in found.result.gateways
    )
    rates = ", ".join(f"{one.rates['new'] or 0:,.0f}/s" for one in found.result.gateways)
    text = f"{figure.text}; {found.result.rounds} rounds, rates {rates}; doubts: {doubts}"
    return Found(figure.low, figure.high, text.replace(f"{folder}/", ""), refused=False)


def main() -> None:
    """Compare, and tell."""
    parser = argparse.ArgumentParser(description="What compare --by rates finds of known rates.")
    parser.add_argument("--most-seconds", type=float, default=900.0, help="of a comparison (default %(default)s)")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS, help="N (default %(default)s)")
    parser.add_argument("--others", nargs="+", choices=list(OTHERS), default=list(OTHERS))
    parser.add_argument("--fail-above", help="asked instead of a narrow interval")
    parser.add_argument("--level", help="of the interval (default 95%%)")
    parser.add_argument("--expected", type=float, help="rate at which searches begin (default as natgauge does)")
    arguments = parser.parse_args()
    for other in arguments.others:
        for connections in arguments.connections:
            began = time.monotonic()
            found = compared(
                other,
                connections,
                most_seconds=arguments.most_seconds,
                fail_above=arguments.fail_above,
                level=arguments.level,
                expected=arguments.expected,
            )
            ends = "-" if found.low is None or found.high is None else f"{found.low:.3f} to {found.high:.3f}"
            seconds = time.monotonic() - began
            click.echo(f"{other}, N = {connections:,}: {found.word}: {ends} ({seconds:.0f} s): {found.text}")


if __name__ == "__main__":
    main()
