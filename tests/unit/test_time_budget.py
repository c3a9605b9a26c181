# SPDX-License-Identifier: Apache-2.0
"""Every measurement has an end: no trial begins that does not fit, and what is known by then is told as what it is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_settings import alone, metrics_with, settings_for, stored_alone
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import Forgetful

from natgauge import Result
from natgauge.errors import BrokenError, UsageError

N = 100_000
#: Options that are advised.
TIME_HELPS, LOSS_HELPS = "--most-seconds", "--loss-tolerance"
#: Metrics that need more of a tester than that it measures.
NEEDY = {
    "cost", "expiry", "ipdv", "mixed-load", "reset", "resolution-rate", "stability", "subscribers", "system-recovery",
    "tear-down-rate",
}  # fmt: skip
assert {*metrics_with("profile")} >= NEEDY


def measure(metric: str, gateway: Gateway, **asked: Any) -> Result:
    """Measure a simulated gateway whose trials take their nominal time."""
    return stored_alone(metric, gateway, **{"connections": N, "clock": gateway.clock, **asked})


def doubts(result: Result) -> dict[str, str]:
    return {doubt.word: doubt.text for doubt in result.doubts}


@pytest.mark.parametrize(
    ("metric", "device", "asked"),
    [
        # 1 % of error would take 39 s.
        *(("connection-rate", {"establishes": 30_000}, {"most_seconds": seconds}) for seconds in (9.0, 13.0, 20.0)),
        ("throughput", {"forwards": 300_000}, {"connection_rate": 1e5, "most_seconds": 20}),
        # A metric with a search of its own.
        ("table-capacity", {"table_size": 30_000}, {"most_seconds": 26.0}),
        # A load that passed and none that failed.
        ("connection-rate", {"establishes": 5_000_000}, {"most_seconds": 2.2}),
    ],
)
def test_a_search_ends_with_the_bounds_it_has(
    metric: str, device: dict[str, Any], asked: dict[str, Any], golden: Golden
) -> None:
    gateway, (truth,) = Gateway(**device), device.values()
    found = simulated_lab.measure(metric, gateway, connections=N, **asked)
    (one,) = found.result.repetitions
    assert gateway.clock() <= asked["most_seconds"]
    assert 0 < one.value <= truth
    assert (one.upper is None) == (truth == 5_000_000)
    assert one.upper is None or one.upper > truth
    assert (one.limited_by, found.limited_by) == ("time", "time")
    assert sum(one.trials.values()) == len(gateway.plans)
    golden(doubts(found.result)["undecided"])
    answer, *others = found.said.splitlines()
    golden([answer, *(line for line in others if "Bottleneck" in line)])


#: Rates that nothing passed: what is measured, and what the error advises.
NOTHING: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    # Seen: 0 connections/s for 10 million of them, whose first trial took the minute of a quick measurement.
    "no time to pass": ("connection-rate", {"establishes": 30_000, "forwards": 3_000}, {"most_seconds": 4}, TIME_HELPS),
    "no time to pass with frames": (
        "throughput",
        {"establishes": 30_000, "forwards": 3_000},
        {"connection_rate": 1e5, "most_seconds": 8},
        TIME_HELPS,
    ),
    # Seen: a gateway lost 0 to 3 of 50,000 frames at any rate, and the error named only the next trial's length, or
    # advised more time. Nor does that help with the connection rate that a throughput needs first.
    "rare loss": ("connection-rate", {"rare_loss": 1.0}, {"most_seconds": 6}, LOSS_HELPS),
    "rare loss of frames": ("throughput", {"rare_loss": 1.0}, {"most_seconds": 6}, LOSS_HELPS),
    "overload": ("throughput", {"establishes": 30_000}, {"most_seconds": 4}, TIME_HELPS),
    # It comes from above, with trials that grow longer: the first that is long enough to pass is among the last.
    "MLRsearch": (
        "throughput",
        {"forwards": 300_000},
        {"search": "mlrsearch", "connection_rate": 1e5, "most_seconds": 20},
        TIME_HELPS,
    ),
    "a short trial that passed is no bound": (
        "throughput",
        {"forwards": 5e6},
        {"connection_rate": 1e5, "most_seconds": 8},
        TIME_HELPS,
    ),
    "nothing was found out": (
        "throughput",
        {"disturbed": 1.0},
        {"connection_rate": 1e5, "trial_seconds": 50, "most_seconds": 60},
        TIME_HELPS,
    ),
    "what is needed first": ("latency", {"establishes": 30_000}, {"most_seconds": 6}, TIME_HELPS),
    "what is needed next": ("latency", {"establishes": 300_000, "forwards": 100_000}, {"most_seconds": 15}, TIME_HELPS),
}


@pytest.mark.parametrize("why", NOTHING)
def test_nobody_is_told_a_rate_where_nothing_had_the_time_to_pass(why: str, golden: Golden) -> None:
    metric, device, asked, advice = NOTHING[why]
    gateway = Gateway(**device)
    with golden.raises(BrokenError) as ended:
        measure(metric, gateway, **asked)
    assert gateway.clock() <= asked["most_seconds"]
    for each in (TIME_HELPS, LOSS_HELPS):
        assert (each in str(ended.value)) == (each == advice)


def test_bounds_that_are_near_enough_stand_though_they_were_not_confirmed(golden: Golden) -> None:
    gateway = Gateway(establishes=250_000)
    measure("connection-rate", gateway, confirm=False)
    result = measure("connection-rate", Gateway(establishes=250_000), most_seconds=gateway.clock() + 0.1)
    assert result.limited_by == "device"
    assert result.median == pytest.approx(250_000, rel=0.011)
    golden(doubts(result)["time used up"])


def test_a_repetition_that_was_cut_off_does_not_move_the_median(golden: Golden) -> None:
    whole, seen = Gateway(establishes=250_000), Gateway(establishes=250_000)
    measure("connection-rate", whole)
    result = measure("connection-rate", seen, repeat=5, most_seconds=whole.clock() * 1.2)
    assert (len(result.repetitions), result.limited_by) == (1, "device")
    golden(doubts(result)["time used up"])


@pytest.mark.parametrize(
    ("metric", "device", "asked", "points"),
    [
        ("latency", {}, {"connection_rate": 1e6, "throughput_rate": 1e5, "most_seconds": 6}, [100, 90]),
        (
            "frame-loss",
            {"forwards": 100_000},
            {"connection_rate": 1e6, "full_rate": 1e6, "most_seconds": 10},
            [100, 90, 80, 70],
        ),
    ],
)
def test_points_of_a_series_that_were_left_out_are_named(
    metric: str, device: dict[str, Any], asked: dict[str, Any], points: list[int], golden: Golden
) -> None:
    result = measure(metric, Gateway(**device), **asked)
    column = "load_percent" if metric == "latency" else "offered_percent"
    assert [row[column] for row in result.repetitions[0].series] == points
    golden(doubts(result)["time used up"])


@pytest.mark.parametrize("metric", sorted({*metrics_with("profile")} - NEEDY))
@pytest.mark.parametrize("disturbed", [0.0, 0.8, 1.0])
def test_quick_is_over_in_a_minute_whatever_the_device(metric: str, disturbed: float) -> None:
    """Of this slow device latency took 1,383 s, 5,110 s with 80 % of its trials INVALID, 17,842 s with all of them."""
    gateway = Gateway(establishes=2_000, forwards=3_000, disturbed=disturbed)
    with suppress(BrokenError):
        measure(metric, gateway, profile="quick")
    assert gateway.plans
    assert gateway.clock() <= 60


def test_the_likely_time_is_said_at_the_start_and_not_the_longest(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    gateway = ["--gateway", str(simulated_lab.NAT44), "--lab", "simulated", "--results", str(tmp_path)]
    with simulated_lab.simulated() as simulation:
        simulation.start = lambda _lab: Gateway(establishes=250_000)
        chosen = [
            "--repeat",
            "1",
            "--seed",
            "1",
            "--placement",
            "isolated",
            "--connections",
            str(N),
            "--most-seconds",
            "60",
        ]
        lines = ran(["measure", "connection-rate", *gateway, *chosen]).err.splitlines()
    golden([line for line in lines if line.startswith("connection-rate")])


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ({}, 600),
        ({"profile": "quick"}, 60),
        ({"profile": "standard"}, 1800),
        ({"profile": "rfc"}, None),
        ({"most_seconds": 0}, None),
        ({"most_seconds": 5.0, "trial_seconds": 60.0}, 5),
        # Thirty times as long, and twice as often.
        ({"trial_seconds": 60.0}, 600 * 30),
        ({"trial_seconds": 60.0, "repeat": "6"}, 600 * 60),
        ({"profile": "quick", "repeat": 4}, 240),
        ({"profile": "rfc", "repeat": 100}, None),
    ],
)
def test_a_profile_gives_the_time_and_more_of_it_for_more_work(asked: dict[str, Any], seconds: float | None) -> None:
    assert settings_for("throughput", connections=N, **asked).most_seconds == seconds


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"^most seconds: "):
        settings_for("throughput", most_seconds=seconds)


def test_a_trial_that_outlasts_the_time_out_ends_the_search_with_what_is_known(golden: Golden) -> None:
    """The first one is refused; a later one leaves the bounds that hours may have been spent on."""
    with pytest.raises(UsageError, match="too short"):
        alone("connection-rate", Forgetful(establishes=2e5, forgets_after=1.0), connections=N)
    with golden.raises(BrokenError):
        alone("connection-rate", Forgetful(establishes=1e3, forgets_after=10.0), connections=N)
