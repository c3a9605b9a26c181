# SPDX-License-Identifier: Apache-2.0
"""The table's capacity (RFC 9693 section 4.9) against simulated tables of known size and every policy when full."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import simulated_lab
from tests.unit.counted import change_trial
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import Logging

from natgauge.cli import run
from natgauge.errors import BrokenError, UsageError

N = 1_000_000


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    """Of a gateway whose limit natgauge reads only where the gateway knows it."""
    truth = Gateway() if truth is None else truth
    gateway = simulated_lab.LIMITED if truth.knows_limit and truth.table_size < 2**31 else simulated_lab.NAT44
    return simulated_lab.measure("table-capacity", truth, gateway=gateway, **{"connections": N, **others}).result


@given(
    st.integers(20_000, N - 1), st.sampled_from(["refuse", "evict"]), st.sampled_from(["quick", "full"]), st.booleans()
)
@settings(max_examples=4)
def test_the_size_is_found_exactly_whatever_a_full_table_does(
    size: int,
    when_full: Any,
    method: str,
    knows: bool,  # noqa: FBT001 - drawn
) -> None:
    gateway = Gateway(establishes=3e5, forwards=1e6, table_size=size, when_full=when_full, knows_limit=knows)
    one = measure(gateway, method=method).repetitions[0]
    assert (one.value, one.upper) == (size, size + 1)


@pytest.mark.parametrize("size", [65_536, 1_048_576])
def test_the_limits_that_linux_is_set_to(size: int) -> None:
    gateway = Gateway(establishes=3e5, forwards=1e6, table_size=size, when_full="evict")
    result = measure(gateway, connections=2_500_000)
    assert (result.median, result.limited_by) == (size, "table")


def test_trials_of_the_search_say_what_they_show_of_the_number_and_no_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["measure", "table-capacity", "--gateway", str(simulated_lab.LIMITED), "--lab", "simulated"]
    with simulated_lab.simulated() as simulation:
        simulation.start = lambda _lab: Gateway(table_size=100_000)
        assert run([*asked, "--connections", str(N), "--repeat", "1", "--results", str(tmp_path)]) == 0
    shown = capsys.readouterr().err
    assert set(re.findall(r"trial \d+: ([a-z ]+?)  ", shown)) == {"ok", "too many"}
    assert not re.search("PASS|FAIL", shown)


def test_a_log_that_lacks_connections_ends_it_by_its_own_name(golden: Golden) -> None:
    """Seen: "of 125000 connections 125000 were kept when opened at 1 M/s, and fewer the faster"."""
    (one,) = alone("table-capacity", Logging(lasting=0, burst=77_777), connections=N).measurements
    assert (one.value, one.upper, one.limited_by) == (77_777, 77_778, "log")
    unsafe = [str(row["why"]) for row in one.series if row["decided"] == "unsafe"]
    assert unsafe
    assert all(why.startswith("the log has 77,777 records for ") for why in unsafe)
    with golden.raises(BrokenError):
        alone("table-capacity", Logging(lasting=0, burst=0))


def test_the_published_steps_on_iptables() -> None:
    """Limit 2^22, C0 1 M, E 1: 4 M was safe, 8 M unsafe, and the answer was the limit but for a few entries."""
    gateway = Gateway(establishes=2.56e6, forwards=1e7, table_size=2**22, when_full="evict", ceiling=4e6)
    result = measure(
        gateway, connections=8_000_000, safe_connections=1_000_000, alpha=1.0, beta=0.2, gamma=0.4, method="full"
    )
    assert result.median == 2**22
    assert result.figures["exponential_safe"].median == 4_000_000
    assert result.figures["exponential_unsafe"].median == 8_000_000
    assert result.figures["first_rate"].median == pytest.approx(2.56e6, rel=0.1)


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("when_full", ["refuse", "evict"])
def test_what_a_full_table_kept_is_tried_first(when_full: Any, *, knows: bool) -> None:
    gateway = Gateway(table_size=77_777, when_full=when_full, knows_limit=knows)
    one = measure(gateway).repetitions[0]
    assert (one.value, one.upper) == (77_777, 77_778)
    # Every step is told.
    steps = [(row["stage"], row["connections"]) for row in one.series]
    assert steps[0][0] == "C0"
    doubled = [connections for stage, connections in steps if stage == "exponential"]
    assert doubled == [31_250, 62_500, 125_000]
    assert steps[-2:] == [("binary", 77_777), ("binary", 77_778)]
    assert {row["decided"] for row in one.series} == {"safe", "unsafe"}


def tracks(gateway: Gateway, plan: Any) -> None:
    """Be a table of TCP connections that evicts half-open ones, and refuses new ones if all are established."""
    gateway.when_full = "evict" if plan.half_open else "refuse"
    beyond = max(plan.connections - gateway.table_size, 0)
    gateway.refused = {"early_drop" if plan.half_open else "drop": beyond}


@pytest.mark.parametrize(
    ("state", "refused", "removed", "counted"),
    [("established", 59_464, 0, "drop"), ("half-open", 0, 59_464, "early_drop")],
)
def test_the_device_says_whether_it_refuses_new_connections_or_removes_those_that_it_has(
    state: Any, refused: int, removed: int, counted: str
) -> None:
    gateway = Gateway(table_size=65_536, becomes=tracks)
    result = measure(gateway, state=state, transport="tcp")
    one = result.repetitions[0]
    assert (one.value, one.upper, result.limited_by) == (65_536, 65_537, "table")
    assert {plan.half_open for plan in gateway.plans} == {state == "half-open"}
    (note,) = [note for note in result.notes if note.word == "device"]
    done = "were refused" if refused else "working ones were thrown out"
    full = "of 125,000 connections offered to a table that holds 65,536, 59,464"
    assert note.text == f"{full} {done} (the device counted 59,464 x {counted})"
    assert note.value == removed


@pytest.mark.parametrize("choices", [{}, {"transport": "tcp", "frame_size": 128}])
def test_half_open_connections_are_of_tcp_and_choose_their_frame_sizes(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        measure(state="half-open", **choices)


def counts_too_few(_number: int, trial: Any) -> Any:
    """Miss some of a full table's entries, so that what it is said to keep is too little."""
    missed = 40 * (trial.plan.connections > 77_777)
    return change_trial(trial, count_after=trial.readings.count_after - missed)


def test_a_guess_that_is_wrong_costs_trials_not_the_answer() -> None:
    one = measure(Gateway(table_size=77_777, when_full="evict", alters=counts_too_few)).repetitions[0]
    assert (one.value, one.upper) == (77_777, 77_778)


def test_a_wider_error_ends_earlier_and_is_kept() -> None:
    gateway = Gateway(table_size=100_000)
    one = measure(gateway, capacity_error=1000).repetitions[0]
    assert one.upper is not None
    assert one.value <= 100_000 < one.upper
    assert one.upper - one.value <= 1000


def test_connections_that_all_fit_are_no_capacity() -> None:
    result = measure(Gateway(table_size=2 * N))
    assert (result.median, result.limited_by) == (N, "ranges")
    assert result.repetitions[0].upper is None
    assert any("give more --connections" in note.text for note in result.notes)


def slowing(share: float = 0.05, **truth: Any) -> Gateway:
    """Keep every connection, but get slow beyond 200,000 of them: hash chains, or memory."""

    def becomes(gateway: Gateway, plan: Any) -> None:
        gateway.establishes = 3e5 * (share if plan.connections > 200_000 else 1.0)

    return Gateway(forwards=1e7, becomes=becomes, **truth)


@pytest.mark.parametrize(("method", "knows"), [("quick", False), ("full", True)])
def test_a_device_that_keeps_all_but_slows_down_is_at_its_limit_too_and_told_from_a_full_table(
    method: str, golden: Golden, *, knows: bool
) -> None:
    result = measure(slowing(knows_limit=knows), method=method, most_seconds=86_400)
    assert (result.median, result.limited_by) == (200_000, "device")
    unsafe = [str(row["why"]) for row in result.repetitions[0].series if row["decided"] == "unsafe"]
    assert unsafe
    golden(unsafe)


def test_a_tolerable_slowing_down_is_none() -> None:
    assert measure(slowing(0.8)).median == N


def dying(gateway: Gateway, plan: Any) -> None:
    """Die of more than 300,000 connections."""
    gateway.collapses_above = 0.0 if plan.connections > 300_000 else float("inf")


def test_a_device_that_dies_is_restarted_and_the_search_goes_on() -> None:
    found = simulated_lab.measure("table-capacity", Gateway(becomes=dying), connections=N)
    assert found.median == 300_000
    # The last collapse may be the last trial.
    assert found.commands.count("start") - 1 >= found.document["trials"]["COLLAPSED"] > 3
    assert "collapsed" in {row["decided"] for row in found.repetitions[0]["series"]}


def test_a_c0_that_does_not_fit_is_told(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(Gateway(table_size=100_000), safe_connections=500_000)


def test_a_c0_that_nobody_chose_becomes_smaller_until_it_fits() -> None:
    found = simulated_lab.measure("table-capacity", Gateway(table_size=256), connections=N)
    assert found.median == 256
    assert found.document["figures"]["first_connections"]["median"] == 128
    assert found.notes("C0 is 128")


def test_disturbed_trials_decide_nothing(golden: Golden) -> None:
    gateway = Gateway(table_size=100_000, disturbed=0.3, seed=5)
    result = measure(gateway, invalid_repeats=50)
    assert result.median == 100_000
    assert result.trials["INVALID"] > 0
    with golden.raises(BrokenError):
        measure(Gateway(disturbed=1.0), invalid_repeats=2)


@pytest.mark.parametrize("seed", range(2))
def test_a_frame_lost_now_and_then_is_not_taken_for_a_full_table(seed: int) -> None:
    assert measure(Gateway(table_size=100_000, rare_loss=0.15, seed=seed)).median == 100_000


def spoils(gateway: Gateway, plan: Any) -> None:
    """Keep everything, and spoil a frame of every larger validation."""
    gateway.rare_loss = float(plan.connections > 50_000)


def test_what_the_devices_own_count_has_and_validation_never_finds_is_told(golden: Golden) -> None:
    result = measure(Gateway(becomes=spoils))
    assert result.median == 50_000
    assert result.limited_by == "device"
    golden(result.notes)


@pytest.mark.parametrize(
    ("share", "size", "connections"), [(0.01, 20_000, 50_000), (0.1, 20_000, 50_000), (0.01, 5_094, 6_539)]
)
def test_a_share_that_is_lost_at_every_rate_is_not_taken_for_a_small_table(
    share: float, size: int, connections: int
) -> None:
    """A gateway of 20,000 connections kept "99 connections: ± 1.1 %", and its table was full."""
    result = measure(Gateway(table_size=size, loses_share=share), connections=connections, repeat=1)
    assert result.limited_by == "device"
    assert ("rare loss", "answer") in {(doubt.word, doubt.grade) for doubt in result.doubts}


def test_a_slow_way_back_is_not_taken_for_a_full_table(golden: Golden) -> None:
    gateway = Gateway(establishes=5e5, forwards=1e7, forwards_down=1e5, table_size=100_000)
    result = measure(gateway)
    assert result.median == 100_000
    golden(result.notes)


@given(
    limit=st.sampled_from([3_000, 6_543, 10_000, 15_321]),
    ring=st.sampled_from([512, 2_048, 16_384, 100_000]),
    establishes=st.floats(3e4, 1e6),
    when_full=st.sampled_from(["refuse", "evict"]),
    method=st.sampled_from(["quick", "full"]),
)
@settings(max_examples=4)
def test_a_deep_queue_before_a_device_of_unknown_limit_is_not_taken_for_its_table(
    limit: int, ring: int, establishes: float, when_full: Any, method: str
) -> None:
    """Seen: 2,495 published, limited by the device, for 10,000 behind rings of 2,048 frames (VPP)."""
    gateway = Gateway(
        establishes=establishes,
        forwards=1.5e6,
        table_size=limit,
        when_full=when_full,
        queue=ring,
        knows_limit=False,
        ceiling=2.4e6,
    )
    result = measure(gateway, connections=20_000, method=method)
    assert result.median == pytest.approx(limit, abs=2)
    assert result.limited_by == "table"


def test_steps_tell_the_rate_that_is_the_devices_and_what_told_the_table_from_the_rate(golden: Golden) -> None:
    gateway = Gateway(
        establishes=110_000, forwards=1.5e6, table_size=10_000, queue=2_048, knows_limit=False, ceiling=2.4e6
    )
    (rows,) = (one.series for one in measure(gateway, connections=20_000).repetitions)
    found = [row for row in rows if row["decided"] == "safe"]
    assert all(isinstance(row["rate_at_least"], float) and 0 < row["rate_at_least"] <= 110_000 for row in found)
    searched = [row["rate"] for row in rows if row["stage"] in {"C0", "rate", "rate of the last safe"}]
    # What passed because a queue took it up was searched again, until it was the device's own.
    assert max(float(rate or 0) for rate in searched) > 110_000 > float(searched[-1] or 0) * 0.8
    unsafe = [str(row["why"]) for row in rows if row["decided"] == "unsafe"]
    assert unsafe
    golden(unsafe[0])
    golden(unsafe[1:])
    assert rows[-1]["connections"] == 10_001


@pytest.mark.parametrize(("limit", "establishes"), [(6_543, 2e5), (10_000, 1e5), (25_000, 46_000)])
def test_a_deep_queue_before_a_slow_device_takes_no_more_than_the_time_there_is(limit: int, establishes: float) -> None:
    """Seen: "undecided: above 14,992" for 25,000, as a table that was proved full was to be proved full for 72 s."""
    gateway = Gateway(
        establishes=establishes, forwards=1.5e6, table_size=limit, queue=16_384, knows_limit=False, ceiling=1e6
    )
    result = measure(gateway, connections=60_000, profile="quick")
    assert (result.median, result.limited_by) == (limit, "table")
    assert gateway.clock() < 30


def test_a_tester_too_slow_for_short_trials_still_finds_the_capacity() -> None:
    """Seen: an error after 18 s, as trials of 2 ms were too much for the tester."""
    gateway = Gateway(
        establishes=2e5,
        forwards=1.5e6,
        table_size=6_543,
        queue=16_384,
        knows_limit=False,
        ceiling=2.4e6,
        real_ceiling=30_000,
    )
    assert measure(gateway, connections=20_000).median == 6_543


def host_breaks(gateway: Gateway, plan: Any) -> None:
    """Disturb each trial beyond a number of connections."""
    gateway.disturbed = float(plan.connections > 50_000)


@pytest.mark.parametrize(
    ("size", "lower", "upper", "known"),
    [(60_000, 31_250, 62_500, "between 31250 and 62500"), (N, 31_250, None, "31250 or more")],
)
def test_what_no_trial_decides_is_an_interval(
    size: int, lower: int, upper: int | None, known: str, golden: Golden
) -> None:
    truth = Gateway(table_size=size, becomes=host_breaks)
    gateway = simulated_lab.LIMITED if size < N else simulated_lab.NAT44
    found = simulated_lab.measure("table-capacity", truth, gateway=gateway, connections=N, invalid_repeats=2)
    one = found.result.repetitions[0]
    doubts = {doubt["word"]: doubt["text"] for doubt in found.document["doubts"]}
    assert known in doubts["undecided"]
    assert (one.value, one.upper, one.limited_by) == (lower, upper, "host")
    golden(one.notes)
    assert one.series[-1]["decided"] == "undecided"


def worse_the_faster(gateway: Gateway, plan: Any) -> None:
    """Lose a share that falls with the rate, but never ends, beyond a number of connections."""
    over = plan.connections > 50_000
    gateway.establishes = plan.phase1_rate * (1 - plan.phase1_rate / 1e6) if over else 3e5


@pytest.mark.parametrize("method", ["quick", "full"])
def test_a_loss_that_falls_with_the_rate_but_never_ends_is_undecided(method: str, golden: Golden) -> None:
    gateway = Gateway(forwards=1e7, knows_limit=False, ceiling=8e5, becomes=worse_the_faster)
    one = measure(gateway, method=method, most_seconds=86_400).repetitions[0]
    assert (one.value, one.upper) == (31_250, None)
    golden(one.notes)
