# SPDX-License-Identifier: Apache-2.0
"""Our statistics against scipy's, and against what stored intervals may be."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.unit.made_comparisons import compared
from tests.unit.made_results import in_turns, made

from natgauge import Result
from natgauge.analysis.contrast import contrast
from natgauge.analysis.history import Dated, history
from natgauge.statistics.ranks import falling_pairs, moses_interval, ratio_of, shift_coverage, step_of
from natgauge.statistics.rounds import estimate_over_rounds, magnitude_over_rounds, possible_alphas, student_t
from natgauge.statistics.summary import (
    ConfidenceInterval,
    MedianEstimate,
    median_coverage,
    median_estimate,
    median_interval,
    rank_of_end,
)

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


@pytest.mark.parametrize(("number", "critical"), [(4, 0), (5, 2), (6, 5), (8, 13), (10, 23), (20, 127)])
def test_the_ranks_are_those_of_the_published_critical_values_of_mann_and_whitney(number: int, critical: int) -> None:
    assert shift_coverage(number, number, critical + 1) >= 0.95
    assert shift_coverage(number, number, critical + 2) < 0.95


def test_the_interval_holds_the_true_ratio_as_often_as_it_says_whatever_the_distribution() -> None:
    chance = random.Random(9693)  # noqa: S311 - a simulation
    plain, held = made([1.0] * 5, parameters=in_turns(5)), 0

    def drawn(factor: float) -> Result:
        values = [factor * chance.paretovariate(3) for _ in range(5)]
        own = tuple(replace(one, value=value) for one, value in zip(plain.repetitions, values, strict=True))
        return plain.model_copy(update={"repetitions": own, "median": sorted(values)[2]})

    for _ in range(2000):
        found = contrast(drawn(1.0), drawn(1.7))
        held += 1.7 in found.interval
    # 0.968 is the exact coverage of five and five; 0.95 is four standard deviations below it.
    assert held / 2000 > 0.95
    assert found.interval.coverage == pytest.approx(0.968, abs=0.001)
    assert held / 2000 < 0.985


def normal(mean: float, error: float) -> MedianEstimate:
    """An estimate whose logarithm is normal, with its interval of 95 %."""
    half = 1.959964 * error
    interval = ConfidenceInterval(math.exp(mean - half), math.exp(mean + half), 0.95)
    return MedianEstimate(math.exp(mean), interval, 100)


def test_two_normal_estimates_make_the_exact_interval_of_their_difference() -> None:
    found = ratio_of(normal(0.1, 0.03), normal(0.4, 0.04))
    assert found.value == pytest.approx(math.exp(0.3))
    # The standard errors 0.03 and 0.04 make one of 0.05.
    assert found.lower == pytest.approx(math.exp(0.3 - 1.959964 * 0.05))
    assert found.upper == pytest.approx(math.exp(0.3 + 1.959964 * 0.05))
    assert (found.interval.coverage, found.number) == (0.95, 100)


def test_each_end_comes_of_the_ends_that_pull_it_there() -> None:
    first = MedianEstimate(1.0, ConfidenceInterval(0.5, 1.0, 0.95), 10)
    second = MedianEstimate(1.0, ConfidenceInterval(1.0, 4.0, 0.9), 20)
    found = ratio_of(first, second)
    # Only a lower first and a higher second are possible, and both make the ratio larger.
    assert found.lower == pytest.approx(1.0)
    assert found.upper == pytest.approx(math.exp(math.hypot(math.log(4), math.log(2))))
    assert found.interval.coverage == 0.9


def sampled(source: random.Random, mean: float, spread: float, number: int) -> MedianEstimate:
    """An estimate from a sample of logarithms, with Student's interval."""
    logs = [source.gauss(mean, spread) for _ in range(number)]
    middle = statistics.fmean(logs)
    half = student_t(0.05, number - 1) * statistics.stdev(logs) / math.sqrt(number)
    interval = ConfidenceInterval(math.exp(middle - half), math.exp(middle + half), 0.95)
    return MedianEstimate(math.exp(middle), interval, number)


@pytest.mark.parametrize(
    ("spreads", "numbers"), [((0.01, 0.01), (5, 5)), ((0.01, 0.1), (8, 5)), ((0.2, 0.01), (3, 12))]
)
def test_the_interval_contains_the_true_ratio_as_often_as_it_says(
    spreads: tuple[float, float], numbers: tuple[int, int]
) -> None:
    source = random.Random(11)  # noqa: S311 - no secret
    covered = 0
    for _ in range(2000):
        first = sampled(source, 0.2, spreads[0], numbers[0])
        second = sampled(source, 0.5, spreads[1], numbers[1])
        covered += math.exp(0.3) in ratio_of(first, second).interval
    # 95 %, less three standard errors of 2,000 draws.
    assert covered / 2000 >= 0.935


#: Standard deviation of the logarithm of a ratio of which nothing changes.
SIGMA = 0.004


def looked_at(
    chance: random.Random, looks: int, rounds: int, drawn: Callable[[random.Random], tuple[float, float, float]]
) -> Any:
    """The only series of a history of so many comparisons, each with such an interval."""
    plain = compared(rounds=rounds)
    every = []
    for look in range(looks):
        low, ratio, high = drawn(chance)
        (one,) = plain.estimates
        estimates = (one.model_copy(update={"ratio": ratio, "low": low, "high": high}),)
        record = plain.model_copy(update={"estimates": estimates})
        every.append(Dated(record, datetime.fromtimestamp(look * 86_400, UTC), "", ""))
    (series,) = history(every, 0.0)
    return series


def over_three_rounds(chance: random.Random) -> tuple[float, float, float]:
    """Student's interval."""
    logs = [chance.gauss(0, SIGMA) for _ in range(3)]
    half = student_t(0.05, 2) * statistics.stdev(logs) / math.sqrt(3)
    middle = statistics.fmean(logs)
    low, ratio, high = (1.1 * math.exp(end) for end in (middle - half, middle, middle + half))
    return low, ratio, high


def of_known_spread(chance: random.Random) -> tuple[float, float, float]:
    ratio, reach = 1.1 * math.exp(chance.gauss(0, SIGMA)), math.exp(1.96 * SIGMA)
    return ratio / reach, ratio, ratio * reach


def test_intervals_of_three_rounds_each_mark_no_more_than_the_error_allows() -> None:
    """Normal quantiles mark something in about a third of such figures, and Student's of each alone next to nothing."""
    chance = random.Random(5)  # noqa: S311 - not for secrets
    figures = [looked_at(chance, 100, 3, over_three_rounds) for _ in range(60)]
    assert sum(bool(series.changes) for series in figures) <= 3
    # The last intervals are of use: within a few standard errors.
    assert statistics.median(series.points[-1].high / 1.1 - 1 for series in figures) < 10 * SIGMA / math.sqrt(3)


def test_noise_alone_is_marked_in_no_more_figures_than_the_error_allows() -> None:
    """Sixty figures of fifty nights, each with intervals that hold their level: 5 % may have a mark."""
    chance = random.Random(5)  # noqa: S311 - not for secrets
    assert sum(bool(looked_at(chance, 50, 4, of_known_spread).changes) for _ in range(60)) <= 6
