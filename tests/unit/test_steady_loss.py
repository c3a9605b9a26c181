# SPDX-License-Identifier: Apache-2.0
"""A loss of phase 1 that no slower one cures is seen and told; an overload is no such loss."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError
from natgauge.procedures import get
from natgauge.procedures.kit.measure.phase1 import MOST_BY_CHANCE, UnpreparableError, safely_below
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

N = 20_000
RATE = 40_000.0
#: What is lost of phase 1 in a trial at this rate; its number is counted from 0.
Loses = Callable[[int, float], int]


def losing(loses: Loses, **truth: Any) -> Gateway:
    """A device that forwards 300,000 frames/s, and loses so many of its new connections."""
    numbers = itertools.count()

    def alters(_number: int, trial: Any) -> Any:
        lost = loses(next(numbers), trial.plan.phase1_rate)
        received = trial.phase1.received_frames - lost
        return change_trial(trial, phase1=change_counts(trial.phase1, received=received), stored=received)

    return Gateway(forwards=3e5, alters=alters, knows_count=False, **truth)


def measure(metric: str, gateway: Gateway, **asked: Any) -> MeasurementResult:
    procedure = get(metric)
    decided = {"connections": N, "placement": "isolated", "order": "permutation", "four_tuples": N}
    chosen = {"repeat": 1, "connection_rate": 2 * RATE, **asked}
    return procedure.measure(gateway, settings_of(procedure, chosen, **decided), clock=gateway.clock)


def rates(loses: Loses, trials: int) -> list[float]:
    """The rate of phase 1 in so many trials of one load, the first of which is at `RATE`."""
    gateway, preparation, seen = losing(loses), safely_below(2 * RATE), []
    for _ in range(trials):
        seen.append(preparation.rate)
        plan = PlanOfTrial(connections=N, phase1_rate=preparation.rate, phase2=Phase2Plan(1000.0, 1000.0, 0.1))
        preparation.judge(gateway.measure(plan))
    return [RATE / rate for rate in seen]


@pytest.mark.parametrize("lost", [1, 40, 12_000])
def test_a_phase_1_that_loses_no_less_where_it_is_slower_is_slowed_down_no_more(lost: int) -> None:
    """Seen: a gateway that spoils a frame of 65,536 spent most of a minute in phases 1 of 12 s."""
    assert rates(lambda _number, _rate: lost, 5) == [1, 2, 4, 1, 1]


@pytest.mark.parametrize(
    "loses",
    [
        lambda _number, rate: max(0, round(N * (1 - 0.06 * RATE / rate))),
        lambda _number, rate: round(32 * rate / RATE),
        lambda number, _rate: int(number < 2),
    ],
)
def test_a_loss_that_a_slower_phase_1_cures_slows_it_down(loses: Loses) -> None:
    """An overload, a full queue, and a device that lost a frame twice."""
    slowed = rates(loses, 5)
    assert slowed == sorted(slowed)
    assert slowed[-1] >= 4


def test_a_rate_that_loses_less_on_average_is_no_remedy_refuted_by_a_single_failure() -> None:
    """At a quarter of the rate one phase 1 of ten loses a frame, at the whole rate each."""
    slowed = rates(lambda number, rate: int(rate > RATE / 4 or number % 10 == 9), 12)
    assert slowed == [1, 2, *[4] * 8, 8, 8]


def test_a_phase_1_that_loses_a_frame_now_and_then_is_repeated_and_told(golden: Golden) -> None:
    """Each second one; at one load several fail in a row."""
    gateway = losing(lambda number, _rate: int(number in {0, 1, 2, 3, 4, 5, 6} or number % 2))
    result = measure("throughput", gateway)
    assert result.summary.median == pytest.approx(3e5, rel=0.011)
    assert (result.limited_by, result.trials[Verdict.INVALID] > 7) == ("device", True)
    assert {plan.phase1_rate for plan in gateway.plans[3:]} == {RATE}
    golden([note.text for note in result.notes if note.word == "phase 1"])


@pytest.mark.parametrize(("lost", "trials"), [(1, MOST_BY_CHANCE + 1), (40, 5)])
@pytest.mark.parametrize("metric", ["throughput", "latency", "pdv", "frame-loss", "back-to-back"])
def test_what_helps_is_told_where_no_phase_1_passes(metric: str, lost: int, trials: int, golden: Golden) -> None:
    gateway = losing(lambda _number, _rate: lost)
    known = {} if metric == "throughput" else {"throughput_rate": 1e5}
    with pytest.raises(UnpreparableError) as raised:
        measure(metric, gateway, invalid_repeats=20, **known)
    assert len(gateway.plans) == trials
    golden(str(raised.value))


@pytest.mark.parametrize(("metric", "seconds"), [("throughput", 5.3), ("latency", 6.5)])
def test_where_the_time_is_over_more_of_it_is_not_the_only_advice(metric: str, seconds: float, golden: Golden) -> None:
    known = {} if metric == "throughput" else {"throughput_rate": 1e5}
    with golden.raises(BrokenError):
        measure(metric, losing(lambda _number, _rate: 1), most_seconds=seconds, trial_seconds=1.0, **known)
    with pytest.raises(BrokenError, match=r"no result: .* no remedy") as surely:
        measure(metric, losing(lambda _number, _rate: 40), most_seconds=seconds, trial_seconds=1.0, **known)
    assert "--most-seconds" not in str(surely.value)


@pytest.mark.parametrize(
    ("lost", "without", "helps"),
    [
        (1, 0, {"--loss-tolerance", "--connections"}),
        (1, 1, {"--zero-checksum", "--loss-tolerance", "--connections"}),
        (12_000, 0, {"--connections"}),
    ],
)
def test_only_options_that_can_help_are_named(lost: int, without: int, helps: set[str]) -> None:
    """Of a loss of more than a half none can be tolerated."""
    preparation = safely_below(2 * RATE)
    for slower in (1, 2, 4):
        plan = PlanOfTrial(connections=N, phase1_rate=RATE / slower, phase2=Phase2Plan(1000.0, 1000.0, 0.1))
        trial = losing(lambda _number, _rate: lost).measure(plan)
        assert not preparation.remedy
        preparation.judge(change_trial(trial, phase1=change_counts(trial.phase1, without_checksum=without)))
    assert {word for word in preparation.remedy.replace(",", "").split() if word.startswith("--")} == helps
    preparation.resume(RATE)
    assert not preparation.remedy
