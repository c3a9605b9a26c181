# SPDX-License-Identifier: Apache-2.0
"""Searches that slices tell where to begin: the same answers as without, in fewer trials, however wrong slices are."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.made_settings import alone
from tests.unit.simulated import ABLE, Gateway, in_slices

N = 100_000
ERROR = 0.01
#: The tolerated lag lets a rate pass that is a little too high: by a share, and by seconds of a short trial.
LAG, LEAST_LAG_SECONDS = 0.002, 200e-6
#: Slices open no more connections than these, and a block of them as many as two slices and their leads.
MOST_IN_SLICES, LEAD_FRAMES = 200_000, 64


def connections(gateway: Gateway, **more: Any) -> Any:
    return alone("connection-rate", gateway, **{"connections": N, **more})


def frames(gateway: Gateway, **more: Any) -> Any:
    return alone("throughput", gateway, **{"connections": N, **more})


def plain(**truth: Any) -> Gateway:
    """A gateway whose frames cannot be timed in slices."""
    return Gateway(placement="shared", **truth)


Measure = Callable[[Gateway], Any]
RATES = st.floats(min_value=5e3, max_value=5e6)
#: Slices that are wrong by a factor of ten either way, and all between.
WRONG = st.floats(min_value=-1.0, max_value=1.0).map(lambda power: 10.0**power)


@given(rate=RATES, wrong=WRONG)
def test_the_true_connection_rate_is_found_however_wrong_the_slices_are(rate: float, wrong: float) -> None:
    device = in_slices(establishes=rate, forwards=2e6, slower_in_slices=wrong)
    found = connections(device)
    value = found.summary.median
    assert rate * (1 - ERROR) <= value <= rate * (1 + LAG + LEAST_LAG_SECONDS * rate / 100_000)
    assert found.error is not None
    assert found.error <= ERROR * rate * 1.02
    assert len(device.plans) <= 25


@given(rate=RATES, wrong=WRONG)
def test_the_true_throughput_is_found_however_wrong_the_slices_are(rate: float, wrong: float) -> None:
    device = in_slices(establishes=3e5, forwards=rate, slower_in_slices=wrong)
    value = frames(device).summary.median
    assert rate * (1 - ERROR) <= value <= rate * (1 + LAG)


@given(seed=st.integers(0, 10_000), wrong=WRONG)
def test_a_device_that_varies_gets_an_answer_within_its_noise(seed: int, wrong: float) -> None:
    device = in_slices(establishes=3e5, slower_in_slices=wrong, noise=0.02, seed=seed)
    assert 0.9 * 3e5 <= connections(device).summary.median <= 1.1 * 3e5


@pytest.mark.parametrize("slower", [0.9, 0.95, 1.0, 1.05, 1.1])
@pytest.mark.parametrize(("measure", "share"), [(connections, 0.51), (frames, 0.54)])
def test_slices_that_are_about_right_save_trials(
    measure: Callable[[Gateway], Any], share: float, slower: float
) -> None:
    counts = []
    for made in (plain, in_slices):
        device = made(establishes=3.1e5, forwards=4.7e5, slower_in_slices=slower)
        measure(device)
        counts.append(len(device.plans))
    assert counts[1] <= share * counts[0]


def test_verdicts_are_those_of_a_search_without_slices() -> None:
    """Same limits, same words, the values within both errors."""
    for rate in (2e4, 3e5, 4e6):
        with_slices = frames(in_slices(establishes=3e5, forwards=rate))
        without = frames(plain(establishes=3e5, forwards=rate))
        assert with_slices.limited_by == without.limited_by
        assert with_slices.summary.median == pytest.approx(without.summary.median, rel=2 * ERROR)


def test_a_device_beyond_the_tester_is_limited_by_the_tester() -> None:
    device = in_slices(establishes=1e9, ceiling=2e6)
    found = connections(device)
    assert (found.limited_by, found.summary.median) == ("tester", 2e6)


def test_later_repetitions_expect_what_the_one_before_found() -> None:
    device = in_slices(establishes=3e5, slower_in_slices=3.0)
    found = connections(device, repeat=4)
    trials = [sum(one.trials.values()) for one in found.measurements]
    assert statistics.mean(trials[1:]) <= 6
    assert len(device.rounds) == 1


def test_a_round_with_a_fault_expects_nothing_and_the_search_goes_its_way() -> None:
    device = in_slices(establishes=3e5, faults=[{0: "new: 1 of 2 frames came back"}])
    without = plain(establishes=3e5)
    assert connections(device).summary.median == connections(without).summary.median
    assert device.plans == without.plans


def test_slices_that_cannot_be_run_end_no_measurement() -> None:
    device = in_slices(establishes=3e5, breaks_in_slices=True)
    without = plain(establishes=3e5)
    assert connections(device).summary.median == connections(without).summary.median
    assert device.plans == without.plans


def test_slices_are_of_the_device_alone_and_of_no_more_connections_than_it_takes() -> None:
    device = in_slices(establishes=3e5)
    connections(device, connections=2_000_000)
    assert device.plans[0].phase1_rate == pytest.approx(3e5, rel=0.03)
    (plan,) = device.rounds
    assert plan.alone
    assert plan.connections == MOST_IN_SLICES
    assert 0 < plan.blocks["new"] * 2 * (LEAD_FRAMES + plan.frames) <= plan.connections


@pytest.mark.parametrize(
    ("more", "truth"), [({"stateless": True}, {}), ({"foreground_share": 0.5}, {}), ({}, {"placement": "isolated"})]
)
def test_frames_that_slices_do_not_have_are_searched_without(more: dict[str, Any], truth: dict[str, Any]) -> None:
    device = Gateway(**{"placement": "shared", "establishes": 3e5, "abilities": ABLE, **truth})
    frames(device, connections=10_000, connection_rate=1e5, **more)
    assert device.plans
    assert device.rounds == []
