# SPDX-License-Identifier: Apache-2.0
"""Pair the results of two runs: the same metric, with the most similar parameters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from natgauge.analysis.comparing import Difference, comparable
from natgauge.records.measurement import Result


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results of one metric.

    Attributes:
        first: result of the first run.
        second: result of the second run.
        differences: differences that forbid a comparison.
        about: differences that the comparison is about.
    """

    first: Result
    second: Result
    differences: tuple[Difference, ...]
    about: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs of two runs in the order of the first run, and the results without a partner."""

    pairs: tuple[Pair, ...]
    only_first: tuple[Result, ...]
    only_second: tuple[Result, ...]


def pair(first: Sequence[Result], second: Sequence[Result], *, about: Collection[str] = ()) -> Paired:
    """Give each result the partner that differs least from it; each result has at most one partner.

    Args:
        first: results of the first run.
        second: results of the second run.
        about: names of parameters, or of whole groups, that may differ.
    """
    every: list[tuple[int, int, int, int, Pair]] = []
    for at, mine in enumerate(first):
        for place, its in enumerate(second):
            if mine.metric == its.metric:
                candidate_pair = _pair(mine, its, about)
                # Pairs that differ only in what the comparison is about come first, the most similar pair before all
                # others.
                every.append(
                    (len(candidate_pair.differences), len(candidate_pair.about), abs(at - place), at, candidate_pair)
                )
    chosen: dict[int, Pair] = {}
    taken: set[int] = set()
    for _, _, _, at, candidate_pair in sorted(every, key=lambda candidate: candidate[:4]):
        if at not in chosen and id(candidate_pair.second) not in taken:
            chosen[at] = candidate_pair
            taken.add(id(candidate_pair.second))
    return Paired(
        tuple(chosen[at] for at in sorted(chosen)),
        tuple(result for at, result in enumerate(first) if at not in chosen),
        tuple(result for result in second if id(result) not in taken),
    )


def _pair(first: Result, second: Result, about: Collection[str]) -> Pair:
    kept = comparable(first, second, except_for=about)
    names = {difference.name for difference in kept}
    every = comparable(first, second)
    return Pair(first, second, tuple(kept), tuple(difference for difference in every if difference.name not in names))
