# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.random_gateways`: how often does what a result prints of a random gateway hold?

Simulated gateways of known truth are measured by the product's own searches: rates by binary search and MLRsearch, and
table capacities, repeated, with noise, rare loss, tolerated loss, queues, token buckets, collapses, and testers that
are too slow. The first line of each result is compared with the truth. Every line must hold, and intervals of medians
must contain the truth as often as they say. Exit status 1 = they do not. Needs no privilege; 2,000 gateways take about
half a minute.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.random_gateways.claims import CLAIMING, Claim, Form, claim
from benchmarks.random_gateways.drawn import KINDS, drawn

#: Standard errors of a simulated share that pass for chance.
_ERRORS = 3.0
#: Shown of the false lines.
_MOST_SHOWN = 40


def claims(count: int, seed: int) -> Iterator[Claim]:
    """Yield what is claimed of `count` gateways; the same seed makes the same ones."""
    for number in range(count):
        yield claim(drawn(seed, number))


def false_claims(found: Sequence[Claim]) -> list[Claim]:
    """Return the claims that the truth contradicts."""
    return [one for one in found if not one.holds]


def enough_in_intervals(found: Sequence[Claim]) -> bool:
    """Whether intervals of medians contain the truth as often as they say, but for what chance does."""
    told = [one for one in found if one.coverage is not None]
    expected = sum(one.coverage or 0.0 for one in told)
    variance = sum((one.coverage or 0.0) * (1 - (one.coverage or 0.0)) for one in told)
    return sum(one.in_interval for one in told) >= expected - _ERRORS * math.sqrt(variance)


def page(found: Sequence[Claim], seed: int) -> str:
    """The table in Markdown: kinds of gateways, forms of their first lines, and how many hold."""
    counts = Counter((one.drawn.kind, one.form) for one in found)
    held = Counter((one.drawn.kind, one.form) for one in found if one.holds)
    lines = [
        f"`python -m benchmarks.random_gateways --count {len(found)} --seed {seed}`. Cells: first lines of this form",
        'that hold, of all of this form. "Doubtful" lines and measurements without a result claim nothing.',
        "",
        f"| Gateways | {' | '.join(CLAIMING)} | doubtful | no result | false |",
        f"|---|{'--:|' * (len(CLAIMING) + 3)}",
    ]
    for kind in [*KINDS, ""]:
        row = [one for one in found if kind in ("", one.drawn.kind)]
        cells = [_cell(kind, form, held, counts) for form in CLAIMING]
        silent = [str(sum(one.form == form for one in row)) for form in ("doubtful", "no result")]
        lines.append(f"| {kind or 'all'} | {' | '.join([*cells, *silent, str(len(false_claims(row)))])} |")
    return "\n".join([*lines, "", *_of_intervals(found), ""])


def _cell(kind: str, form: Form, held: Counter[tuple[str, Form]], counts: Counter[tuple[str, Form]]) -> str:
    def total(of: Counter[tuple[str, Form]]) -> int:
        return sum(number for (one, its), number in of.items() if its == form and kind in ("", one))

    return f"{total(held)} of {total(counts)}" if total(counts) else "-"


def _of_intervals(found: Sequence[Claim]) -> Iterator[str]:
    for name, noisy in (("with", True), ("without", False)):
        told = [one for one in found if one.coverage is not None and bool(one.drawn.noise) is noisy]
        if told:
            mean = sum(one.coverage or 0.0 for one in told) / len(told)
            share = sum(one.in_interval for one in told) / len(told)
            yield (
                f"Intervals of medians, of {len(told)} results {name} noise: {mean:.1%} told on average, "
                f"{share:.1%} contain the truth."
            )


def main() -> int:
    """Measure the gateways and print the table; 1 when a line is false, or intervals hold too seldom."""
    parser = argparse.ArgumentParser(prog="benchmarks.random_gateways", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=2000, help="gateways (default 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    arguments = parser.parse_args()
    found = list(claims(arguments.count, arguments.seed))
    print(page(found, arguments.seed))
    wrong = false_claims(found)
    for one in wrong[:_MOST_SHOWN]:
        print(f"False: {one.line}\n  {one.drawn}", file=sys.stderr)
    return 0 if not wrong and enough_in_intervals(found) else 1


if __name__ == "__main__":
    sys.exit(main())
