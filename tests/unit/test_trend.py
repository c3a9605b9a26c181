# SPDX-License-Identifier: Apache-2.0
"""The Mann-Kendall test against scipy's, against all orders, and against series without and with a trend."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest

from natgauge.statistics.ranks import (
    FALSE_ALARM,
    MOST_BLOCKS,
    LevelChange,
    averaged,
    falling_pairs,
    mann_kendall,
    step_of,
)


def dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a simulation


@pytest.mark.parametrize("number", [2, 3, 6, 12, 30])
def test_without_ties_tau_and_probability_are_scipys_of_an_exact_test(number: int, stats: Any) -> None:
    rng = dice(number)
    for _ in range(20):
        values = [rng.gauss(0, 1) + 0.1 * place for place in range(number)]
        found, theirs = mann_kendall(values), stats.kendalltau(range(number), values, method="exact")
        assert found is not None
        assert found.tau == pytest.approx(theirs.statistic)
        assert found.probability == pytest.approx(theirs.pvalue)
        slope = stats.theilslopes(values, range(number)).slope
        assert found.slope == pytest.approx(slope)


def test_with_ties_tau_is_scipys(stats: Any) -> None:
    rng = dice(1)
    for _ in range(20):
        values = [float(rng.randrange(4)) for _ in range(12)]
        found, theirs = mann_kendall(values), stats.kendalltau(range(12), values)
        assert found is not None
        assert found.tau == pytest.approx(theirs.statistic)


@pytest.mark.parametrize("values", ["aab", "aabb", "aaabc", "aabbcc", "abcdef", "aaaaab"])
def test_falling_pairs_are_those_of_all_orders(values: str) -> None:
    orders = set(permutations(values))
    falling = Counter(sum(one > other for one, other in combinations(order, 2)) for order in orders)
    found = falling_pairs(tuple(sorted(Counter(values).values())))
    assert list(found) == [falling[number] for number in range(len(found))]
    assert sum(found) == len(orders)


@pytest.mark.parametrize("number", [6, 7])
def test_of_all_orders_of_a_few_values_no_more_than_the_false_alarms_allowed_have_a_trend(number: int) -> None:
    orders = list(permutations(range(number)))
    alarms = sum(trend is not None and trend.is_significant for trend in map(mann_kendall, orders))
    assert 0 < alarms <= FALSE_ALARM * len(orders)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_few_values_never_have_a_trend(number: int) -> None:
    found = mann_kendall(list(range(number)))
    assert found is not None
    assert found.tau == 1
    assert not found.is_significant


@pytest.mark.parametrize("number", [10, 20, pytest.param(100, marks=pytest.mark.soak)])  # it is exact at any number
@pytest.mark.parametrize("rounded", [False, True])
def test_independent_values_are_said_to_drift_in_one_of_a_hundred_series_at_most(number: int, *, rounded: bool) -> None:
    """3,000 series; 49 alarms are four standard deviations above the rate that is promised."""
    rng = dice(number)
    series = ([rng.gauss(0, 1) for _ in range(number)] for _ in range(3000))
    found = (mann_kendall([round(value) for value in values] if rounded else values) for values in series)
    assert sum(trend is not None and trend.is_significant for trend in found) <= 51


def test_a_device_that_deteriorates_is_found() -> None:
    """Each of 10 repetitions loses 1 %, with a spread of 2 %: found in most series, always falling."""
    rng = dice(3)
    series = [[100 * (1 - 0.01 * place) + rng.gauss(0, 2) for place in range(10)] for _ in range(500)]
    found = [trend for values in series if (trend := mann_kendall(values)) is not None and trend.is_significant]
    assert len(found) > 350
    assert max(trend.slope for trend in found) < 0


def test_equal_values_have_no_trend() -> None:
    assert mann_kendall([1.0] * 20) is None
    assert mann_kendall([1.0]) is None
    assert mann_kendall([]) is None


def test_long_series_are_averaged_and_their_slope_is_still_that_of_single_values() -> None:
    values = [5.0 + 0.25 * place for place in range(3600)]
    assert len(averaged(values, MOST_BLOCKS)) == MOST_BLOCKS
    found = mann_kendall(values)
    assert found is not None
    assert found.tau == 1
    assert found.slope == pytest.approx(0.25)
    assert averaged([1.0, 2.0, 3.0, 6.0, 8.0], 2) == [1.5, pytest.approx(17 / 3)]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([5.0] * 10 + [1.0] * 10, LevelChange(10, -4.0)),
        ([5.0, 1.0], None),
        ([float(one) for one in range(20)], None),
        ([5.0, 4.0, 6.0, 5.0, 4.0, 6.0, 5.0, 4.0], None),
        ([1.0] * 20, None),
    ],
)
def test_a_step_is_no_slope_and_a_slope_no_step(values: list[float], step: LevelChange | None) -> None:
    assert step_of(values) == step


def test_values_that_only_scatter_have_no_step() -> None:
    draws = random.Random(5)  # noqa: S311 - a simulation
    series = ([draws.gauss(0, 1) for _ in range(30)] for _ in range(300))
    assert not any(step_of(values) for values in series)
