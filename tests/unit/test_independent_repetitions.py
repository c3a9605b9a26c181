# SPDX-License-Identifier: Apache-2.0
"""Repetitions are independent: none begins at the answer of the one before, and each has a grid of loads of its own."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest
from tests.unit.made_results import made
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge import procedures
from natgauge.analysis.contrast import median_interval_of
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import Ability
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search.rate_search import near, own_grid
from natgauge.reports.text import spread_text, verdict
from natgauge.words import Placement, Verdict

CAPACITY = 360_000.0
RUNS = 30


def values(placement: Placement, seed: int, repeat: int = 3, **asked: Any) -> list[float]:
    """The values of one run on a host that does not change, but whose trials differ by 1 %."""
    costs = frozenset({Ability.COSTS}) if placement == "shared" else frozenset[Ability]()
    gateway = Gateway(
        placement=placement, establishes=CAPACITY, noise=0.01, abilities=costs, slice_noise=0.02, seed=seed
    )
    procedure = procedures.get("connection-rate")
    settings = settings_of(
        procedure,
        {"repeat": repeat, "error": "5%", **asked},
        connections=100_000,
        placement=placement,
        order="permutation",
        four_tuples=100_000,
    )
    return [one.value for one in procedure.measure(gateway, settings, clock=gateway.clock).measurements]


@pytest.mark.parametrize("placement", ["shared", "isolated"])
def test_repetitions_of_a_run_do_not_repeat_each_other(placement: Placement) -> None:
    """62 % of such runs had three times the same value, and the ranges of two runs were disjoint in 54 % (`shared`)."""
    runs = [values(placement, seed) for seed in range(RUNS)]
    assert sum(len(set(run)) == 1 for run in runs) <= 1
    within = statistics.fmean(map(statistics.stdev, runs))
    between = statistics.stdev(statistics.median(run) for run in runs)
    # Of independent repetitions the medians of three differ less than the repetitions: by two thirds.
    assert between < within
    pairs = list(itertools.combinations(runs, 2))
    assert sum(max(a) < min(b) or max(b) < min(a) for a, b in pairs) < 0.25 * len(pairs)


@pytest.mark.parametrize("placement", ["shared", "isolated"])
def test_single_repetitions_with_seeds_of_their_own_do_not_walk_one_grid(placement: Placement) -> None:
    """A campaign searches each repetition by itself: 55 % of three such values were equal in `isolated` placement."""
    found = [value for seed in range(RUNS) for value in values(placement, seed, 1)]
    assert len(set(found)) >= RUNS - 1


def test_a_seed_gives_the_same_search_again() -> None:
    assert values("isolated", 7) == values("isolated", 7)


def test_a_start_is_near_its_hint_and_no_farther_than_a_quarter() -> None:
    assert near(1000.0, SearchError(share=0.05), 0.5) == pytest.approx(1050)
    assert near(1000.0, SearchError(share=0.4), -1.0) == pytest.approx(750)
    assert own_grid(1000.0, -1.0) == 1000
    assert own_grid(1000.0, 1.0) == 2000


def test_the_interval_of_a_median_reaches_up_to_the_bounds_of_the_searches() -> None:
    """A value is the lower bound: intervals told to contain the median with 97 % did so in 65 %."""
    six = [Measurement(100.0 + at, 105.0 + at, "device", {Verdict.PASS: 1}) for at in range(6)]
    interval = median_interval_of("connection-rate", six, ())
    assert interval is not None
    assert (interval.lower, interval.upper) == (100.0, 110.0)


@pytest.mark.parametrize(
    ("shown", "error", "says"),
    [
        ([100.0, 100.0, 100.0], 5.0, "they differ by less than the search error"),
        ([100.0, 102.0, 99.0], 5.0, "they differ by less than the search error"),
        ([100.0, 104.0, 96.0], 5.0, "they lie within ± 4.0 %"),
        ([100.0, 110.0, 99.0], 5.0, "they lie within 99.0 to 110.0"),
        ([100.0, 100.0, 100.0], None, "they agree"),
    ],
)
def test_a_spread_below_the_error_is_no_spread(shown: list[float], error: float | None, says: str) -> None:
    result = made(shown, median=statistics.median(shown), error=error)
    assert spread_text(result) == says
    assert f"Median of 3 repetitions ({says})" in verdict(result)
    assert "±0.0%" not in verdict(result)
