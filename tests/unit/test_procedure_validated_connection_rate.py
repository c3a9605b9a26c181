# SPDX-License-Identifier: Apache-2.0
"""The validated connection rate (RFC 9693 section 4.6) against simulated gateways of known truth."""

from __future__ import annotations

from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError

N = 100_000


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return simulated_lab.measure("validated-connection-rate", truth, **{"connections": N, **others}).result


@pytest.mark.parametrize("cliff", [3_000.0, 250_000.0, 3e6])
def test_where_validation_changes_nothing_the_connection_rate_is_found(cliff: float) -> None:
    result = measure(Gateway(establishes=cliff, forwards=1e7), repeat=2)
    for one in result.repetitions:
        assert one.upper is not None
        assert one.value <= cliff < one.upper
        assert one.upper - one.value <= 0.01 * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"


def test_phase_2_asks_every_connection_once_from_the_responder_only() -> None:
    gateway = Gateway(establishes=250_000, forwards=1e7)
    measure(gateway, alpha=0.5)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert (plan.phase2.reading_order, plan.phase2.initiator_rate) == ("once", 0.0)
        assert round(plan.phase2.responder_rate * plan.phase2.seconds) == N
        assert plan.phase2.responder_rate <= 0.5 * plan.phase1_rate * (1 + 1e-9)


def test_a_slow_way_back_does_not_hide_the_connection_rate(golden: Golden) -> None:
    """The published case: about 258 k frames/s back and 478 k connections/s; with r = 0.8 R the way back was found."""
    gateway = Gateway(establishes=478_417, forwards=1e7, forwards_down=258_000)
    result = measure(gateway, alpha=0.8)
    assert result.median == pytest.approx(478_417, rel=0.011)
    golden(result.notes)
    assert result.figures["validation_rate"].median <= 258_000


def test_a_known_throughput_from_the_responder_bounds_the_asking() -> None:
    gateway = Gateway(establishes=478_417, forwards=1e7, forwards_down=258_000)
    result = measure(gateway, alpha=0.8, download_rate=258_000.0)
    assert result.median == pytest.approx(478_417, rel=0.011)
    assert max(plan.phase2.responder_rate for plan in gateway.plans if plan.phase2) <= 129_000
    assert not any("r too high" in note.text for note in result.notes)


def test_a_table_that_evicts_and_so_loses_no_frame_of_phase_1_is_found_out() -> None:
    """The connection rate alone would have been measured happily if the device could not tell its count."""
    for gateway in (simulated_lab.NAT44, simulated_lab.ROUTING):
        result = measure(Gateway(establishes=250_000, table_size=N // 2, when_full="evict"), gateway=gateway)
        assert result.median == 0
    assert measure(Gateway(table_size=N // 2, when_full="evict")).limited_by == "table"


def loses_once(number: int, trial: Any) -> Any:
    """Lose a frame of the first trial on the way back, by chance."""
    if number:
        return trial
    ((direction, counts),) = trial.phase2.items()
    return change_trial(trial, phase2={direction: change_counts(counts, received=counts.received_frames - 1)})


def test_a_frame_lost_by_chance_does_not_slow_the_asking_of_later_repetitions() -> None:
    """Before, all three repetitions asked at 20,000 frames/s, and alpha 0.08 was published for 0.8."""
    result = measure(Gateway(establishes=250_000, forwards=1e7, alters=loses_once), repeat=3)
    slowed, *others = (one.figures["alpha"] for one in result.repetitions)
    assert slowed < 0.2
    assert others == [0.8, 0.8]
    assert result.figures["alpha"].median == 0.8


@pytest.mark.parametrize(("alpha", "expected"), [(0.8, 322_500), (0.6, 430_000), (0.5, 478_417), (0.25, 478_417)])
def test_a_failed_validation_that_fails_its_trial_makes_the_rate_depend_on_alpha(alpha: float, expected: float) -> None:
    """The published case (Figure 11 of the scalability draft): with a high alpha the way back limits the rate."""
    gateway = Gateway(establishes=478_417, forwards=1e7, forwards_down=258_000)
    result = measure(gateway, alpha=alpha, failed_validation="fail")
    assert result.median == pytest.approx(expected, rel=0.011)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert plan.phase2.responder_rate == pytest.approx(alpha * plan.phase1_rate)
    assert result.figures["alpha"].median == pytest.approx(alpha)
    assert any("put down to: R or r too high" in note.text for note in result.notes) == (alpha > 0.5)


def test_a_fixed_alpha_is_not_lowered_by_a_known_throughput(golden: Golden) -> None:
    with golden.raises(UsageError):
        measure(failed_validation="fail", download_rate=258_000.0)


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_alpha_that_is_told_is_one_that_trials_had(repeat: int) -> None:
    gateway = Gateway(establishes=478_417, forwards=1e7, forwards_down=258_000, noise=0.05, seed=4)
    result = measure(gateway, repeat=repeat)
    tried = {(plan.phase1_rate, plan.phase2.responder_rate) for plan in gateway.plans if plan.phase2}
    for one in result.repetitions:
        assert (one.value, one.figures["validation_rate"]) in tried
    assert result.figures["alpha"].median in {asked / rate for rate, asked in tried}
