# SPDX-License-Identifier: Apache-2.0
"""Delays and their variation: the examples of RFC 5481, and percentiles held against sorted lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recorded_delays import inter_packet_variations, recorded

from natgauge.delays import Delays, Variation
from natgauge.procedures.kit.result.delay_statistics import (
    delay_variation,
    ends_of_variation,
    ends_within,
    percentile_of,
    percentile_within,
    without_slowest,
)
from natgauge.statistics.order_statistics import percentile

#: RFC 5481 section 4: delays in milliseconds.
EXAMPLE = [20.0, 10.0, 20.0, 25.0, 20.0]


def test_the_example_of_rfc_5481() -> None:
    assert inter_packet_variations(EXAMPLE) == [-10, 10, 5, -5]
    assert delay_variation(recorded(EXAMPLE)) == 15
    assert recorded(EXAMPLE).variation == Variation(4, -10, 10, ((-10, -10, 1), (-5, -5, 1), (5, 5, 1), (10, 10, 1)))


def test_a_lost_frame_takes_two_differences_and_no_delay_of_others() -> None:
    assert inter_packet_variations([20, 10, None, 25, 20]) == [-10, None, None, -5]
    lossy = recorded([20, 10, None, 25, 20])
    assert (lossy.frames, lossy.minimum, lossy.maximum, lossy.mean) == (4, 10, 25, 18.75)
    assert lossy.variation is not None
    assert (lossy.variation.pairs, lossy.variation.minimum, lossy.variation.maximum) == (2, -10, -5)
    assert recorded([20, None, 25]).variation is None


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=300), st.sampled_from([1.0, 50.0, 99.0, 99.9, 100.0]))
def test_percentiles_are_those_of_the_sorted_list(values: list[int], percent: float) -> None:
    delays = recorded([float(value) for value in values])
    assert percentile_within(delays, percent) == percentile([float(value) for value in values], percent)


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=200),
    st.lists(st.integers(1, 10**6), max_size=50),
    st.sampled_from([50.0, 99.0, 99.9]),
)
def test_without_as_many_of_the_slowest_a_percentile_is_no_higher_than_that_of_the_frames_that_no_stall_delayed(
    own: list[int], held_up: list[int], percent: float
) -> None:
    every = recorded([float(value) for value in [*own, *held_up]])
    left = without_slowest(every, len(held_up))
    assert left is not None
    assert left.frames == len(own)
    lowest = percentile_within(left, percent)
    assert lowest <= percentile_within(recorded([float(value) for value in own]), percent)
    assert lowest <= percentile_within(every, percent)


def test_without_all_frames_nothing_is_left() -> None:
    assert without_slowest(recorded([1.0, 2.0]), 2) is None


def test_of_differences_the_largest_up_and_down_are_left_out() -> None:
    left = without_slowest(recorded([10.0, 10.0, 500.0, 10.0, 11.0, 10.0]), 1)
    assert left is not None
    assert left.variation is not None
    assert (left.maximum, left.variation.minimum, left.variation.maximum) == (11.0, -1.0, 1.0)


def test_the_worst_case_of_500_tags_is_their_maximum_and_of_2000_frames_is_not() -> None:
    assert percentile_within(recorded([float(number) for number in range(1, 501)]), 99.9) == 500
    assert percentile_within(recorded([float(number) for number in range(1, 2001)]), 99.9) == 1998


def test_a_bucket_counts_as_its_middle_within_the_exact_extremes() -> None:
    delays = Delays(frames=3, minimum=1.006, maximum=1.009, mean=1.0075, negative=0, buckets=((1.0, 1.01, 3),))
    assert percentile_of(delays.buckets, 50) == pytest.approx(1.005)
    assert percentile_within(delays, 50) == 1.006


def test_what_has_no_frames_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="of 0 frames"):
        percentile_of((), 50)
    with pytest.raises(ValueError, match="percentile 0"):
        percentile_of(((1.0, 2.0, 1),), 0)
    with pytest.raises(ValueError, match="no frame came"):
        recorded([None])


def test_clocks_that_run_backwards_are_counted() -> None:
    assert recorded([1.0, -0.5, 2.0, -0.1]).negative == 2


def test_a_percentile_and_the_variation_are_between_the_ends_of_the_bucket() -> None:
    """A variation of 4.5 us was printed whether the truth was 0.5 or 8 us: its bucket is 9 us wide."""
    delays = Delays(
        frames=1000,
        minimum=1000.0,
        maximum=1050.0,
        mean=1001.0,
        negative=0,
        buckets=((1000.0, 1009.0, 999), (1045.0, 1054.0, 1)),
    )
    assert ends_within(delays, 99.9) == (1000, 1009)
    assert ends_within(delays, 100) == (1045, 1050)
    assert (ends_of_variation(delays), delay_variation(delays)) == ((0, 9), 4.5)
