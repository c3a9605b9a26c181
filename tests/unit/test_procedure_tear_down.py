# SPDX-License-Identifier: Apache-2.0
"""Tear-down (RFC 9693 section 4.8) and expiry against simulated gateways of known truth."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import BrokenError, UsageError

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


def test_a_full_table_that_empties_like_an_empty_one_has_a_least_rate() -> None:
    """Deletions of full and empty tables take turns: 10 ms and 20 ms."""
    found = measured("tear-down-rate", emptying(0.010, 0.020, tears_down=math.inf), sample=10)
    assert found.median == pytest.approx(N / 0.010)
    assert (found.bounds[1], found.limited_by) == (None, "host")


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
    # A state that has no time-out of its own.
    with golden.raises(UsageError):
        natgauge.measure("expiry", "vpp-nat64", transport="tcp", udp_timeout=5, state="half-open")


def test_experiments_are_the_deletions_that_were_timed_and_their_command_has_no_error_of_a_search() -> None:
    found = measured("tear-down-rate", emptying(0.015, 0.016, 0.017), repeat=3, sample=2)
    assert found.result.figures["full_seconds"].count == 6
    assert found.result.figures["difference_seconds"].count == 3
    assert re.search(r"^number of experiments +6$", found.said, re.MULTILINE)
    assert found.result.parameters.settings.keys().isdisjoint({"error", "loss_verifications", "confirm"})
    assert "no rate failed" not in found.said


def test_a_search_for_the_rate_of_closing_segments_is_one_experiment() -> None:
    """RFC 9693 section 6: searches for the rate of FINs were printed as 10 experiments each."""
    closing = measured("tear-down-rate", Gateway(forwards=1e9), tear_down_by="rst", transport="tcp", repeat=3)
    assert re.search(r"^number of experiments +3$", closing.said, re.MULTILINE)
    assert "sample" not in closing.result.parameters.settings
    # One that a tester ended is a search of which nothing failed.
    assert closing.limited_by == "tester"
    assert "; no rate failed" in closing.said


def test_connections_that_stay_are_no_tear_down(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(emptying(keeps=3))


def test_a_phase_1_that_fails_is_repeated_more_slowly() -> None:
    gateway = emptying(establishes=3e5)
    result = measure(gateway, connection_rate=1e6, sample=2)
    assert result.trials["INVALID"] == 1
    assert result.median == pytest.approx(2e6)


@pytest.mark.parametrize(("rate", "bounds"), [(1e5, (94_000, 106_500)), (4e5, (350_000, 550_000))])
def test_the_expiry_rate_is_the_slope_of_the_count_between_those_that_its_readings_allow(
    rate: float, bounds: tuple[float, float]
) -> None:
    found = measured("expiry", expiring(rate))
    result = found.result
    assert result.median == pytest.approx(rate, rel=0.001 if rate == 1e5 else 0.01)
    least, most = (result.figures[f"rate_{end}"].median for end in ("lowest", "highest"))
    assert bounds[0] < least < rate < most < bounds[1]
    assert result.limited_by == "device"
    assert result.figures["first_tenth_seconds"].median == pytest.approx(10 + 0.1 * N / rate, abs=0.01)
    assert result.figures["watched_seconds"].median == pytest.approx(10 + N / rate, abs=0.11)
    # 15.45 to 15.48 connections/s "in another run" were 7,669 8 minutes later: the table's sweep fell elsewhere.
    assert "in another run" not in found.answer


@pytest.mark.parametrize("rate", [4e6, 1e9])
def test_a_fall_between_readings_is_at_least_so_fast(rate: float) -> None:
    """All connections went between two readings: N / interval was told as the gateway's own rate."""
    found = measured("expiry", expiring(rate, first=10.03))
    assert found.median <= rate
    assert found.bounds[1] is None
    # Cores of the tester help nothing: the readings are too far apart.
    assert "between readings" in found.words()
    assert "tester limited" not in found.words()
    said = found.answer
    assert said.startswith("simulated lets at least ")
    assert "(doubtful)" not in said
    assert "the time between two readings of the count, not the device" in found.said


@pytest.mark.parametrize(
    ("state", "share", "is_testers"),
    [
        ("established", 1.0, True), ("established", 0.95, True), ("fin", 1.05, True), ("established", 0.8, False),
        ("fin", 1.3, False),
    ],
)  # fmt: skip
def test_exact_timers_expire_as_fast_as_the_tester_opened(state: Any, share: float, *, is_testers: bool) -> None:
    """The rate of phase 1 came back as that of the device."""
    found = measured("expiry", expiring(share * 1e4), connection_rate=2e4, state=state, transport="tcp")
    assert found.median == pytest.approx(share * 1e4, rel=0.01)
    assert ("as fast as opened" in found.words()) == is_testers
    assert ("rate_highest" in found.result.figures) != is_testers
    assert found.answer.startswith("simulated lets at least ") == is_testers


def test_several_repetitions_of_expiry_say_what_another_run_will_have() -> None:
    assert "in another run" in measured("expiry", expiring(), repeat=3).answer


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


def test_an_expiry_that_was_not_seen_is_refused(golden: Golden) -> None:
    """Too few connections, one that did not reach the state, and none that expired while they were watched."""
    with golden.raises(UsageError):
        expire(expiring(), connections=1)
    with golden.raises(BrokenError):
        expire(expiring(left_open=1), state="fin", transport="tcp")
    with golden.raises(BrokenError):
        expire(expiring(first=300.0))


@pytest.mark.parametrize("left", [0, N // 2])
def test_a_fall_that_began_before_the_first_reading_was_not_seen(left: int, golden: Golden) -> None:
    """A half of the connections, seen to expire, was told as four fifths: twice the rate."""
    counts = itertools.chain([N], itertools.repeat(left))
    with golden.raises(BrokenError):
        expire(Gateway(expires=lambda _seconds: next(counts)), interval_seconds=10.0)
