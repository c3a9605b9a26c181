# SPDX-License-Identifier: Apache-2.0
"""Every measurement has an end: no trial begins that does not fit, and what is known by then is told as what it is."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

from natgauge.causes.cause import Cause
from natgauge.cli.progress import ProgressDisplay
from natgauge.errors import BrokenError, UsageError
from natgauge.measurements.making import make
from natgauge.measurer import Ability, OutlastingError
from natgauge.procedures import connection_rate, get, procedures
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.result.results import Attempt, MeasurementResult
from natgauge.procedures.kit.time_budget import (
    TIME,
    TimeBudget,
    TimeUpError,
    nominal_seconds,
    nothing_passed,
)
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports.text import verdict
from natgauge.trials import Direction, Phase2Plan, RateStep
from natgauge.words import Verdict

N = 100_000
#: Options that are advised.
TIME_HELPS, LOSS_HELPS = "--most-seconds", "--loss-tolerance"
DECIDED: dict[str, Any] = {"connections": N, "placement": "isolated", "order": "permutation", "four_tuples": N}


def measure(metric: str, gateway: Gateway, observe: Callable[[Event], None] | None = None, **asked: Any) -> Any:
    """Measure a simulated gateway whose trials take their nominal time."""
    procedure = get(metric)
    settings = settings_of(procedure, asked, **DECIDED)
    return procedure.measure(gateway, settings, observe or (lambda _event: None), clock=gateway.clock)


def doubts(result: MeasurementResult) -> dict[str, str]:
    return {doubt.word: doubt.text for doubt in made(result).doubts}


def made(result: MeasurementResult) -> Result:
    return make(result, Parameters())


@pytest.mark.parametrize(
    ("metric", "device", "asked"),
    [
        # 1 % of error would take 39 s.
        *(("connection-rate", {"establishes": 30_000}, {"most_seconds": seconds}) for seconds in (9.0, 12.0, 20.0)),
        ("throughput", {"forwards": 300_000}, {"connection_rate": 1e5, "most_seconds": 20}),
        # A metric with a search of its own.
        ("table-capacity", {"table_size": 30_000}, {"most_seconds": 2.0}),
        # A load that passed and none that failed.
        ("connection-rate", {"establishes": 5_000_000}, {"most_seconds": 2.2}),
    ],
)
def test_a_search_ends_with_the_bounds_it_has(
    metric: str, device: dict[str, Any], asked: dict[str, Any], golden: Golden
) -> None:
    gateway, (truth,) = Gateway(**device), device.values()
    result = measure(metric, gateway, repeat=1, **asked)
    (one,) = result.measurements
    assert gateway.clock() <= asked["most_seconds"]
    assert 0 < one.value <= truth
    assert (one.upper is None) == (truth == 5_000_000)
    assert one.upper is None or one.upper > truth
    assert (one.limited_by, result.limited_by) == (TIME, TIME)
    assert sum(one.trials.values()) == len(gateway.plans)
    golden(doubts(result)["undecided"])
    golden(verdict(made(result)))


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
        measure(metric, gateway, repeat=1, **asked)
    assert gateway.clock() <= asked["most_seconds"]
    for each in (TIME_HELPS, LOSS_HELPS):
        assert (each in str(ended.value)) == (each == advice)


def attempts(*trials: tuple[float, int]) -> list[Attempt]:
    """Trials of 20,000 frames: load, and lost frames; without one they passed."""
    made = []
    for load, lost in trials:
        counts = make_counts(intended=20_000, offered=20_000, received=20_000 - lost)
        verdict = Verdict.FAIL if lost else Verdict.PASS
        made.append(Attempt(load, short=False, outcome=make_outcome(verdict, "", counts)))
    return made


def test_rare_loss_is_named_where_a_much_faster_trial_was_overloaded_and_one_passed_by_chance(golden: Golden) -> None:
    """Seen with a loss of 1 in 100,000 and a trial beyond the device's rate: the advice was more time."""
    seen = attempts((11_153, 2), (10_595, 1), (89_227, 4_758), (31_547, 1), (53_055, 2), (6_566, 1), (18_664, 0))
    error = str(nothing_passed(6_566, "transactions/s", seen, TimeUpError("8.2 s of 40 s are left")))
    golden(error)


@pytest.mark.parametrize(
    "trials",
    [
        [(40_000, 10_000), (35_000, 2_857), (30_500, 10), (30_100, 1)],
        [(40_000, 1), (35_000, 1), (30_500, 1)],
        [(80_000, 1), (40_000, 1)],
        [(80_000, 1), (40_000, 1), (35_000, 1), (20_000, 400)],
    ],
)
def test_an_overload_or_too_few_trials_are_no_rare_loss(trials: list[tuple[float, int]]) -> None:
    error = str(nothing_passed(trials[-1][0], "", attempts(*trials), TimeUpError("the time is used up")))
    assert "loss-tolerance" not in error


def test_bounds_that_are_near_enough_stand_though_they_were_not_confirmed(golden: Golden) -> None:
    gateway = Gateway(establishes=250_000)
    measure("connection-rate", gateway, repeat=1, confirm=False)
    result = measure("connection-rate", Gateway(establishes=250_000), repeat=1, most_seconds=gateway.clock() + 0.1)
    assert result.limited_by == "device"
    assert result.summary.median == pytest.approx(250_000, rel=0.011)
    golden(doubts(result)["time used up"])


def test_a_repetition_that_was_cut_off_does_not_move_the_median(golden: Golden) -> None:
    whole, seen = Gateway(establishes=250_000), Gateway(establishes=250_000)
    measure("connection-rate", whole, repeat=1)
    result = measure("connection-rate", seen, repeat=5, most_seconds=whole.clock() * 1.2)
    assert (len(result.measurements), result.limited_by) == (1, "device")
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
    result = measure(metric, Gateway(**device), repeat=1, **asked)
    column = "load_percent" if metric == "latency" else "offered_percent"
    assert [row[column] for row in result.measurements[0].series] == points
    golden(doubts(result)["time used up"])


@pytest.mark.parametrize("metric", sorted(procedures()))
@pytest.mark.parametrize("disturbed", [0.0, 0.8, 1.0])
def test_quick_is_over_in_a_minute_whatever_the_device(metric: str, disturbed: float) -> None:
    """Of this slow device latency took 1,383 s, 5,110 s with 80 % of its trials INVALID, 17,842 s with all of them."""
    gateway = Gateway(establishes=2_000, forwards=3_000, disturbed=disturbed, abilities=frozenset(Ability))
    if get(metric).settings(connections=N, placement="isolated").needs():
        return
    with suppress(BrokenError):
        measure(metric, gateway, profile="quick")
    assert gateway.plans
    assert gateway.clock() <= 60


def test_the_likely_time_is_said_at_the_start_and_not_the_longest(golden: Golden) -> None:
    text = io.StringIO()
    with ProgressDisplay(Console(file=text, width=200), likely="4 to 10 s") as display:
        measure("connection-rate", Gateway(establishes=250_000), display.event, most_seconds=60, repeat=1)
    golden(text.getvalue())


def test_without_a_terminal_work_without_trials_says_now_and_then_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, console = [100.0], Console(width=60)
    monkeypatch.setattr("natgauge.cli.progress.time.monotonic", lambda: clock[0])
    with console.capture() as shown, ProgressDisplay(console, stage_seconds=60.0) as display:
        for part in range(130):
            display.stage(f"part {part}")
            clock[0] += 1.0
    assert shown.get().splitlines() == ["part 60", "part 120"]


@pytest.mark.parametrize("verbose", [False, True])
def test_an_interim_result_is_on_the_live_line_unless_every_trial_is_a_line(*, verbose: bool) -> None:
    console = Console(force_terminal=True, width=60)
    with console.capture() as shown, ProgressDisplay(console, verbose=verbose) as display:
        display.interim("an interim result\nof two lines")
        display.stage("the next part")
    # Of the live line the last state alone is drawn at the end.
    assert ("an interim result\n" in shown.get()) == verbose


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
    assert settings_of(get("throughput"), asked, **DECIDED).most_seconds == seconds


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match=r"^most seconds: "):
        settings_of(get("throughput"), {"most_seconds": seconds}, **DECIDED)


def test_a_trial_begins_only_where_it_fits(golden: Golden) -> None:
    now = [0.0]
    budget = TimeBudget(10.0, clock=lambda: now[0])
    plan = PlanOfTrial(connections=10, phase1_rate=1.0)
    budget.allow(plan)
    now[0] = 1.0
    with golden.raises(TimeUpError):
        budget.allow(plan)
    now[0] = 11.0
    with golden.raises(TimeUpError):
        budget.allow(PlanOfTrial(connections=1, phase1_rate=1e6))
    assert budget.left == 0
    assert TimeBudget(None).left is None


def test_the_time_of_a_trial_is_that_of_both_phases_and_of_a_step() -> None:
    phase2 = Phase2Plan(1.0, 0.0, 3.0, step=RateStep(0.5, 4.0))
    assert nominal_seconds(PlanOfTrial(10, 5.0, phase2)) == 2 + 3 + 4
    assert nominal_seconds(PlanOfTrial(10, 5.0, phase2, stateless=True)) == 7


@dataclass(slots=True)
class _Forgetful(Gateway):
    """Forgets connections after a while, so that slow trials are not run."""

    forgets_after: float = 1.0

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        """Refuse what takes too long."""
        if plan.connections / plan.phase1_rate >= self.forgets_after:
            raise OutlastingError("UDP timeout: too short")
        return Gateway.measure(self, plan)


def test_a_trial_that_outlasts_the_time_out_ends_the_search_with_what_is_known(golden: Golden) -> None:
    """The first one is refused; a later one leaves the bounds that hours may have been spent on."""

    def measure(gateway: Gateway, connections: int) -> MeasurementResult:
        settings = connection_rate.ConnectionRateSettings(connections=connections, placement="isolated", repeat=1)
        return connection_rate.PROCEDURE.measure(gateway, settings)

    with pytest.raises(OutlastingError, match="too short"):
        measure(_Forgetful(establishes=2e5, forgets_after=1.0), 100_000)
    with golden.raises(BrokenError):
        measure(_Forgetful(establishes=1e3, forgets_after=10.0), 100_000)


def failed(load: float, **outcome: Any) -> Attempt:
    return Attempt(load, short=False, outcome=make_outcome("FAIL", "lost", **outcome))


def ended(*every: Attempt, unit: str = "frames/s") -> TimeUpError:
    """The error after these attempts, of which the first was at the lowest load."""
    return nothing_passed(every[0].load, unit, list(every), TimeUpError("end"))


def test_frames_to_connections_that_were_not_opened_are_lost_frames_of_all_that_were_due(golden: Golden) -> None:
    """60,000 of 40,000 frames were said to be lost."""
    down = {Direction.RESPONDER: make_counts(100_000, 40_000, 40_000, unopened=60_000)}
    golden(str(ended(failed(1000.0, phase2=down))))
    few = {Direction.RESPONDER: make_counts(1000, 999, 999, unopened=1)}
    assert "rare loss" in str(ended(*(failed(load, phase2=few) for load in (1.0, 2.0, 4.0))))


def test_the_error_says_what_changes_a_rare_loss_of_a_known_cause(golden: Golden) -> None:
    counts = make_counts(20_000, 20_000, 19_999)
    cause = Cause("checksum", "seen", hop="out", remedy="--zero-checksum accept", frames=1, lost=1)
    golden(str(ended(*(failed(load, phase1=counts, cause=cause) for load in (1000.0, 2000.0, 4000.0)))))


def test_more_time_is_not_advised_where_the_slowest_trial_failed_for_a_cause_that_no_rate_changes(
    golden: Golden,
) -> None:
    """Seen of Open vSwitch: it found no free port for 1 % of 200,000 connections, and fast trials overloaded it."""
    ports = Cause("port pool", "seen", hop="gateway", remedy="more outside ports", frames=200, lost=200)
    process = Cause("process", "seen", hop="gateway", remedy="a lower rate", frames=9_000, lost=9_000)
    slow = failed(1000.0, phase1=make_counts(20_000, 20_000, 19_800), cause=ports)
    fast = failed(9000.0, phase1=make_counts(20_000, 20_000, 11_000), cause=process)
    error = ended(slow, fast, unit="connections/s")
    golden(str(error))
    assert not error.remedy
    assert ports.remedy in str(error)
    # An overload has another answer at a lower rate.
    assert TIME_HELPS in ended(fast, unit="connections/s").remedy
