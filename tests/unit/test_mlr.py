# SPDX-License-Identifier: Apache-2.0
"""MLRsearch over simulated gateways of known truth, beside plain binary search."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.values import SearchError
from natgauge.procedures.throughput import PROCEDURE, Settings

N = 1000


def measure(gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"repeat": 1, "connection_rate": 1e5, "search": "mlrsearch", **others}
    return PROCEDURE.measure(gateway, Settings(connections=N, placement=gateway.placement, **given))


@pytest.mark.parametrize("cliff", [5_000.0, 300_000.0, 4e6])
@pytest.mark.parametrize("placement", ["isolated", "shared"])
@pytest.mark.parametrize("goals", ["rfc2544", "ndr-pdr"])
def test_a_hard_cliff_is_found_within_the_width(cliff: float, placement: Any, goals: str) -> None:
    result = measure(Gateway(forwards=cliff, placement=placement), goals=goals)
    one = result.measurements[0]
    name = "rfc2544" if goals == "rfc2544" else "ndr"
    lower, upper = one.figures[f"{name}_lower_bound"], one.figures[f"{name}_upper_bound"]
    assert upper - lower <= 0.01 * upper * 1.001
    # In shared placement 0.1 % or 200 us of lag are tolerated.
    assert lower <= cliff * 1.003
    assert upper >= cliff
    assert result.limited_by == "device"


def test_the_partial_drop_rate_lies_where_half_a_percent_is_lost() -> None:
    """Beyond the cliff the device goes on to forward at the cliff: 0.5 % are lost at cliff / 0.995."""
    figures = measure(Gateway(forwards=300_000), goals="ndr-pdr", error=SearchError(share=0.001)).figures
    assert figures["pdr_lower_bound"] == pytest.approx(300_000 / 0.995, rel=0.0011)
    assert figures["ndr_lower_bound"] == pytest.approx(300_000, rel=0.0011)


def test_it_agrees_with_binary_search() -> None:
    for seed in range(3):
        both = [
            measure(Gateway(forwards=432_100, noise=0.002, seed=seed), search=way).summary.median
            for way in ("binary", "mlrsearch")
        ]
        assert both[0] == pytest.approx(both[1], rel=0.025)


def test_rare_loss_does_not_move_the_no_drop_rate_as_it_moves_binary_search() -> None:
    gateway = Gateway(forwards=300_000, rare_loss=0.2, seed=2)
    assert measure(gateway, goals="ndr-pdr").summary.median == pytest.approx(300_000, rel=0.02)


def test_disturbed_trials_are_repeated() -> None:
    result = measure(Gateway(forwards=300_000, disturbed=0.4, seed=4), invalid_repeats=50)
    assert result.summary.median == pytest.approx(300_000, rel=0.011)
    assert result.trials["INVALID"] > 0


def test_a_tester_that_is_too_slow_passes_nothing() -> None:
    result = measure(Gateway(forwards=1e9, real_ceiling=400_000, ceiling=4e6))
    assert result.summary.median * 2 <= 400_000
    assert any("count as lost" in note for note in result.notes)


def test_the_testers_highest_rate_is_the_end() -> None:
    result = measure(Gateway(forwards=1e9, ceiling=4e6))
    assert result.limited_by == "tester"
    assert result.summary.median == pytest.approx(2e6)


def test_a_device_that_forwards_nothing_gets_0() -> None:
    assert measure(Gateway(rare_loss=1.0)).summary.median == 0


def test_loads_are_of_one_direction() -> None:
    gateway = Gateway(forwards=300_000)
    measure(gateway)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert plan.phase2.initiator_rate == plan.phase2.responder_rate


def test_a_table_too_small_is_told() -> None:
    result = measure(Gateway(table_size=N // 2))
    assert (result.summary.median, result.limited_by) == (0, "table")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"search": "guess"}, "search: 'guess' is unknown; choose one of binary, mlrsearch"),
        ({"goals": "all"}, "goals: 'all' is unknown; choose one of rfc2544, ndr-pdr"),
        ({"goals": "ndr-pdr"}, "goals: ndr-pdr needs the search mlrsearch"),
        ({"search": "mlrsearch", "error": SearchError(rate=10.0)}, "error: 10 is a rate; mlrsearch needs a share"),
        ({"search": "mlrsearch", "loss_tolerance": 0.1}, "loss tolerance: mlrsearch has goals instead"),
    ],
)
def test_bad_settings_are_refused_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Settings(**{"connections": N, "placement": "shared", **given})
    assert says in str(caught.value)
