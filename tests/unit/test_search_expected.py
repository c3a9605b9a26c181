# SPDX-License-Identifier: Apache-2.0
"""Searches that slices tell where to begin: the same answers as without, in fewer trials, however wrong slices are."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulated import Gateway

from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import Ability
from natgauge.paired.slices import connections_of_block
from natgauge.procedures import connection_rate, throughput
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.search.bracket import Bracket, Load
from natgauge.procedures.kit.search.rate_search import MOST_IN_SLICES
from natgauge.trials import LEAST_LAG_SECONDS

COSTS = frozenset({Ability.COSTS})
ERROR = 0.01
#: The tolerated lag lets a rate pass that is a little too high.
LAG = 0.002


def connections(gateway: Gateway, **more: object) -> MeasurementResult:
    asked = connection_rate.ConnectionRateSettings(connections=100_000, placement="shared", repeat=1, **more)  # type: ignore[arg-type] # as asked
    return connection_rate.PROCEDURE.measure(gateway, asked)


def frames(gateway: Gateway, **more: object) -> MeasurementResult:
    asked = throughput.ThroughputSettings(connections=100_000, placement="shared", repeat=1, **more)  # type: ignore[arg-type] # as asked
    return throughput.PROCEDURE.measure(gateway, asked)


def gateway(**more: object) -> Gateway:
    return Gateway(placement="shared", **more)  # type: ignore[arg-type] # as its fields


RATES = st.floats(min_value=5e3, max_value=5e6)
#: Slices that are wrong by a factor of ten either way, and all between.
WRONG = st.floats(min_value=-1.0, max_value=1.0).map(lambda power: 10.0**power)


@given(rate=RATES, wrong=WRONG)
def test_the_true_connection_rate_is_found_however_wrong_the_slices_are(rate: float, wrong: float) -> None:
    device = gateway(establishes=rate, forwards=2e6, abilities=COSTS, slower_in_slices=wrong)
    found = connections(device)
    value = found.summary.median
    assert rate * (1 - ERROR) <= value <= rate * (1 + LAG + LEAST_LAG_SECONDS * rate / 100_000)
    assert found.error is not None
    assert found.error <= ERROR * rate * 1.02
    assert len(device.plans) <= 25


@given(rate=RATES, wrong=WRONG)
def test_the_true_throughput_is_found_however_wrong_the_slices_are(rate: float, wrong: float) -> None:
    device = gateway(establishes=3e5, forwards=rate, abilities=COSTS, slower_in_slices=wrong)
    value = frames(device).summary.median
    assert rate * (1 - ERROR) <= value <= rate * (1 + LAG)


@given(seed=st.integers(0, 10_000), wrong=WRONG)
def test_a_device_that_varies_gets_an_answer_within_its_noise(seed: int, wrong: float) -> None:
    device = gateway(establishes=3e5, abilities=COSTS, slower_in_slices=wrong, noise=0.02, seed=seed)
    assert 0.9 * 3e5 <= connections(device).summary.median <= 1.1 * 3e5


@pytest.mark.parametrize("slower", [0.9, 0.95, 1.0, 1.05, 1.1])
@pytest.mark.parametrize(("measure", "share"), [(connections, 0.51), (frames, 0.54)])
def test_slices_that_are_about_right_save_trials(measure: object, share: float, slower: float) -> None:
    counts = []
    for abilities in (frozenset(), COSTS):
        device = gateway(establishes=3.1e5, forwards=4.7e5, abilities=abilities, slower_in_slices=slower)
        measure(device)  # type: ignore[operator] # one of two functions
        counts.append(len(device.plans))
    assert counts[1] <= share * counts[0]


def test_what_a_first_failure_forwarded_is_believed_and_that_of_a_later_one_only_where_it_is_lower() -> None:
    """A device that loses a frame now and then forwards nearly all at rates that are too high, too."""
    bracket = Bracket(1000.0, SearchError(rate=10.0))
    found = [bracket.below(Load(1000.0, fails=1, forwarded=rate)) for rate in (990.0, 990.0, 500.0, None, 990.0)]
    assert found == [
        (986.0, False),
        (pytest.approx(1000 / 1.2), False),
        (496.0, True),
        (pytest.approx(1000 / 1.8), True),
        (500.0, True),
    ]


def test_verdicts_are_those_of_a_search_without_slices() -> None:
    """Same limits, same words, the values within both errors."""
    for rate in (2e4, 3e5, 4e6):
        with_slices = frames(gateway(establishes=3e5, forwards=rate, abilities=COSTS))
        without = frames(gateway(establishes=3e5, forwards=rate))
        assert with_slices.limited_by == without.limited_by
        assert with_slices.summary.median == pytest.approx(without.summary.median, rel=2 * ERROR)


def test_a_device_beyond_the_tester_is_limited_by_the_tester() -> None:
    device = gateway(establishes=1e9, ceiling=2e6, abilities=COSTS)
    found = connections(device)
    assert (found.limited_by, found.summary.median) == ("tester", 2e6)


def test_later_repetitions_expect_what_the_one_before_found() -> None:
    asked = connection_rate.ConnectionRateSettings(connections=100_000, placement="shared", repeat=4)
    device = gateway(establishes=3e5, abilities=COSTS, slower_in_slices=3.0)
    found = connection_rate.PROCEDURE.measure(device, asked)
    trials = [sum(one.trials.values()) for one in found.measurements]
    assert statistics.mean(trials[1:]) <= 6
    assert len(device.rounds) == 1


def test_a_round_with_a_fault_expects_nothing_and_the_search_goes_its_way() -> None:
    device = gateway(establishes=3e5, abilities=COSTS, faults=[{0: "new: 1 of 2 frames came back"}])
    plain = gateway(establishes=3e5)
    assert connections(device).summary.median == connections(plain).summary.median
    assert device.plans == plain.plans


def test_slices_that_cannot_be_run_end_no_measurement() -> None:
    device = gateway(establishes=3e5, abilities=COSTS, breaks_in_slices=True)
    plain = gateway(establishes=3e5)
    assert connections(device).summary.median == connections(plain).summary.median
    assert device.plans == plain.plans


def test_slices_are_of_the_device_alone_and_of_no_more_connections_than_it_takes() -> None:
    device = gateway(establishes=3e5, abilities=COSTS)
    asked = connection_rate.ConnectionRateSettings(connections=2_000_000, placement="shared", repeat=1)
    connection_rate.PROCEDURE.measure(device, asked)
    assert device.plans[0].phase1_rate == pytest.approx(3e5, rel=0.03)
    (plan,) = device.rounds
    assert plan.alone
    assert plan.connections == MOST_IN_SLICES
    assert plan.blocks["new"] * connections_of_block(plan.frames) <= plan.connections


@pytest.mark.parametrize("more", [{"stateless": True}, {"foreground_share": 0.5}, {"placement": "isolated"}])
def test_frames_that_slices_do_not_have_are_searched_without(more: dict[str, object]) -> None:
    able = COSTS | {Ability.STATELESS, Ability.BACKGROUND}
    placed = more.get("placement", "shared")
    device = Gateway(placement=placed, establishes=3e5, abilities=able)  # type: ignore[arg-type] # one of two words
    given_ = {"connections": 10_000, "placement": "shared", "repeat": 1, "connection_rate": 1e5, **more}
    throughput.PROCEDURE.measure(device, throughput.ThroughputSettings(**given_))  # type: ignore[arg-type] # as asked
    assert device.rounds == []
