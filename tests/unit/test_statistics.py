# SPDX-License-Identifier: Apache-2.0
"""Our statistics against scipy's, and against what stored intervals may be."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from natgauge.statistics.interim import possible_alphas
from natgauge.statistics.interval import ConfidenceInterval
from natgauge.statistics.order_statistics import (
    median_coverage,
    median_estimate,
    median_interval,
    rank_of_end,
)
from natgauge.statistics.orders import falling_pairs
from natgauge.statistics.rounds import estimate_over_rounds, magnitude_over_rounds, student_t
from natgauge.statistics.trend import step_of
from natgauge.statistics.two_samples import moses_interval, shift_coverage

NUMBERS = [*range(1, 60), 100, 101, 1000, 1501, 20_000]


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 30, 0.001])
def test_ranks_of_the_median_are_those_of_the_binomial_distribution(alpha: float, stats: Any) -> None:
    for number in NUMBERS:
        rank = rank_of_end(number, alpha)
        assert rank == 0 or stats.binom.cdf(rank - 1, number, 0.5) <= alpha / 2
        assert stats.binom.cdf(rank, number, 0.5) > alpha / 2


@pytest.mark.parametrize("number", [2, 5, 6, 20, 101, 1500])
def test_the_coverage_of_a_median_is_that_of_the_binomial_distribution(number: int, stats: Any) -> None:
    for rank in {1, number // 3 or 1, number // 2}:
        missed = 2 * stats.binom.cdf(rank - 1, number, 0.5)
        assert median_coverage(number, rank) == pytest.approx(1 - missed, abs=1e-12)


def test_both_intervals_of_a_median_are_scipys_of_a_quantile(stats: Any) -> None:
    dice = random.Random(2)  # noqa: S311 - a simulation
    for number in (6, 7, 10, 25, 100):
        values = [dice.gauss(0, 1) for _ in range(number)]
        theirs = stats.quantile_test(values, q=0, p=0.5).confidence_interval(confidence_level=0.95)
        found, estimate = median_interval(values), median_estimate(values, 0.05)
        assert found is not None
        assert estimate is not None
        assert (found.lower, found.upper) == (theirs.low, theirs.high)
        assert estimate.interval == found


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 11, 100])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.05 / 30, 1e-4])
def test_student_t_is_scipys(alpha: float, degrees: int, stats: Any) -> None:
    assert student_t(alpha, degrees) == pytest.approx(stats.t.isf(alpha / 2, degrees), rel=1e-9)


def test_the_interval_over_rounds_that_differ_is_students_of_their_logarithms(stats: Any) -> None:
    medians = [0.9, 1.0, 1.2, 1.05, 0.97]
    found = estimate_over_rounds([[median] * 50 for median in medians], 0.05)
    logs = [math.log(median) for median in medians]
    low, high = stats.t.interval(0.95, len(logs) - 1, loc=sum(logs) / len(logs), scale=stats.sem(logs))
    assert found is not None
    assert found.lower == pytest.approx(min(math.exp(low), 0.97))
    assert found.upper == pytest.approx(max(math.exp(high), 1.05))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_magnitude_that_noise_hides_is_that_of_the_farther_end_of_students_interval(sign: int, stats: Any) -> None:
    medians = [sign * median for median in (0.1, 0.3, 0.2, 0.15, 0.27)]
    found = magnitude_over_rounds([[median] * 50 for median in medians], 0.05)
    ends = stats.t.interval(0.95, len(medians) - 1, loc=sum(medians) / len(medians), scale=stats.sem(medians))
    assert found == pytest.approx(max(0.3, *map(abs, ends)))


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 3), (4, 4), (5, 5), (3, 7)])
def test_counts_of_the_mann_whitney_statistic_are_those_of_all_orders(first: int, second: int) -> None:
    places = range(first + second)
    ranks = Counter(sum(chosen) - first * (first - 1) // 2 for chosen in combinations(places, first))
    assert list(falling_pairs((first, second))) == [ranks[value] for value in range(first * second + 1)]


@pytest.mark.parametrize(("first", "second"), [(4, 4), (5, 5), (6, 9), (10, 10)])
def test_a_shift_is_covered_as_often_as_scipys_exact_mann_whitney_test_says(
    first: int, second: int, stats: Any
) -> None:
    for rank in range(1, first * second // 2):
        # Values without ties whose statistic is rank - 1: all of one sample below the other, then pairs exchanged.
        one = [float(value) for value in range(first)]
        other = [first + float(value) for value in range(second)]
        swaps = rank - 1
        for place in reversed(range(first)):
            moved = min(swaps, second)
            one[place] = other[moved - 1] + 0.5 + place * 1e-3 if moved else one[place]
            swaps -= moved
        test = stats.mannwhitneyu(one, other, method="exact")
        assert min(test.statistic, first * second - test.statistic) == rank - 1
        assert shift_coverage(first, second, rank) == pytest.approx(1 - test.pvalue, abs=1e-12)


@pytest.mark.parametrize(("one", "other"), [(4, 4), (5, 5), (6, 6), (6, 7), (7, 7)])
def test_the_interval_of_a_shift_holds_exactly_what_mann_whitney_does_not_reject(
    one: int, other: int, stats: Any
) -> None:
    dice = random.Random(3)  # noqa: S311 - a simulation
    first = [dice.gauss(0, 1) for _ in range(other)]
    second = [dice.gauss(1, 1) for _ in range(one)]
    differences = [after - before for before in first for after in second]
    found = moses_interval(differences, differences, len(first), len(second))
    for end, outwards in ((found.lower, -1e-9), (found.upper, 1e-9)):
        kept = stats.mannwhitneyu(first, [value - (end - outwards) for value in second], method="exact")
        rejected = stats.mannwhitneyu(first, [value - (end + outwards) for value in second], method="exact")
        assert kept.pvalue > 0.05 >= rejected.pvalue


def test_an_interval_of_a_shift_that_may_miss_has_its_median_between_its_ends() -> None:
    for first, second, ends in ((3, 3, (5, 5)), (2, 2, (2, 3)), (1, 1, (1, 1))):
        pairs = [float(value) for value in range(1, first * second + 1)]
        found = moses_interval(pairs, pairs, first, second, confidence=0.0)
        assert (found.lower, found.upper) == ends


def test_a_step_leaves_less_than_a_tenth_of_the_squares_that_a_line_leaves() -> None:
    dice = random.Random(4)  # noqa: S311 - a simulation
    steps = 0
    for _ in range(300):
        values = [*(dice.gauss(0, 1) for _ in range(dice.randint(1, 8))), *(dice.gauss(9, 1) for _ in range(4))]
        line = statistics.linear_regression(range(len(values)), values)
        of_line = sum((value - line.slope * at - line.intercept) ** 2 for at, value in enumerate(values))
        left = {place: squares(values[:place]) + squares(values[place:]) for place in range(1, len(values))}
        best, found = min(left, key=lambda place: left[place]), step_of(values)
        assert (found and found.place) == (best if left[best] < of_line / 10 else None)
        steps += found is not None
        if found is not None:
            assert found.change == pytest.approx(statistics.fmean(values[best:]) - statistics.fmean(values[:best]))
    assert 50 < steps < 250


def squares(values: Sequence[float]) -> float:
    """Sum of the squared distances from the mean."""
    return sum((value - statistics.fmean(values)) ** 2 for value in values)


def test_a_reader_of_an_interval_tries_all_that_its_analysis_may_have_spent() -> None:
    alphas = list(possible_alphas(0.06))
    assert alphas[:5] == pytest.approx([0.06, 0.03, 0.03, 0.01, 0.02])


@pytest.mark.parametrize(
    "stored",
    [
        '{"lower": 1, "upper": 2}',
        '{"lower": 1, "upper": 2, "coverage": 1.5}',
        '{"lower": 1, "upper": Infinity, "coverage": 0.9}',
        '{"lower": 1, "upper": 2, "coverage": 0.9, "median": 1.5}',
    ],
)
def test_a_stored_interval_that_is_none_is_refused(stored: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ConfidenceInterval).validate_json(stored)
