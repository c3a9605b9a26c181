# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.interval_coverage`: how often do the intervals of `compare` and `cost` miss the true ratio?

Simulated comparisons with known ratios, 2,000 for each row, use the intervals, the interim looks and the stopping rule
of the product. The noise is of the kinds that were seen on real hosts. Blocks differ, are autocorrelated, or have humps
next to their median. Rounds differ: each has its own place in memory and its own second. A row holds when its intervals
miss no more often than `--level` allows. Needs no privilege; takes about five minutes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks import machine
from natgauge.comparisons.by_slices import BySlices
from natgauge.comparisons.method import judge
from natgauge.comparisons.request import ComparisonGoal
from natgauge.procedures.cost import ALPHA
from natgauge.statistics.rounds import alpha_spent, estimate_over_rounds, rounds_before
from natgauge.statistics.summary import MedianEstimate

#: Standard errors of a simulated share that pass for chance.
_ERRORS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Noise:
    """What a simulated host does to ratios; standard deviations are shares, 0.01 = 1 %.

    Attributes:
        round_sd: from round to round: labs, memory, the minute.
        block_sd: from block to block within a round.
        blocks: of one round.
        autocorrelation: of neighbouring blocks, 0 to below 1.
        hump: a tenth of the blocks on either side is off by this.
    """

    round_sd: float
    block_sd: float = 0.015
    blocks: int = 240
    autocorrelation: float = 0.0
    hump: float = 0.0

    def rounds(self, dice: random.Random, truth: float) -> Iterator[list[float]]:
        """Ratios of one round after the other, without end."""
        while True:
            place = math.log(truth) + dice.gauss(0, self.round_sd)
            yield [math.exp(place + noise) for noise in self._within(dice)]

    def _within(self, dice: random.Random) -> Iterator[float]:
        keeps = self.autocorrelation
        value = dice.gauss(0, self.block_sd)
        for _ in range(self.blocks):
            hump = self.hump * ((dice.random() < 0.1) - (dice.random() < 0.1)) if self.hump else 0.0
            yield value + hump
            value = keeps * value + math.sqrt(1 - keeps * keeps) * dice.gauss(0, self.block_sd)


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of comparison.

    Attributes:
        name: its row.
        noise: of the host.
        most_rounds: for which there is time.
        level: of the interval.
        resolve: when a comparison ends; None = all `most_rounds` are made, as `cost` does.
        truth: the true ratio.
    """

    name: str
    noise: Noise
    most_rounds: int = 20
    level: float = 0.95
    resolve: float | None = 0.01
    truth: float = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of many comparisons of one case: shares of all, means of rounds and half widths.

    Attributes:
        case: of what.
        number: comparisons.
        missed: share whose interval does not hold the truth.
        wrong: share with a verdict of a difference in the wrong direction, or where there is none.
        undecided: share without a verdict.
        rounds: mean number.
        half_width: mean of the intervals there are.
    """

    case: Case
    number: int
    missed: float
    wrong: float
    undecided: float
    rounds: float
    half_width: float

    @property
    def holds(self) -> bool:
        """Whether the intervals miss no more often than their level allows, but for what chance does."""
        allowed = 1 - self.case.level
        return self.missed <= allowed + _ERRORS * math.sqrt(allowed * (1 - allowed) / self.number)


@dataclass(frozen=True, slots=True)
class _Compared:
    rounds: int
    found: MedianEstimate | None
    verdict: str


CASES: Final = (
    *(Case(f"rounds differ by {sd:.2%}", Noise(sd)) for sd in (0.0, 0.001, 0.0025, 0.004, 0.006, 0.01, 0.02)),
    *(Case(f"rounds differ by {sd:.2%}, 60 blocks", Noise(sd, blocks=60)) for sd in (0.001, 0.004, 0.01, 0.02)),
    *(
        Case(f"rounds differ by {sd:.2%}", Noise(sd), most_rounds=40, level=level)
        for level in (0.99, 0.999)
        for sd in (0.001, 0.006)
    ),
    *(Case(f"blocks autocorrelated by 0.9, rounds {sd:.2%}", Noise(sd, autocorrelation=0.9)) for sd in (0.0, 0.0025)),
    *(Case(f"humps 6 % beside the median, rounds {sd:.2%}", Noise(sd, hump=0.06)) for sd in (0.0, 0.0025)),
    *(
        Case(f"time for {most} rounds that differ by {sd:.2%}", Noise(sd), most, resolve=0.001)
        for most in (2, 3, 5, 8)
        for sd in (0.0025, 0.01)
    ),
    *(Case(f"`--resolve 0.2%`, rounds differ by {sd:.2%}", Noise(sd), 40, resolve=0.002) for sd in (0.001, 0.0025)),
    *(Case(f"a difference of 3 %, rounds differ by {sd:.2%}", Noise(sd), truth=1.03) for sd in (0.001, 0.006)),
    *(
        Case(f"`cost`, {rounds} rounds that differ by {sd:.2%}", Noise(sd), rounds, resolve=None, truth=2.2)
        for rounds in (3, 4, 8)
        for sd in (0.0, 0.0025, 0.01, 0.02)
    ),
)


def _compare(case: Case, dice: random.Random) -> _Compared:
    """One comparison, which is looked at as `compare` looks at it."""
    source = case.noise.rounds(dice, case.truth)
    if case.resolve is None:
        found = estimate_over_rounds([next(source) for _ in range(case.most_rounds)], ALPHA)
        return _Compared(case.most_rounds, found, "undecided")
    goal = ComparisonGoal(level=case.level, resolve=case.resolve, fail_above=None)
    rounds: list[list[float]] = []
    analysis = 1
    while True:
        rounds.append(next(source))
        last = len(rounds) == case.most_rounds
        if len(rounds) < rounds_before(analysis, BySlices.first_analysis) and not last:
            continue
        found = estimate_over_rounds(rounds, alpha_spent(analysis, goal.alpha, last=last))
        analysis += 1
        verdict, _ = judge("simulated", "up", found, 1.0, goal)
        decided = verdict != "undecided" and found is not None and found.half_width <= case.resolve
        if decided or last:
            return _Compared(len(rounds), found, verdict)


def outcome(case: Case, number: int, seed: int) -> Outcome:
    """Simulate `number` comparisons of a case; the same seed makes the same ones."""
    dice = random.Random(f"{seed} {case.name}")  # noqa: S311 - a simulation
    all_of_them = [_compare(case, dice) for _ in range(number)]
    found = [one.found for one in all_of_them if one.found is not None]
    wrong = {"costs more": case.truth <= 1, "costs less": case.truth >= 1}
    return Outcome(
        case,
        number,
        missed=sum(case.truth not in one.interval for one in found) / number,
        wrong=sum(wrong.get(one.verdict, False) for one in all_of_them) / number,
        undecided=sum(one.verdict == "undecided" for one in all_of_them) / number,
        rounds=sum(one.rounds for one in all_of_them) / number,
        half_width=sum(one.half_width for one in found) / len(found) if found else math.nan,
    )


def page(outcomes: Sequence[Outcome], seed: int) -> str:
    """The table in Markdown."""
    described = machine.describe()
    lines = [
        f"# Coverage of the intervals of `compare` and `cost`, {str(described['date'])[:10]}",
        "",
        f"`python -m benchmarks.interval_coverage --number {outcomes[0].number} --seed {seed}`: simulations, so the",
        "machine does not matter. Standard deviations are given; blocks differ by 1.5 %. A row holds when the share of",
        "intervals that miss the truth is at most what the level allows, or less than three standard errors more.",
        "",
        "| Noise | Level | Misses | Wrong verdicts | Undecided | Rounds | Half width | Holds |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for one in outcomes:
        plain = one.case.resolve is None
        half = "none" if math.isnan(one.half_width) else f"{one.half_width:.2%}"
        verdicts = "- | -" if plain else f"{one.wrong:.1%} | {one.undecided:.1%}"
        lines.append(
            f"| {one.case.name} | {one.case.level:.1%} | {one.missed:.1%} | {verdicts} | {one.rounds:.1f} "
            f"| {half} | {'yes' if one.holds else 'no'} |"
        )
    return "\n".join([*lines, ""])


def main() -> int:
    """Simulate all cases and print the table; 1 when a row does not hold."""
    parser = argparse.ArgumentParser(prog="benchmarks.interval_coverage", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--number", type=int, default=2000, help="comparisons of each row (default 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    arguments = parser.parse_args()
    outcomes = []
    for position, case in enumerate(CASES, start=1):
        outcomes.append(outcome(case, arguments.number, arguments.seed))
        print(f"{position} of {len(CASES)}: {case.name}", file=sys.stderr, flush=True)
    print(page(outcomes, arguments.seed))
    return 0 if all(one.holds for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
