# SPDX-License-Identifier: Apache-2.0
"""Tear-down (RFC 9693 section 4.8) and expiry against simulated gateways of known truth."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

import natgauge
from natgauge.analysis.contrast import is_searched
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.recipe import load
from natgauge.measurer import TearDown
from natgauge.procedures import tear_down_rate
from natgauge.procedures.tear_down_rate import tear_down
from natgauge.reports import answers
from natgauge.reports.doubtful import bottleneck
from natgauge.reports.rows import rows
from natgauge.reports.text import verdict
from natgauge.words import TcpState

N = 400_000


def emptying(*command_seconds: float, tears_down: float = 2e6, **truth: Any) -> Gateway:
    """Empties its table at a known rate in connections/s; the command itself costs these times, one after the other.

    Timed are the emptying of a full table and the next one, of an empty table.
    """
    costs = itertools.cycle(command_seconds or (0.015,))
    full = [False]

    def empties(held: int) -> float:
        timed, full[0] = held or full[0], bool(held)
        return held / tears_down + (next(costs) if timed else 0.0)

    return Gateway(empties=empties, **truth)


def expiring(rate: float = 1e5, first: float = 10.0, **truth: Any) -> Gateway:
    """Its connections time out from `first` seconds on, so many a second."""
    return Gateway(expires=lambda seconds: max(0, min(N, round(N - (seconds - first) * rate))), **truth)


def measured(metric: str, truth: Gateway | None = None, /, **others: Any) -> Measured:
    return simulated_lab.measure(metric, truth, **{"connections": N, "connection_rate": 1e6, **others})


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("tear-down-rate", truth, **others).result


def expire(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("expiry", truth, **others).result


def test_the_cost_of_the_command_itself_is_subtracted() -> None:
    gateway = emptying(0.015)
    result = measure(gateway)
    assert result.median == pytest.approx(2e6)
    assert result.figures["empty_seconds"].median == pytest.approx(0.015)
    assert result.figures["full_seconds"].median == pytest.approx(0.215)
    assert len(gateway.plans) == 10
    assert not any(note.word == "unreliable" for note in result.notes)


def test_deletions_of_one_repetition_are_its_sample() -> None:
    """RFC 9693 section 4.8: the deletions are repeated, so one filling of ten deletions is no single repetition."""
    found = measured("tear-down-rate", emptying(0.015, 0.016, 0.017), sample=10)
    full, empty, difference = (found.document["figures"][f"{name}_seconds"] for name in ("full", "empty", "difference"))
    assert (full["count"], empty["count"], difference["count"]) == (10, 10, 1)
    assert full["minimum"] < full["median"] < full["maximum"]
    assert "single repetition" not in found.words()
    assert not found.notes("says nothing about spread")


def test_several_repetitions_share_one_summary_of_all_deletions() -> None:
    found = measure(emptying(), repeat=3, sample=2)
    assert found.figures["full_seconds"].count == 6
    assert found.figures["difference_seconds"].count == 3


def test_the_rate_comes_from_unrounded_medians() -> None:
    """The published row: 0.16 s and 0.01 s are printed, 2.5 M and 2.67 M would follow; 0.145 s it really was."""
    value, _, _ = tear_down(400_000, [0.158, 0.159, 0.158], [0.013, 0.013, 0.014])
    assert value == pytest.approx(2_758_621, abs=1)


def test_a_difference_within_the_spread_is_marked(golden: Golden) -> None:
    value, _, notes = tear_down(1000, [0.015, 0.018, 0.012], [0.013, 0.014, 0.012])
    assert value == pytest.approx(500_000)
    golden(str(notes[0]))


def test_the_range_of_a_rate_contains_the_scatter_of_empty_tables() -> None:
    """It was a rate without a range: all full tables had taken 20 ms."""
    _, figures, _ = tear_down(1000, [0.020, 0.020, 0.020], [0.001, 0.010, 0.010])
    assert (figures["rate_lowest"], figures["rate_highest"]) == pytest.approx((1000 / 0.019, 1000 / 0.010))


def test_a_full_table_that_empties_like_an_empty_one_has_a_least_rate(golden: Golden) -> None:
    value, figures, notes = tear_down(10, [0.01, 0.01], [0.01, 0.02])
    assert value == pytest.approx(10 / 0.01)
    assert figures["difference_seconds"] == pytest.approx(-0.005)
    golden(str(notes[0]))
    # Deletions of full and empty tables take turns: 10 ms and 20 ms.
    found = measured("tear-down-rate", emptying(0.010, 0.020, tears_down=math.inf), sample=10)
    assert found.median == pytest.approx(N / 0.010)
    assert found.bounds[1] is None
    assert found.limited_by == "host"


@pytest.mark.parametrize("way", ["fin", "rst"])
def test_segments_close_connections_as_fast_as_the_device_forwards_them(way: Any) -> None:
    gateway = Gateway(establishes=2e6, forwards=3e5)
    result = measure(gateway, tear_down_by=way, transport="tcp")
    assert result.median == pytest.approx(3e5, rel=0.011)
    assert result.limited_by == "device"
    assert result.figures["entries_left"].median == N
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert (plan.close, plan.request_octets, plan.phase2.responder_rate) == (way, None, 0.0)
        assert plan.phase2.initiator_rate * plan.phase2.seconds == pytest.approx(N)
        assert plan.phase1_rate == 5e5


def test_connections_that_the_device_still_calls_open_are_not_closed() -> None:
    result = measure(Gateway(establishes=2e6, left_open=1), tear_down_by="fin", transport="tcp", most_seconds=86_400)
    assert (result.median, result.limited_by) == (0, "device")


def test_closing_and_other_states_are_of_tcp(golden: Golden) -> None:
    for metric, settings in (("tear-down-rate", {"tear_down_by": "rst"}), ("expiry", {"state": "fin"})):
        with golden.raises(UsageError):
            natgauge.measure(metric, "nftables-nat44", transport="icmp", **settings)  # type: ignore[arg-type]


def test_each_state_has_a_time_out_of_its_own_or_none(golden: Golden) -> None:
    knobs = load("nftables-nat44").carrying("tcp").knobs
    files = {
        state: [path.rpartition("_timeout_")[2] for path in timeout.paths]
        for state in get_args(TcpState)
        if (timeout := knobs.in_state(state).udp_timeout) is not None
    }
    assert files == {
        "established": ["established", "unacknowledged", "max_retrans"],
        "half-open": ["syn_sent", "syn_recv"],
        "fin": ["time_wait"],
        "rst": ["close"],
    }
    with golden.raises(UsageError):
        natgauge.measure("expiry", "vpp-nat64", transport="tcp", udp_timeout=5, state="half-open")


def experiments_of(result: Any) -> list[str]:
    (row,) = [row for row in rows([result]) if row.label == "number of experiments"]
    return row.printed


def test_experiments_are_the_deletions_that_were_timed_and_a_search_is_one() -> None:
    """RFC 9693 section 6: searches for the rate of FINs were printed as 10 experiments each."""
    assert experiments_of(measure(emptying(), repeat=3, sample=2)) == ["6"]
    closing = measure(Gateway(establishes=2e6, forwards=3e5), tear_down_by="fin", transport="tcp", repeat=3)
    assert experiments_of(closing) == ["3"]
    assert "sample" not in closing.parameters.settings
    # The time ended before the other deletions.
    cut = made(
        [1e6],
        metric="tear-down-rate",
        unit="connections/s",
        figures={"full_seconds": [0.2, 0.3, 0.25, 0.2]},
        parameters={"sample": 10, "repeat": 1},
    )
    printed = {row.label: row.printed for row in rows([cut])}
    assert (printed["number of experiments"], printed["experiments planned"]) == (["4"], ["10"])


def test_a_command_that_is_timed_has_no_search_and_no_error_of_one() -> None:
    result = measure(emptying(0.015, 0.016, 0.017), sample=4)
    assert result.parameters.settings.keys().isdisjoint({"error", "loss_verifications", "confirm"})
    assert "no rate failed" not in verdict(result)
    assert not is_searched(result)
    # One that a tester ended is a search of which nothing failed.
    closing = measure(Gateway(forwards=1e9), tear_down_by="rst", transport="tcp")
    assert closing.limited_by == "tester"
    assert "; no rate failed" in verdict(closing)


def test_connections_that_stay_are_no_tear_down(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(emptying(keeps=3))


def test_connections_of_others_in_the_table_are_refused_with_what_to_do() -> None:
    with pytest.raises(BrokenError, match=r"held 7 connections .* instead of 5; end other traffic"):
        tear_down_rate._checked(TearDown(0.1, count_before=7, count_after=0), 5)


def test_a_phase_1_that_fails_is_repeated_more_slowly() -> None:
    gateway = emptying(establishes=3e5)
    result = measure(gateway, connection_rate=1e6, sample=2)
    assert result.trials["INVALID"] == 1
    assert result.median == pytest.approx(2e6)


def test_the_expiry_rate_is_the_slope_of_the_count() -> None:
    result = expire(expiring())
    assert result.median == pytest.approx(1e5, rel=0.001)
    assert result.figures["first_tenth_seconds"].median == pytest.approx(10.4, abs=0.01)
    assert result.figures["watched_seconds"].median == pytest.approx(14, abs=0.11)


@pytest.mark.parametrize(("rate", "bounds"), [(1e5, (94_000, 106_500)), (4e5, (350_000, 550_000))])
def test_the_rate_of_expiry_is_between_those_that_its_readings_allow(rate: float, bounds: tuple[float, float]) -> None:
    result = expire(expiring(rate))
    assert result.median == pytest.approx(rate, rel=0.01)
    least, most = (result.figures[f"rate_{end}"].median for end in ("lowest", "highest"))
    assert bounds[0] < least < rate < most < bounds[1]
    assert result.limited_by == "device"


@pytest.mark.parametrize("rate", [4e6, 1e9])
def test_a_fall_between_readings_is_at_least_so_fast(rate: float) -> None:
    """All connections went between two readings: N / interval was told as the gateway's own rate."""
    found = measured("expiry", expiring(rate, first=10.03))
    assert found.median <= rate
    assert found.bounds[1] is None
    # Cores of the tester help nothing: the readings are too far apart.
    assert "between readings" in found.words()
    assert "tester limited" not in found.words()
    said = answers.one(found.result).text
    assert said.startswith("simulated lets at least ")
    assert "(doubtful)" not in said
    assert bottleneck(found.result) == "the time between two readings of the count, not the device"


@pytest.mark.parametrize(("share", "is_testers"), [(1.0, True), (0.95, True), (1.05, True), (0.8, False), (1.3, False)])
@pytest.mark.parametrize("state", ["established", "fin"])
def test_exact_timers_expire_as_fast_as_the_tester_opened(share: float, *, is_testers: bool, state: Any) -> None:
    """The rate of phase 1 came back as that of the device."""
    found = measured("expiry", expiring(share * 1e4), connection_rate=2e4, state=state, transport="tcp")
    assert found.median == pytest.approx(share * 1e4, rel=0.01)
    assert ("as fast as opened" in found.words()) == is_testers
    assert ("rate_highest" in found.result.figures) != is_testers
    assert answers.one(found.result).text.startswith("simulated lets at least ") == is_testers


def test_one_repetition_of_expiry_promises_no_other_run() -> None:
    """15.45 to 15.48 connections/s "in another run" were 7,669 8 minutes later: the table's sweep fell elsewhere."""
    assert "in another run" not in answers.one(expire(expiring())).text
    assert "in another run" in answers.one(expire(expiring(), repeat=3)).text


def test_the_expiry_of_a_few_connections_is_refused(golden: Golden) -> None:
    """One connection had an expiry rate of 7.47 connections/s."""
    with golden.raises(UsageError):
        expire(expiring(), connections=1)


@pytest.mark.parametrize(
    ("state", "half_open", "close", "rates"),
    [
        ("established", False, None, None),
        ("half-open", True, None, (0.0, 5e5, "once")),
        ("fin", False, "fin", (5e5, 0.0, "pseudorandom")),
        ("rst", False, "rst", (5e5, 0.0, "pseudorandom")),
    ],
)
def test_the_state_that_expires_is_that_of_the_trial(state: Any, half_open: bool, close: Any, rates: Any) -> None:  # noqa: FBT001 - a row
    gateway = expiring()
    assert expire(gateway, state=state, transport="tcp").median == pytest.approx(1e5, rel=0.001)
    (plan,) = gateway.plans
    phase2 = plan.phase2 and (plan.phase2.initiator_rate, plan.phase2.responder_rate, plan.phase2.reading_order)
    assert (plan.half_open, plan.close, phase2) == (half_open, close, rates)


def test_connections_that_did_not_reach_the_state_have_no_expiry(golden: Golden) -> None:
    with golden.raises(BrokenError):
        expire(expiring(left_open=1), state="fin", transport="tcp")


def test_what_does_not_expire_while_it_is_watched_is_no_rate(golden: Golden) -> None:
    with golden.raises(BrokenError):
        expire(expiring(first=300.0))


@pytest.mark.parametrize("left", [0, N // 2])
def test_a_fall_that_began_before_the_first_reading_was_not_seen(left: int, golden: Golden) -> None:
    """A half of the connections, seen to expire, was told as four fifths: twice the rate."""
    counts = itertools.chain([N], itertools.repeat(left))
    with golden.raises(BrokenError):
        expire(Gateway(expires=lambda _seconds: next(counts)), interval_seconds=10.0)
