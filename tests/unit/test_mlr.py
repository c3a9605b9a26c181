# SPDX-License-Identifier: Apache-2.0
"""MLRsearch over simulated gateways of known truth, beside plain binary search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import OneTrial
from tests.unit.counted import make_outcome
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge import Result
from natgauge.inputs.measuring_types import SearchError
from natgauge.procedures.kit.binary_search import SearchPlan
from natgauge.procedures.kit.mlr_search import MlrPlan, search
from natgauge.procedures.kit.runner import Bounds, GoneError
from natgauge.words import Verdict

N = 1000
#: Runs with other pseudorandom choices.
SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2)))


def measure(truth: Gateway, **others: Any) -> Result:
    given = {"connections": N, "connection_rate": 1e5, "search": "mlrsearch", "most_seconds": 0, **others}
    return simulated_lab.measure("throughput", truth, **given).result


@pytest.mark.parametrize("cliff", [5_000.0, 300_000.0, 4e6])
@pytest.mark.parametrize("placement", ["isolated", "shared"])
@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_a_hard_cliff_is_found_within_the_width(cliff: float, placement: Any, goals: str) -> None:
    result = measure(Gateway(forwards=cliff, placement=placement), goals=goals)
    one = result.repetitions[0]
    name = "rfc2544" if goals == "rfc2544" else "ndr"
    lower, upper = one.figures[f"{name}_lower_bound"], one.figures[f"{name}_upper_bound"]
    assert upper - lower <= 0.01 * upper * 1.001
    # In shared placement 0.1 % or 200 us of lag are tolerated.
    assert lower <= cliff * 1.003
    assert upper >= cliff
    assert result.limited_by == "device"


@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_a_device_slower_than_the_librarys_own_least_load_has_a_result(goals: str) -> None:
    """Seen: "Max load 4554.6 must be bigger", for a device of 3,000 connections/s and frames/s."""
    result = measure(Gateway(establishes=3_000, forwards=3_000), connection_rate=3_000.0, goals=goals)
    assert result.median == pytest.approx(3_000, rel=0.02)


def test_the_partial_drop_rate_lies_where_half_a_percent_is_lost() -> None:
    """Beyond the cliff the device goes on to forward at the cliff: 0.5 % are lost at cliff / 0.995."""
    found = measure(Gateway(forwards=300_000), goals="ndr-pdr", error="0.1%")
    figures = {name: one.median for name, one in found.figures.items()}
    assert figures["pdr_lower_bound"] == pytest.approx(300_000 / 0.995, rel=0.0011)
    assert figures["ndr_lower_bound"] == pytest.approx(300_000, rel=0.0011)


WITHOUT = ("disturbed", "shared")
#: What gateways do to a search beside having a limit.
KINDS: dict[str, dict[str, Any]] = {
    "cliff": {},
    "noise": {"noise": 0.002},
    "rare loss": {"rare_loss": 0.01},
    "first trial": {"loses_in": frozenset({0})},
    "a short trial": {"loses_in": frozenset({2})},
    "another one": {"loses_in": frozenset({7})},
    "slow tester": {"real_ceiling": 500_000.0},
    "disturbed": {"disturbed": 0.3},
}


def disturbances() -> Iterator[Any]:
    """Each kind in both placements with one of three limits; `make soak`: with each of them."""
    # Where nothing queues no disturbance of the host excuses a lost frame: that would be another rare loss.
    kinds = [
        (kind, placement) for kind in KINDS for placement in ("isolated", "shared") if (kind, placement) != WITHOUT
    ]
    for number, (kind, placement) in enumerate(kinds):
        for place, cliff in enumerate((31_234.0, 432_100.0, 3e6)):
            yield pytest.param(kind, placement, cliff, marks=[] if number % 3 == place else [pytest.mark.soak])


@pytest.mark.parametrize(("kind", "placement", "cliff"), list(disturbances()))
@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_binary_search_within_both_errors(kind: str, placement: Any, cliff: float, seed: int) -> None:
    both = [
        measure(Gateway(forwards=cliff, placement=placement, seed=seed, **KINDS[kind]), search=way, invalid_repeats=50)
        for way in ("binary", "mlrsearch")
    ]
    binary, mlr = (result.median for result in both)
    # A noisy limit lies elsewhere in each trial.
    blur = 3 * KINDS[kind].get("noise", 0.0) * cliff
    assert both[0].error is not None
    assert both[1].error is not None
    assert abs(binary - mlr) <= both[0].error + both[1].error + blur
    assert both[0].limited_by == both[1].limited_by


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_no_single_disturbed_trial_sets_the_answer(number: int, goals: str) -> None:
    """Seen: 200,000 of a device that forwards 1 M, with a note that the tester's highest rate had passed."""
    result = measure(Gateway(forwards=1e6, loses_in=frozenset({number})), goals=goals)
    assert result.median == pytest.approx(1e6, rel=0.011)
    assert result.limited_by == "device"
    assert not any("the tester's highest" in note.text for note in result.notes)


def test_what_confirming_overruled_is_told() -> None:
    told = [
        any("failed first, and passed 2 of 3 trials" in note.text for note in result.notes)
        for number in range(12)
        for result in [measure(Gateway(forwards=1e6, loses_in=frozenset({number})))]
    ]
    assert any(told)
    unconfirmed = measure(Gateway(forwards=1e6, loses_in=frozenset({7})), confirm=False)
    assert not any(note.word == "contradictions" for note in unconfirmed.notes)


@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_a_bound_that_invalid_trials_made_is_not_the_devices(goals: str) -> None:
    assert measure(Gateway(forwards=1e9, real_ceiling=400_000, ceiling=4e6), goals=goals).limited_by == "tester"
    assert measure(Gateway(forwards=1e9, disturbed=1.0, ceiling=4e6), goals=goals).limited_by == "host"


@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_the_criterion_is_told(goals: str, golden: Golden) -> None:
    result = measure(Gateway(forwards=300_000), goals=goals)
    golden(result.parameter("goal_criteria"))
    golden(result.notes)
    assert measure(Gateway(forwards=300_000), search="binary").parameter("goal_criteria") is None


def test_rare_loss_does_not_move_the_no_drop_rate_as_it_moves_binary_search() -> None:
    gateway = Gateway(forwards=300_000, rare_loss=0.2, seed=2)
    assert measure(gateway, goals="ndr-pdr").median == pytest.approx(300_000, rel=0.02)


def test_disturbed_trials_are_repeated() -> None:
    result = measure(Gateway(forwards=300_000, disturbed=0.4, seed=4), invalid_repeats=50)
    assert result.median == pytest.approx(300_000, rel=0.011)
    assert result.trials[Verdict.INVALID] > 0


def test_a_tester_that_is_too_slow_passes_nothing() -> None:
    result = measure(Gateway(forwards=1e9, real_ceiling=400_000, ceiling=4e6))
    assert result.median * 2 <= 400_000
    assert any("count as lost" in note.text for note in result.notes)


def test_the_testers_highest_rate_is_the_end() -> None:
    result = measure(Gateway(forwards=1e9, ceiling=4e6))
    assert result.limited_by == "tester"
    assert result.median == pytest.approx(2e6)


def test_a_device_that_forwards_nothing_gets_0() -> None:
    assert measure(Gateway(rare_loss=1.0)).median == 0


def test_loads_are_of_one_direction() -> None:
    gateway = Gateway(forwards=300_000)
    measure(gateway)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert plan.phase2.initiator_rate == plan.phase2.responder_rate


def test_a_table_too_small_is_told() -> None:
    result = measure(Gateway(table_size=N // 2), gateway=simulated_lab.LIMITED)
    assert (result.median, result.limited_by) == (0, "table")


def test_a_device_that_did_not_come_back_ends_the_search_at_once() -> None:
    asked: list[float] = []

    def trial(rate: float, _seconds: float, _bounds: Bounds) -> OneTrial:
        asked.append(rate)
        return make_outcome(Verdict.COLLAPSED, "it did not come back", limited_by="device")

    limits = SearchPlan(top=1e6, start=1e5, floor=1e3, unit="frames/s", error=SearchError(share=0.01))
    with pytest.raises(GoneError, match="it did not come back"):
        search(MlrPlan(limits, "rfc2544", 2.0), trial)
    assert asked == [1e5]
