# SPDX-License-Identifier: Apache-2.0
"""What the formulas of derived rows must do whatever they are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natgauge.analysis import derived
from natgauge.metrics.metric import Better

RATE = st.floats(min_value=1e-3, max_value=1e9)
FACTOR = st.floats(min_value=1e-3, max_value=1e3)
CORES = st.integers(min_value=1, max_value=1024)
BETTER: tuple[Better, ...] = ("higher", "lower")


@given(RATE, CORES)
def test_n_times_as_much_on_n_cores_is_a_scale_up_of_one(one: float, cores: int) -> None:
    assert derived.relative_scale_up(cores * one, cores, one) == pytest.approx(1)
    assert derived.relative_scale_up(one, cores, one) == pytest.approx(1 / cores)


@given(RATE, RATE, CORES, FACTOR)
def test_a_unit_of_another_size_changes_no_ratio(one: float, other: float, cores: int, factor: float) -> None:
    for ratio in (derived.percent_of_forwarding, derived.to_previous):
        assert ratio(factor * one, factor * other) == pytest.approx(ratio(one, other))
    assert derived.relative_scale_up(factor * one, cores, factor * other) == pytest.approx(
        derived.relative_scale_up(one, cores, other)
    )
    for better in BETTER:
        same = derived.degradation(factor * one, factor * other, better)
        assert same == pytest.approx(derived.degradation(one, other, better), rel=1e-6, abs=1e-6)


@given(st.lists(RATE, min_size=2, max_size=8))
def test_steps_multiply_to_the_whole_way(medians: list[float]) -> None:
    steps = [derived.to_previous(later, earlier) for earlier, later in pairwise(medians)]
    assert prod(steps) == pytest.approx(medians[-1] / medians[0])


@given(RATE, RATE)
def test_a_degradation_is_positive_where_it_got_worse(one: float, several: float) -> None:
    assert (derived.degradation(one, several, "higher") > 0) == (several < one)
    assert (derived.degradation(one, several, "lower") > 0) == (several > one)
    assert derived.degradation(one, several, "lower") == -derived.degradation(one, several, "higher")


@pytest.mark.parametrize("better", BETTER)
def test_what_stays_the_same_degrades_by_nothing(better: Better) -> None:
    assert derived.degradation(7.0, 7.0, better) == 0


@pytest.mark.parametrize(
    ("better", "several", "percent"), [("higher", 75.0, 25.0), ("higher", 0.0, 100.0), ("lower", 150.0, 50.0)]
)
def test_a_degradation_is_in_percent_of_one_flow(better: Better, several: float, percent: float) -> None:
    assert derived.degradation(100.0, several, better) == percent


@given(st.integers(1, 65_535), st.integers(1, 65_535), st.integers(0, 31))
def test_tables_and_buckets_are_ratios_of_counts(sources: int, destinations: int, power: int) -> None:
    tuples, size = derived.four_tuples(sources, destinations), 2**power
    assert tuples == sources * destinations
    assert derived.table_per_connection(size, tuples) * derived.connections_per_bucket(tuples, size) == pytest.approx(1)


@pytest.mark.parametrize(("opened", "percent"), [(0, 100.0), (2_528_332, 36.7917), (4_000_000, 0.0)])
def test_four_tuples_drawn_at_random_are_new_as_long_as_some_are_left(opened: int, percent: float) -> None:
    assert derived.new_connection_share(opened, 4_000_000) == pytest.approx(percent)


@pytest.mark.parametrize(
    "compute",
    [
        partial(derived.relative_scale_up, 1.0, 2, 0.0),
        partial(derived.percent_of_forwarding, 1.0, 0.0),
        partial(derived.to_previous, 1.0, 0.0),
        partial(derived.degradation, 0.0, 1.0, "lower"),
    ],
)
def test_nothing_is_relative_to_nothing(compute: Callable[[], float]) -> None:
    with pytest.raises(ZeroDivisionError):
        compute()
