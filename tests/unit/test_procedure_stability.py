# SPDX-License-Identifier: Apache-2.0
"""Stability against simulated gateways that stay the same, deteriorate, lose now and then, forget and leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.test_procedure_connection_rate import Observed

from natgauge.errors import BrokenError, UsageError

N = 1000
#: 100 periods of 1 s at half of the throughput.
HUNDRED: Mapping[str, Any] = {"hours": 100 / 3600, "throughput_rate": 1e6, "connection_rate": 1e6}


def measured(ages: Callable[[Gateway, int], None] | None = None, **given: Any) -> Measured:
    known = {name: given.pop(name) for name in tuple(given) if name in SETTINGS}
    truth = Gateway(ages=ages, **given)
    return simulated_lab.measure("stability", truth, **{"connections": N, **HUNDRED, **known})


def measure(ages: Callable[[Gateway, int], None] | None = None, **given: Any) -> Any:
    return measured(ages, **given).result


#: What is chosen; all else is of the gateway.
SETTINGS = {"gateway", "observe", "repeat", "most_seconds", "load", "trial_seconds", *HUNDRED}


def notes(result: Any) -> str:
    return "\n".join(f"{note.word}: {note.text}" for note in result.notes)


def figures(result: Any) -> Any:
    return result.repetitions[0].figures


def slower(gateway: Gateway, period: int) -> None:
    """Lose 1 % of the first capacity a period."""
    gateway.forwards = 1e6 * (1 - period / 100)


def test_a_device_that_stays_the_same_fails_in_no_period(golden: Golden) -> None:
    observed = Observed()
    result = measure(observe=observed)
    assert (result.median, result.unit) == (0, "%")
    counted = {"periods": 100, "judged_periods": 100, "failed_periods": 0, "invalid_periods": 0, "lost_percent": 0}
    assert figures(result) == counted
    rows = result.repetitions[0].series
    assert [row["seconds"] for row in rows[:2]] == [1.0, 2.1]
    assert {(row["verdict"], row["lost_frames"], row["connections"]) for row in rows} == {("PASS", 0.0, float(N))}
    golden(notes(result))
    # Each period is an event with its number and the time that is left.
    assert [event.period for event in observed.events] == list(range(101))
    assert (observed.events[0].outcome, observed.events[-1].seconds_left) == (None, 0)


def test_a_device_that_deteriorates_is_found_with_its_first_failure_its_worst_period_and_a_trend(
    golden: Golden,
) -> None:
    result = measure(slower)
    # Its capacity is below 500,000 frames/s from the 52nd period on.
    assert result.median == 49
    found = figures(result)
    assert found["first_failure_seconds"] == pytest.approx(52 + 5.1)
    assert (found["worst_shortfall_percent"], found["worst_seconds"]) == (pytest.approx(98), pytest.approx(100 + 9.9))
    assert found["lost_percent_p"] < 1e-6
    golden(notes(result))


def test_in_placement_shared_a_device_that_deteriorates_is_late(golden: Golden) -> None:
    result = measure(slower, placement="shared")
    assert result.median == 49
    assert figures(result)["lost_percent"] == 0
    assert figures(result)["worst_shortfall_percent"] == pytest.approx(98)
    golden(notes(result))


def test_sporadic_loss_is_no_trend_and_a_device_may_tell_neither_count_nor_memory() -> None:
    # Trial 0 is that of phase 1 alone.
    result = measure(loses_in=frozenset({20, 70}), gateway=simulated_lab.ROUTING)
    assert result.median == 2
    assert figures(result)["first_failure_seconds"] == pytest.approx(21 + 2.0)
    assert "with time" not in notes(result)
    assert {row["connections"] for row in result.repetitions[0].series} == {None}


def test_a_period_that_a_stall_spoiled_does_not_count(golden: Golden) -> None:
    result = measure(disturbed=0.3)
    assert result.median == 0
    invalid = figures(result)["invalid_periods"]
    assert 10 < invalid < 50
    assert result.trials["INVALID"] == invalid
    golden(notes(result))
    # Where stalls spoiled all periods, nothing is said of the device.
    with golden.raises(BrokenError):
        measure(disturbed=1.0, hours=5 / 3600)


@pytest.mark.parametrize(
    ("count", "change"),
    [
        (lambda period: N - period, -99),
        # A fall by 900 was told to be one "by 1.04e+03 connections in all", more than there were.
        (lambda period: N if period < 50 else 100, -900),
        # From the first period to the last one there are 99 steps.
        (lambda period: N + 10 * period, 990),
    ],
    ids=["forgets", "falls at once", "leaks"],
)
def test_a_count_that_changes_is_found_although_nothing_is_lost(count: Any, change: float, golden: Golden) -> None:
    result = measure(lambda gateway, period: setattr(gateway, "counts", count(period)))
    assert result.median == 0
    assert figures(result)["connections_change"] == pytest.approx(change)
    golden(notes(result))


@pytest.mark.parametrize("leak", [1 << 20, 1 << 10])
def test_a_leak_of_memory_is_reported_from_a_twentieth_of_what_was_available(leak: int, golden: Golden) -> None:
    result = measure(lambda gateway, period: setattr(gateway, "free_octets", (1 << 30) - period * leak))
    golden(notes(result))
    assert figures(result)["free_mib_change"] == pytest.approx(-100 * leak / (1 << 20), rel=0.1)


def interrupted(_gateway: Gateway, period: int) -> None:
    if period == 30:
        raise KeyboardInterrupt


def test_the_user_may_end_the_trial_and_gets_the_periods_so_far_and_no_further_repetition(golden: Golden) -> None:
    result = measure(interrupted, repeat=3)
    assert (len(result.repetitions), figures(result)["periods"]) == (1, 30)
    golden(notes(result))


def test_a_phase_1_that_was_too_fast_begins_again_more_slowly(golden: Golden) -> None:
    result = measure(establishes=2e5)
    assert figures(result)["periods"] == 100
    assert result.trials["INVALID"] == 2
    with golden.raises(BrokenError):
        measure(establishes=1e3)


def test_a_wrong_frame_of_phase_1_in_a_later_period_does_not_end_the_trial() -> None:
    """All periods have one phase 1, of which a gateway may send a copy at any time."""
    result = measure(lambda gateway, period: setattr(gateway, "establishes", 1e6 if period != 50 else 1e3))
    assert (figures(result)["periods"], figures(result)["failed_periods"]) == (100, 1)


def test_a_time_limit_leaves_periods_out(golden: Golden) -> None:
    result = measure(most_seconds=60.5)
    assert figures(result)["periods"] == 50
    golden(notes(result))
    with golden.raises(BrokenError):
        measure(most_seconds=0.5)


@pytest.mark.parametrize(("pause", "fitting"), [(0.1, 33), (2.0, 14)])
def test_the_opening_of_the_connections_is_a_part_of_the_time_limit(
    pause: float, fitting: int, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: all of the time was given to the periods, so that the trial with its 20 s of phase 1 was refused.

    Pauses that a slow reading makes longer leave periods out, too: 600 s took 1,500 s where a reading takes 1 s.
    """
    monkeypatch.setattr("tests.simulated_lab.engine.PERIOD_PAUSE_SECONDS", pause)
    result = measure(most_seconds=60.5, connection_rate=100.0)
    assert figures(result)["periods"] == fitting
    said = [note.text for note in result.notes if note.word == "time used up"]
    assert said == [f"{fitting} of 100 periods fitted into the time"]
    with golden.raises(BrokenError):
        measure(most_seconds=20.5, connection_rate=100.0)


def test_more_periods_than_a_result_has_rows_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^hours: 168 h are 604800 periods of 1 s, more than 200000; give more --tr"):
        measure(hours=168.0)


@pytest.mark.parametrize(("invalid", "undecided"), [(99, True), (10, False)])
def test_invalid_periods_widen_the_share_and_too_many_leave_it_undecided(
    invalid: int, golden: Golden, *, undecided: bool
) -> None:
    """99 INVALID periods of 100 were "fails in 0 % of the periods", for information."""

    def late(gateway: Gateway, period: int) -> None:
        """The tester is late in some periods."""
        gateway.sender_lag = 0.01 if period < invalid else 0.0

    found = measured(late)
    (one,) = found.result.repetitions
    assert (one.value, one.upper) == (0, invalid)
    golden(notes(found.result))
    assert ("undecided" in found.words()) == undecided


def test_invalid_periods_may_have_failed_or_passed_in_the_range_of_a_repetition() -> None:
    """20 % of those that were judged failed, and 10 % of all: `diff` took 20 % for the least."""

    def half_late(gateway: Gateway, period: int) -> None:
        gateway.sender_lag = 0.01 if period % 2 else 0.0

    found = measured(half_late, loses_in=frozenset(range(3, 23, 2)))
    (one,) = found.result.repetitions
    assert (one.value, one.upper) == (20, 60)
    ends = {name: value for name, value in one.figures.items() if name.startswith("failed_percent")}
    assert sorted(ends.values()) == [10, 60]
    assert found.span == (10, 60)
