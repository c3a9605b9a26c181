# SPDX-License-Identifier: Apache-2.0
"""Tear-down (RFC 9693 section 4.8) and expiry against simulated gateways of known truth."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from tests.unit.made_results import grouped
from tests.unit.simulated import Gateway

from natgauge.analysis.contrast import bounds
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.recipe import load
from natgauge.measurements.making import make
from natgauge.measurer import Ability, CountAt, TearDown
from natgauge.procedures import expiry, tear_down_rate
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.tear_down_rate import tear_down
from natgauge.reports.answers import one
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import TcpState

N = 400_000


@dataclass(slots=True)
class _Emptying(Gateway):
    """Empties its table at a known rate, with a known cost of the command itself.

    Attributes:
        tears_down: connections/s.
        command_seconds: cost of the command, one after the other.
        left: connections that stay.
        expires_from: when the first connection times out, in seconds.
        expires: connections/s that time out.
    """

    tears_down: float = 2e6
    command_seconds: tuple[float, ...] = (0.015,)
    left: int = 0
    expires_from: float = 10.0
    expires: float = 1e5
    abilities: frozenset[Ability] = frozenset({Ability.EMPTY_TIMED, Ability.WATCH_COUNT})
    seen: int = 0
    emptied: list[TearDown] = field(default_factory=list)

    def empty_timed(self) -> TearDown:
        """Empty what the last trial left."""
        count = (self.outcomes[-1].table_count or 0) if len(self.outcomes) > self.seen else 0
        self.seen = len(self.outcomes)
        cost = next(itertools.islice(itertools.cycle(self.command_seconds), len(self.emptied), None))
        self.emptied.append(TearDown(count / self.tears_down + cost, count, self.left))
        return self.emptied[-1]

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """The count falls on a straight line."""
        seen = []
        for number in itertools.count():
            now = number * interval_seconds
            count = max(0, min(N, round(N - (now - self.expires_from) * self.expires)))
            seen.append(CountAt(now, count))
            if count == 0 or now >= longest_seconds:
                return tuple(seen)
        raise AssertionError


def measure(gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"connections": N, "placement": gateway.placement, "connection_rate": 1e6, **others}
    return tear_down_rate.PROCEDURE.measure(gateway, tear_down_rate.TearDownRateSettings(**given))


def test_the_cost_of_the_command_itself_is_subtracted() -> None:
    gateway = _Emptying(tears_down=2e6, command_seconds=(0.015,))
    result = measure(gateway)
    assert result.summary.median == pytest.approx(2e6)
    assert result.figures["empty_seconds"].median == pytest.approx(0.015)
    assert result.figures["full_seconds"].median == pytest.approx(0.215)
    assert len(gateway.outcomes) == 10
    assert not any(note.word == "unreliable" for note in result.notes)


def test_deletions_of_one_repetition_are_its_sample() -> None:
    """RFC 9693 section 4.8: the deletions are repeated, so one filling of ten deletions is no single repetition."""
    found = make(measure(_Emptying(command_seconds=(0.015, 0.016, 0.017)), sample=10), grouped({}))
    full, empty = found.figures["full_seconds"], found.figures["empty_seconds"]
    assert (full.count, empty.count, found.figures["difference_seconds"].count) == (10, 10, 1)
    assert full.minimum < full.median < full.maximum
    assert "single repetition" not in {doubt.word for doubt in found.doubts}
    assert not any("says nothing about spread" in note.text for note in found.notes)


def test_several_repetitions_share_one_summary_of_all_deletions() -> None:
    found = measure(_Emptying(), repeat=3, sample=2)
    assert found.figures["full_seconds"].count == 6
    assert found.figures["difference_seconds"].count == 3


def test_the_rate_comes_from_unrounded_medians() -> None:
    """The published row: 0.16 s and 0.01 s are printed, 2.5 M and 2.67 M would follow; 0.145 s it really was."""
    value, _, _ = tear_down(400_000, [0.158, 0.159, 0.158], [0.013, 0.013, 0.014])
    assert value == pytest.approx(2_758_621, abs=1)


def test_a_difference_within_the_spread_is_marked() -> None:
    value, _, notes = tear_down(1000, [0.015, 0.018, 0.012], [0.013, 0.014, 0.012])
    assert value == pytest.approx(500_000)
    assert "unreliable: the difference of 2 ms is not larger than the spread of the times, 6 ms" in str(notes[0])


def test_a_full_table_that_empties_like_an_empty_one_has_a_least_rate() -> None:
    value, figures, notes = tear_down(10, [0.01, 0.01], [0.01, 0.02])
    assert value == pytest.approx(10 / 0.01)
    assert figures["difference_seconds"] == pytest.approx(-0.005)
    assert "no slower than an empty one: the rate is at least this" in str(notes[0])
    # Deletions of full and empty tables take turns: 10 ms and 20 ms.
    found = make(measure(_Emptying(tears_down=math.inf, command_seconds=(0.010, 0.020)), sample=10), grouped({}))
    assert found.limited_by == "host"
    assert bounds(found) == pytest.approx((N / 0.010, math.inf))
    assert "tears down at least 40,000,000 connections/s" in one(found).text


@pytest.mark.parametrize("way", ["fin", "rst"])
def test_segments_close_connections_as_fast_as_the_device_forwards_them(way: Any) -> None:
    gateway = Gateway(establishes=2e6, forwards=3e5)
    result = measure(gateway, tear_down_by=way)
    assert result.summary.median == pytest.approx(3e5, rel=0.011)
    assert result.limited_by == "device"
    assert result.figures["entries_left"].median == N
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert (plan.close, plan.request_octets, plan.phase2.responder_rate) == (way, None, 0.0)
        assert plan.phase2.initiator_rate * plan.phase2.seconds == pytest.approx(N)
        assert plan.phase1_rate == 5e5


def test_connections_that_the_device_still_calls_open_are_not_closed() -> None:
    result = measure(Gateway(establishes=2e6, left_open=1), tear_down_by="fin", most_seconds=None)
    assert (result.summary.median, result.limited_by) == (0, "device")


def test_closing_and_other_states_are_of_tcp() -> None:
    for metric, settings in (("tear-down-rate", {"tear_down_by": "rst"}), ("expiry", {"state": "fin"})):
        with pytest.raises(UsageError, match=f"transport: icmp, but {metric} closes TCP connections; choose tcp"):
            Bench(ask(metric, "nftables-nat44", {"transport": "icmp"}).cell).plan(metric, settings)


def test_each_state_has_a_time_out_of_its_own_or_none() -> None:
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
    says = "udp_timeout: vpp-nat64 has no such knob for TCP connections in the state half-open; leave it out"
    with pytest.raises(UsageError, match=says):
        Bench(ask("expiry", "vpp-nat64", {"transport": "tcp", "udp_timeout": 5}).cell).plan(
            "expiry", {"state": "half-open"}
        )


def test_connections_that_stay_are_no_tear_down() -> None:
    with pytest.raises(BrokenError, match="3 connections were left after emptying 400000"):
        measure(_Emptying(left=3))


def test_a_phase_1_that_fails_is_repeated_more_slowly() -> None:
    gateway = _Emptying(establishes=3e5)
    result = measure(gateway, connection_rate=1e6, sample=2)
    assert result.trials["INVALID"] == 1
    assert result.summary.median == pytest.approx(2e6)


def test_the_tester_must_be_able_to() -> None:
    gateway = Gateway()
    with pytest.raises(UsageError, match="tear-down-rate: this tester lacks timing how long the device takes"):
        measure(gateway)
    with pytest.raises(UsageError, match="expiry: this tester lacks watching the device's own count fall"):
        expiry.PROCEDURE.measure(gateway, expiry.ExpirySettings(connections=N, placement="shared"))
    assert not gateway.plans


def expire(gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"connections": N, "placement": gateway.placement, "connection_rate": 1e6, **others}
    return expiry.PROCEDURE.measure(gateway, expiry.ExpirySettings(**given))


def test_the_expiry_rate_is_the_slope_of_the_count() -> None:
    result = expire(_Emptying(expires=1e5, expires_from=10.0))
    assert result.summary.median == pytest.approx(1e5, rel=0.001)
    assert result.figures["first_tenth_seconds"].median == pytest.approx(10.4, abs=0.01)
    assert result.figures["watched_seconds"].median == pytest.approx(14, abs=0.11)


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
    gateway = _Emptying(expires=1e5)
    assert expire(gateway, state=state).summary.median == pytest.approx(1e5, rel=0.001)
    (plan,) = gateway.plans
    phase2 = plan.phase2 and (plan.phase2.initiator_rate, plan.phase2.responder_rate, plan.phase2.reading_order)
    assert (plan.half_open, plan.close, phase2) == (half_open, close, rates)


def test_connections_that_did_not_reach_the_state_have_no_expiry() -> None:
    with pytest.raises(BrokenError, match="expiry: not all connections are fin: 1 of 400000 closed connections"):
        expire(_Emptying(left_open=1), state="fin")


def test_what_does_not_expire_while_it_is_watched_is_no_rate() -> None:
    with pytest.raises(BrokenError, match=r"400000 of 400000 connections were left after 120\.0 s; give shorter"):
        expire(_Emptying(expires_from=300.0))


def test_a_fall_between_two_readings_is_put_on_the_line_between_them() -> None:
    result = expire(_Emptying(expires=1e9), interval_seconds=10.0)
    assert result.limited_by == "device"
    assert result.summary.median == pytest.approx(N / 10)


def test_a_fall_before_the_first_reading_is_a_least_rate() -> None:
    result = expire(_Emptying(expires=1e9, expires_from=-1.0), interval_seconds=10.0)
    assert result.limited_by == "tester"
    assert result.summary.median == pytest.approx(0.8 * N / 10)
    assert any("the rate is at least this" in note.text for note in result.notes)


@pytest.mark.parametrize(
    ("kind", "name", "value", "says"),
    [
        (tear_down_rate.TearDownRateSettings, "sample", 1, "sample: 1 is outside of 2 to 1000 times"),
        (tear_down_rate.TearDownRateSettings, "connection_rate", 0.0, "connection rate: 0.0"),
        (expiry.ExpirySettings, "watch_seconds", 0, "watch seconds: 0 is outside of 1 to 86400 s"),
        (expiry.ExpirySettings, "interval_seconds", 0, "interval seconds: 0 is outside of 0.01 to 60 s"),
    ],
)
def test_bad_settings_are_refused_in_one_line(kind: Any, name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind(**{"connections": N, "placement": "shared", name: value})
    assert says in str(caught.value)
