# SPDX-License-Identifier: Apache-2.0
"""Delays, their variation and those of late frames: examples of RFC 5481, percentiles held against sorted lists."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.counted import arrivals, change_counts, make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.recorded_delays import inter_packet_variations, recorded

from natgauge.delays import Delays, Variation
from natgauge.late_delays import LateDelays, merged
from natgauge.metrics.catalogue import IPDV, PDV
from natgauge.procedures import ipdv, pdv
from natgauge.procedures.kit.delays import (
    Timing,
    delay_variation,
    ends_of_variation,
    ends_within,
    percentile_of,
    percentile_within,
    read,
    without_slowest,
)
from natgauge.statistics.summary import percentile
from natgauge.trials import Direction

US = 1e-6

#: RFC 5481 section 4: delays in milliseconds.
EXAMPLE = [20.0, 10.0, 20.0, 25.0, 20.0]


def test_the_example_of_rfc_5481() -> None:
    assert inter_packet_variations(EXAMPLE) == [-10, 10, 5, -5]
    assert delay_variation(recorded(EXAMPLE)) == 15
    assert recorded(EXAMPLE).variation == Variation(4, -10, 10, ((-10, -10, 1), (-5, -5, 1), (5, 5, 1), (10, 10, 1)))


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


def test_of_two_directions_the_ends_are_those_of_the_slower_one_and_the_frames_those_of_the_fewer() -> None:
    def delays(lower: float, frames: int) -> Delays:
        ends = lower * US, (lower + 9) * US
        return Delays(frames, 1000 * US, ends[1], ends[0], 0, ((*ends, frames),))

    timing = Timing(PDV, pdv.read, (), ends=ends_of_variation)
    found = timing.of_headline([delays(1000, 700), delays(1009, 900)])
    assert found == pytest.approx({"pdv_lowest_us": 9, "pdv_highest_us": 18, "timed_frames": 700})


def test_of_two_directions_the_difference_farther_from_0_is_shown() -> None:
    def delays(*differences: float) -> Delays:
        buckets = tuple((one, one, 1) for one in differences)
        variation = Variation(len(buckets), min(differences), max(differences), buckets)
        return Delays(1, US, US, US, 0, ((US, US, 1),), variation)

    both = {Direction.INITIATOR: delays(-3 * US, US), Direction.RESPONDER: delays(-9 * US, 4 * US)}
    counts = make_counts(intended=1, offered=1, received=1)
    outcome = make_outcome(phase1=counts, phase2=dict.fromkeys(Direction, counts), delays=both)
    found = read(outcome, Timing(IPDV, ipdv.read, ipdv.EXTREMES))
    assert (found["ipdv_minimum_us"], found["ipdv_maximum_us"]) == pytest.approx((-9, 4))
    assert found["ipdv_spread_us"] == pytest.approx(13)
    assert found["ipdv_minimum_us_from_initiator"] == pytest.approx(-3)


LATE = LateDelays(frames=1000, least=0.148, largest=0.152, mean=0.15, limit=0.1)


@pytest.mark.parametrize(
    "delays",
    [
        LATE,
        replace(LATE, limit=None),
        replace(LATE, limit=0.149),
        replace(LATE, limit=0.2),
        LateDelays(frames=1, least=1.5, largest=1.5, mean=1.5, limit=0.0105),
        replace(LATE, messages=3),
        LateDelays(frames=1, least=0.28, largest=0.28, mean=0.28, limit=0.02, messages=7),
    ],
)
def test_a_sentence_tells_delay_reason_and_option(delays: LateDelays, golden: Golden) -> None:
    golden(str(delays))


@pytest.mark.parametrize("messages", [("syn",), ("syn", "syn-ack", "ack")])
def test_the_engines_sum_becomes_a_mean_and_the_plans_limit_is_known(messages: tuple[str, ...]) -> None:
    arrived = [arrivals(name, 0) for name in messages]
    late = make_counts(1000, 1000, 0, late=1000, messages=arrived, late_delays=LATE)
    assert late.late_delays(0.1) == replace(LATE, messages=len(messages))
    # Results without the delays have late frames all the same.
    assert change_counts(late, late_delays=None).late_delays(0.1) is None


def test_delays_of_several_streams_are_those_of_all_their_frames() -> None:
    few = LateDelays(frames=100, least=0.2, largest=0.4, mean=0.3, limit=0.1)
    both = merged([LATE, few])
    assert both is not None
    assert (both.frames, both.least, both.largest, both.limit) == (1100, 0.148, 0.4, 0.1)
    assert both.mean == pytest.approx((1000 * 0.15 + 100 * 0.3) / 1100)


def test_without_a_delay_of_some_late_frames_there_is_none_of_all() -> None:
    assert merged([LATE, None]) is None
    assert merged([]) is None
