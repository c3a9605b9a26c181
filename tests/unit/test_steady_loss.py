# SPDX-License-Identifier: Apache-2.0
"""A loss of phase 1 that no slower one cures is seen and told; an overload is no such loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError

N = 20_000
RATE = 40_000.0
#: What is lost of phase 1 in a trial at this rate; its number is counted from 0.
Loses = Callable[[int, float], int]


def losing(loses: Loses, without_checksum: int = 0) -> Gateway:
    """A device that forwards 300,000 frames/s, and loses so many of its new connections."""

    def alters(number: int, trial: Any) -> Any:
        received = trial.phase1.received_frames - loses(number, trial.plan.phase1_rate)
        phase1 = change_counts(trial.phase1, received=received, without_checksum=without_checksum)
        return change_trial(trial, phase1=phase1, stored=received, count_after=received)

    return Gateway(forwards=3e5, alters=alters)


def measure(metric: str, gateway: Gateway, **asked: Any) -> Measured:
    known: dict[str, Any] = {"throughput_rate": 1e5} if metric in {"latency", "pdv", "back-to-back"} else {}
    return simulated_lab.measure(metric, gateway, connections=N, connection_rate=2 * RATE, **known, **asked)


def failed(metric: str, gateway: Gateway, **asked: Any) -> str:
    """What is said where nothing could be measured."""
    with pytest.raises(BrokenError) as raised:
        measure(metric, gateway, **asked)
    return str(raised.value)


def options(text: str) -> set[str]:
    """The options that a text names."""
    return {word for word in text.replace(",", "").split() if word.startswith("--")}


def rates(gateway: Gateway, trials: int) -> list[float]:
    """The rate of phase 1 in the first trials of a throughput, the first of which is at `RATE`."""
    return [RATE / plan.phase1_rate for plan in gateway.plans[:trials]]


@pytest.mark.parametrize("lost", [1, 40, 12_000])
def test_a_phase_1_that_loses_no_less_where_it_is_slower_is_slowed_down_no_more(lost: int) -> None:
    """Seen: a gateway that spoils a frame of 65,536 spent most of a minute in phases 1 of 12 s."""
    gateway = losing(lambda _number, _rate: lost)
    failed("throughput", gateway, invalid_repeats=20)
    assert rates(gateway, 5) == [1, 2, 4, 1, 1]


@pytest.mark.parametrize(
    ("loses", "passes"),
    [
        # At a sixteenth of the rate, the slowest that is tried, both still lose frames.
        (lambda _number, rate: max(0, round(N * (1 - 0.06 * RATE / rate))), False),
        (lambda _number, rate: round(32 * rate / RATE), False),
        (lambda number, _rate: int(number < 2), True),
    ],
)
def test_a_loss_that_a_slower_phase_1_cures_slows_it_down(loses: Loses, *, passes: bool) -> None:
    """An overload, a full queue, and a device that lost a frame twice."""
    gateway = losing(loses)
    attempt = measure if passes else failed
    attempt("throughput", gateway, invalid_repeats=20)
    slowed = rates(gateway, 5)
    assert slowed == sorted(slowed)
    assert slowed[-1] >= 4


def test_a_rate_that_loses_less_on_average_is_no_remedy_refuted_by_a_single_failure() -> None:
    """At a quarter of the rate one phase 1 of ten loses a frame, at the whole rate each."""
    gateway = losing(lambda number, rate: int(rate > RATE / 4 or number % 10 == 9))
    measure("throughput", gateway)
    assert rates(gateway, 12) == [1, 2, *[4] * 8, 8, 8]


def test_a_phase_1_that_loses_a_frame_now_and_then_is_repeated_and_told(golden: Golden) -> None:
    """Each second one; at one load several fail in a row."""
    gateway = losing(lambda number, _rate: int(number in {0, 1, 2, 3, 4, 5, 6} or number % 2))
    found = measure("throughput", gateway)
    assert found.median == pytest.approx(3e5, rel=0.011)
    assert (found.limited_by, found.document["trials"]["INVALID"] > 7) == ("device", True)
    assert {plan.phase1_rate for plan in gateway.plans[3:]} == {RATE}
    golden([note.text for note in found.result.notes if note.word == "phase 1"])


#: Of a loss that chance may let pass, 10 failures in a row are tried again; of any other 4.
@pytest.mark.parametrize(("lost", "trials"), [(1, 11), (40, 5)])
@pytest.mark.parametrize("metric", ["throughput", "latency", "pdv", "frame-loss", "back-to-back"])
def test_what_helps_is_told_where_no_phase_1_passes(metric: str, lost: int, trials: int, golden: Golden) -> None:
    gateway = losing(lambda _number, _rate: lost)
    golden(failed(metric, gateway, invalid_repeats=20))
    assert len(gateway.plans) == trials


@pytest.mark.parametrize(("metric", "seconds"), [("throughput", 6.0), ("latency", 8.5)])
def test_where_the_time_is_over_more_of_it_is_not_the_only_advice(metric: str, seconds: float, golden: Golden) -> None:
    given = {"most_seconds": seconds, "trial_seconds": 1.0}
    golden(failed(metric, losing(lambda _number, _rate: 1), **given))
    surely = failed(metric, losing(lambda _number, _rate: 40), **given)
    assert "no result: " in surely
    assert "no remedy" in surely
    assert "--most-seconds" not in surely


def test_after_two_failures_a_slower_phase_1_may_still_help() -> None:
    gateway = losing(lambda _number, _rate: 40)
    assert options(failed("throughput", gateway, most_seconds=5.3, trial_seconds=1.0)) == {"--most-seconds"}
    assert rates(gateway, 9) == [1, 2]


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
    gateway = losing(lambda _number, _rate: lost, without)
    assert options(failed("throughput", gateway, invalid_repeats=20)) == helps
