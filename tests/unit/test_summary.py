# SPDX-License-Identifier: Apache-2.0
"""Summaries of repetitions against definitions spelled out by brute force."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden

from natgauge.procedures.kit.results import repetition_notes
from natgauge.statistics.ranks import are_autocorrelated, autocorrelation
from natgauge.statistics.summary import median_interval, percentile, summarize

finite = st.floats(min_value=-1e9, max_value=1e9)

#: The sample of RFC 2330 section 11.3; its distribution function reaches .5 at 4, its median lies between 4 and 7.
RFC_2330_SAMPLE = [-2.0, 7.0, 7.0, 4.0, 18.0, -5.0]


@pytest.mark.parametrize(
    ("percent", "value"), [(1, -5), (16, -5), (17, -2), (50, 4), (51, 7), (83, 7), (84, 18), (100, 18)]
)
def test_nearest_rank_of_the_rfc_2330_sample(percent: float, value: float) -> None:
    assert percentile(RFC_2330_SAMPLE, percent) == value


def test_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert summarize(RFC_2330_SAMPLE).median == 5.5


@given(st.lists(finite, min_size=1, max_size=250), st.sampled_from([0.1, 1, 7, 50, 99, 99.9, 100]))
def test_percentile_is_the_smallest_value_whose_share_reaches_it(values: list[float], percent: float) -> None:
    # Counted in thousandths so that the definition is exact: F(x) >= percent / 100.
    wanted = round(percent * 10)
    smallest = min(x for x in values if 1000 * sum(v <= x for v in values) >= wanted * len(values))
    assert percentile(values, percent) == smallest


def test_percentile_takes_decimal_fractions_exactly() -> None:
    # 7 % of 100 values is rank 7; 0.07 * 100 in floating point would round up to rank 8.
    assert percentile([float(number) for number in range(1, 101)], 7) == 7


@pytest.mark.parametrize("percent", [0, -1, 100.5, math.nan])
def test_percentile_out_of_range_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile([1.0], percent)


@given(st.lists(finite, min_size=2, max_size=60))
def test_summary_agrees_with_the_statistics_module(values: list[float]) -> None:
    summary = summarize(values)
    assert summary.median == statistics.median(values)
    assert summary.mean == statistics.fmean(values)
    assert summary.standard_deviation == statistics.stdev(values)
    assert (summary.minimum, summary.maximum) == (min(values), max(values))
    assert summary.count == len(values)


@given(st.lists(finite, min_size=1, max_size=99))
def test_below_a_hundred_values_the_outer_percentiles_are_the_extremes(values: list[float]) -> None:
    summary = summarize(values)
    assert (summary.p1, summary.p99) == (summary.minimum, summary.maximum)
    assert any("minimum and the maximum" in note.text for note in repetition_notes(len(values), sampled=False))


def test_from_a_hundred_values_on_the_99th_percentile_is_not_the_maximum(golden: Golden) -> None:
    summary = summarize([float(number) for number in range(100)])
    assert summary.p99 == 98
    golden(repetition_notes(100, sampled=False))


@pytest.mark.parametrize(("number", "noted"), [(5, 0), (6, 1), (100, 1)])
def test_an_interval_of_95_percent_says_that_it_assumes_independent_repetitions(number: int, noted: int) -> None:
    notes = repetition_notes(number, sampled=False)
    assert sum("assumes independent repetitions" in note.text for note in notes) == noted


def test_a_single_value_has_no_spread() -> None:
    summary = summarize([3.0])
    assert (summary.median, summary.standard_deviation, median_interval([3.0])) == (3.0, None, None)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_nothing_and_nonsense_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values"):
        summarize(values)


@pytest.mark.parametrize("number", [2, 3, 6, 9, 10])
def test_coverage_counted_over_all_outcomes_of_fair_coins(number: int) -> None:
    """Each value is above or below the true median like a coin; the interval misses if too many fall on one side."""
    values = [float(value) for value in range(number)]
    interval = median_interval(values)
    assert interval is not None
    rank = int(interval.lower) + 1
    hits = sum(rank <= sum(sides) <= number - rank for sides in itertools.product((0, 1), repeat=number))
    assert interval.coverage == hits / 2**number
    assert interval.upper == number - rank


def test_interval_is_the_narrowest_that_covers_95_percent() -> None:
    # The textbook table: n = 10 gives ranks 2 and 9 with 97.9 %; ranks 3 and 8 would cover 89.1 % only.
    interval = median_interval([float(rank) for rank in range(1, 11)])
    assert interval is not None
    assert (interval.lower, interval.upper) == (2, 9)
    assert interval.coverage == pytest.approx(0.978515625)


def test_too_few_values_tell_the_coverage_they_have() -> None:
    interval = median_interval([1.0, 2.0, 3.0])
    assert interval is not None
    assert (interval.lower, interval.upper, interval.coverage) == (1, 3, 0.75)


def series(rng: random.Random, number: int, correlation: float) -> list[float]:
    """An AR(1) process."""
    value, found = rng.gauss(0, 1), []
    for _ in range(number):
        value = correlation * value + math.sqrt(1 - correlation**2) * rng.gauss(0, 1)
        found.append(100 + value)
    return found


@pytest.mark.parametrize("number", [6, 10, 20])
def test_independent_repetitions_are_hardly_ever_called_autocorrelated(number: int) -> None:
    rng = random.Random(number)  # noqa: S311 - a simulation
    assert sum(are_autocorrelated(series(rng, number, 0.0)) for _ in range(1000)) <= 60


def test_repetitions_on_a_host_that_drifts_are_seen_as_such_when_there_are_enough() -> None:
    rng = random.Random(1)  # noqa: S311 - a simulation
    assert sum(are_autocorrelated(series(rng, 20, 0.9)) for _ in range(500)) >= 350
    found = [autocorrelation(series(rng, 200, 0.7)) for _ in range(200)]
    assert sum(one or 0.0 for one in found) / 200 == pytest.approx(0.7, abs=0.03)


def test_few_values_or_equal_ones_tell_no_autocorrelation() -> None:
    assert autocorrelation([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert autocorrelation([1.0] * 10) is None
    assert not are_autocorrelated([1.0] * 10)
