# SPDX-License-Identifier: Apache-2.0
"""Rates of connections, validated ones, transactions and draws (RFC 9693 sections 4.4 to 4.6) of known gateways."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import arrivals, change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.simulated_kinds import Delaying

import natgauge
from natgauge.errors import BrokenError, UsageError

N = 100_000
#: N four tuples.
SPACE = {"source_ports": "1024-51023", "destination_ports": "1-2"}
#: Longest wait of a frame in a queue, in s, where the user gives none.
LONGEST_WAIT_SECONDS = 0.02
#: Where these ask each connection at 0.8 of the rate, the way back is too slow (Figure 11 of the scalability draft).
SLOW_WAY_BACK: Any = {"establishes": 478_417, "forwards": 1e7, "forwards_down": 258_000}


def measured(metric: str, truth: Gateway | None = None, /, **others: Any) -> Measured:
    return simulated_lab.measure(metric, truth, **{"connections": N, **others})


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("connection-rate", truth, **others).result


def validate(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("validated-connection-rate", truth, **others).result


def transact(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("transaction-rate", truth, **others).result


def enumerate_orders(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured("enumeration-orders", truth, **{**SPACE, **others}).result


def supported_by_a_pass(result: Any) -> bool:
    return all(
        one.value == 0 or any(a.load == one.value and not a.short and a.outcome.verdict == "PASS" for a in one.attempts)
        for one in result.repetitions
    )


def assert_within_error(result: Any, cliff: float, share: float = 0.01) -> None:
    for one in result.repetitions:
        assert one.upper is not None
        assert one.value <= cliff < one.upper
        assert one.upper - one.value <= share * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"


@given(st.floats(1e3, 1e7), st.sampled_from([0.001, 0.01, 0.1]))
@settings(max_examples=6)
def test_a_hard_cliff_is_found_within_the_error(cliff: float, share: float) -> None:
    result = measure(Gateway(establishes=cliff), error=f"{share:%}", repeat=2, most_seconds=86_400)
    assert_within_error(result, cliff, share)
    assert supported_by_a_pass(result)


@pytest.mark.parametrize("cliff", [3_000.0, 250_000.0, 3e6])
def test_where_validation_changes_nothing_the_connection_rate_is_found(cliff: float) -> None:
    assert_within_error(validate(Gateway(establishes=cliff, forwards=1e7), repeat=2), cliff)


def test_draws_have_their_expected_and_their_counted_connections(golden: Golden) -> None:
    gateway = Gateway(establishes=3e5, four_tuples=N)
    result = measure(gateway, order="with-replacement", draws=10 * N, **SPACE)
    assert {plan.connections for plan in gateway.plans} == {10 * N}
    assert result.median == pytest.approx(3e5, rel=0.011)
    assert result.figures["connections_expected"].median == pytest.approx(N * (1 - math.exp(-10)), rel=1e-5)
    assert result.figures["connections_counted"].median == round(N * (1 - math.exp(-10)))
    uncounted = measure(Gateway(), gateway=simulated_lab.ROUTING, order="with-replacement", **SPACE)
    assert uncounted.figures["connections_expected"].median == pytest.approx(N * (1 - math.exp(-1)), rel=1e-4)
    assert "connections_counted" not in uncounted.figures
    with golden.raises(UsageError):
        measure(order="increasing", draws=5)


def handshaking(answers: float) -> Gateway:
    """A gateway that loses third messages alone; the Initiator gets all answers up to `answers` connections/s."""

    def messages(_number: int, trial: Any) -> Any:
        counts = trial.phase1
        answered = counts.offered_frames if trial.plan.phase1_rate <= answers else counts.received_frames
        arrived = (arrivals("syn", answered), arrivals("syn-ack", answered), arrivals("ack", counts.received_frames))
        return change_trial(trial, phase1=change_counts(counts, messages=arrived))

    return Gateway(left_open=N, alters=messages, establishes=3e5)


@pytest.mark.parametrize("answers", [5e5, 9e5])
def test_a_rate_of_handshakes_is_strict_and_has_the_established_connections_and_no_half_open_ones(
    answers: float,
) -> None:
    """The largest load with all SYN-ACKs was reported: 0.19 to 1.00 of the rate at which a gateway answers."""
    result = measure(handshaking(answers), transport="tcp")
    assert result.median == pytest.approx(3e5, rel=0.011)
    assert result.figures["established"].median == N
    assert set(result.figures) == {"established", "trial_seconds"}


def test_lateness_is_the_cliff_in_shared_placement() -> None:
    """Nothing is ever lost there; the answer is where the schedule cannot be held (0.1 % or 200 us are tolerated)."""
    result = measure(Gateway(establishes=400_000, placement="shared"))
    assert result.median == pytest.approx(400_000, rel=0.012)


@pytest.mark.parametrize("seed", range(2))
def test_noise_rare_loss_and_disturbances_leave_the_answer_near_the_cliff(seed: int) -> None:
    noisy = measure(Gateway(establishes=500_000, noise=0.02, seed=seed), repeat=5)
    assert noisy.median == pytest.approx(500_000, rel=0.05)
    assert supported_by_a_pass(noisy)
    losing = Gateway(establishes=500_000, rare_loss=0.1, seed=seed)
    assert measure(losing, loss_verifications=3).median == pytest.approx(500_000, rel=0.01)
    disturbed = measure(Gateway(establishes=500_000, disturbed=0.4, seed=seed), invalid_repeats=50)
    assert disturbed.median == measure(Gateway(establishes=500_000, seed=seed)).median
    assert disturbed.disturbed >= disturbed.trials["INVALID"] > 0
    assert any("were disturbed" in note.text for note in disturbed.notes)


def test_a_full_table_is_named_as_the_limit_whether_it_refuses_or_evicts() -> None:
    """All frames are forwarded, yet connections are missing: RFC 9693 section 4.6's assumption does not hold."""
    refusing, evicting = (measure(Gateway(table_size=65_536, when_full=when_full)) for when_full in ("refuse", "evict"))
    assert (refusing.median, refusing.limited_by) == (evicting.median, evicting.limited_by) == (0, "table")
    assert len(refusing.repetitions[0].attempts) <= 5
    assert all(attempt.outcome.phase1.lost == 0 for attempt in evicting.repetitions[0].attempts)
    unaware = Gateway(table_size=65_536, when_full="evict")
    assert measure(unaware, gateway=simulated_lab.ROUTING).median > 0


@pytest.mark.parametrize("gateway", [simulated_lab.NAT44, simulated_lab.ROUTING])
def test_validation_finds_out_a_table_that_evicts(gateway: Any) -> None:
    """The connection rate alone would have been measured happily if the device could not tell its count."""
    result = validate(Gateway(table_size=N // 2, when_full="evict"), gateway=gateway)
    assert result.median == 0
    assert (result.limited_by == "table") == (gateway == simulated_lab.NAT44)


def test_a_tester_that_is_slower_than_the_device_is_named() -> None:
    slow = measure(Gateway(establishes=1e6, real_ceiling=600_000))
    assert (slow.limited_by, slow.median) == ("tester", pytest.approx(600_000, rel=0.01))
    assert slow.trials["FAIL"] == 0
    result = measure(Gateway(establishes=1e9, ceiling=2e6))
    assert (result.median, result.limited_by, result.error) == (2e6, "tester", None)


def test_a_device_that_dies_is_reported() -> None:
    result = measure(Gateway(establishes=1e6, collapses_above=300_000))
    assert 0 < result.median <= 300_000
    # The bounds may be near enough before the third collapse, which ends the search.
    assert result.trials["COLLAPSED"] in (2, 3)


@pytest.mark.parametrize(
    ("truth", "choices", "limit", "warned"),
    [
        ({"establishes": 500_000}, {"order": "increasing"}, LONGEST_WAIT_SECONDS, True),
        ({"establishes": 500_000}, {"frame_timeout_seconds": 0.5}, 0.5, True),
        ({"establishes": 40_000}, {}, LONGEST_WAIT_SECONDS, False),
        ({"establishes": 500_000, "placement": "shared"}, {}, None, False),
    ],
)
def test_each_trial_opens_n_connections_with_a_limit_for_queues_of_which_short_trials_warn(
    truth: Any, choices: dict[str, Any], limit: float | None, *, warned: bool
) -> None:
    gateway = Gateway(**truth)
    result = measure(gateway, **choices)
    order = choices.get("order", "permutation")
    asked = {(plan.connections, plan.phase2, plan.order, plan.frame_timeout_seconds) for plan in gateway.plans}
    assert asked == {(N, None, order, limit)}
    shortest = N / result.median
    assert result.figures["trial_seconds"].median == pytest.approx(shortest)
    (told, *_) = [*(note.text for note in result.notes if "N/R" in note.text), ""]
    assert bool(told) == warned
    if warned:
        assert f"N/R = {shortest:.3f} s" in told
        assert limit is not None
        assert f"by up to {100 * limit / shortest:.3g} %" in told


def test_a_loss_tolerance_reaches_the_trials_and_the_notes() -> None:
    found = measured("connection-rate", Gateway(establishes=500_000), loss_tolerance="1%")
    assert found.plans("loss_tolerance") == {0.01}
    assert found.median > 500_000
    assert found.notes("1 %")


class Observed:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.event = self.events.append

    def stage(self, text: str) -> None: ...

    def running(self, progress: object) -> None: ...


def test_each_repetition_is_measured_anew_and_the_observer_sees_each_trial_begin_and_end() -> None:
    observed, gateway = Observed(), Gateway(establishes=500_000, noise=0.01, seed=3)
    result = measure(gateway, repeat=4, observe=observed)
    assert len(result.values) == 4
    assert len(set(result.values)) > 1
    assert sum(result.trials.values()) == len(gateway.plans)
    events = observed.events
    assert [event.outcome is None for event in events] == [True, False] * len(gateway.plans)
    assert [event.trial for event in events[::2]] == list(range(1, len(gateway.plans) + 1))
    assert {(event.repetition, event.repetitions) for event in events} == {(number, 4) for number in range(1, 5)}
    assert events[0].seconds_left is None
    assert events[-1].seconds_left >= 0


def test_phase_2_asks_every_connection_once_from_the_responder_only() -> None:
    gateway = Gateway(establishes=250_000, forwards=1e7)
    validate(gateway, alpha=0.5)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert (plan.phase2.reading_order, plan.phase2.initiator_rate) == ("once", 0.0)
        assert round(plan.phase2.responder_rate * plan.phase2.seconds) == N
        assert plan.phase2.responder_rate <= 0.5 * plan.phase1_rate * (1 + 1e-9)


def test_a_slow_way_back_does_not_hide_the_connection_rate(golden: Golden) -> None:
    """The published case: about 258 k frames/s back and 478 k connections/s; with r = 0.8 R the way back was found."""
    result = validate(Gateway(**SLOW_WAY_BACK), alpha=0.8)
    assert result.median == pytest.approx(478_417, rel=0.011)
    golden(result.notes)
    assert result.figures["validation_rate"].median <= 258_000


def test_a_known_throughput_from_the_responder_bounds_the_asking() -> None:
    gateway = Gateway(**SLOW_WAY_BACK)
    result = validate(gateway, alpha=0.8, download_rate=258_000.0)
    assert result.median == pytest.approx(478_417, rel=0.011)
    assert max(plan.phase2.responder_rate for plan in gateway.plans if plan.phase2) <= 129_000
    assert not any("r too high" in note.text for note in result.notes)


def loses_once(number: int, trial: Any) -> Any:
    """Lose a frame of the first trial on the way back, by chance."""
    if number:
        return trial
    ((direction, counts),) = trial.phase2.items()
    return change_trial(trial, phase2={direction: change_counts(counts, received=counts.received_frames - 1)})


def test_a_frame_lost_by_chance_does_not_slow_the_asking_of_later_repetitions() -> None:
    """Before, all three repetitions asked at 20,000 frames/s, and alpha 0.08 was published for 0.8."""
    result = validate(Gateway(establishes=250_000, forwards=1e7, alters=loses_once), repeat=3)
    slowed, *others = (one.figures["alpha"] for one in result.repetitions)
    assert slowed < 0.2
    assert others == [0.8, 0.8]
    assert result.figures["alpha"].median == 0.8


@pytest.mark.parametrize(("alpha", "expected"), [(0.8, 322_500), (0.6, 430_000), (0.5, 478_417), (0.25, 478_417)])
def test_a_failed_validation_that_fails_its_trial_makes_the_rate_depend_on_alpha(alpha: float, expected: float) -> None:
    """With a high alpha the way back limits the rate."""
    gateway = Gateway(**SLOW_WAY_BACK)
    result = validate(gateway, alpha=alpha, failed_validation="fail")
    assert result.median == pytest.approx(expected, rel=0.011)
    for plan in gateway.plans:
        assert plan.phase2 is not None
        assert plan.phase2.responder_rate == pytest.approx(alpha * plan.phase1_rate)
    assert result.figures["alpha"].median == pytest.approx(alpha)
    assert any("put down to: R or r too high" in note.text for note in result.notes) == (alpha > 0.5)


def test_a_fixed_alpha_is_not_lowered_by_a_known_throughput(golden: Golden) -> None:
    with golden.raises(UsageError):
        validate(failed_validation="fail", download_rate=258_000.0)


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_alpha_that_is_told_is_one_that_trials_had(repeat: int) -> None:
    gateway = Gateway(**SLOW_WAY_BACK, noise=0.05, seed=4)
    result = validate(gateway, repeat=repeat)
    tried = {(plan.phase1_rate, plan.phase2.responder_rate) for plan in gateway.plans if plan.phase2}
    for one in result.repetitions:
        assert (one.value, one.figures["validation_rate"]) in tried
    assert result.figures["alpha"].median in {asked / rate for rate, asked in tried}


SEGMENTS = ("syn", "syn-ack", "ack", "response", "fin", "fin-ack", "last-ack")


def closing(answers: float = 1e5) -> Gateway:
    """A gateway that loses FINs, and with them whole transactions, above 100,000 transactions/s.

    The Initiator gets all SYN-ACKs up to `answers` connections/s.
    """

    def segments(_number: int, trial: Any) -> Any:
        counts = trial.phase1
        opened = counts.offered_frames if trial.plan.phase1_rate <= answers else counts.received_frames
        arrived = [opened if at < 4 else counts.received_frames for at in range(len(SEGMENTS))]
        messages = tuple(arrivals(name, number) for name, number in zip(SEGMENTS, arrived, strict=True))
        return change_trial(trial, phase1=change_counts(counts, messages=messages))

    return Gateway(establishes=1e5, alters=segments)


def test_a_transaction_counts_when_its_last_segment_arrived() -> None:
    gateway = closing(3e5)
    result = transact(gateway)
    assert result.median == pytest.approx(1e5, rel=0.011)
    assert "half_open_rate" not in result.figures
    assert result.figures["established"].median == 0
    assert result.limited_by == "device"
    assert {(plan.close, plan.request_octets, plan.phase2) for plan in gateway.plans} == {("fin", 0, None)}
    assert "lingering_entries" not in result.figures


def test_requests_and_the_closing_segment_are_settings(golden: Golden) -> None:
    gateway = closing()
    result = transact(gateway, request_octets=100, close="rst")
    assert {(plan.close, plan.request_octets) for plan in gateway.plans} == {("rst", 100)}
    golden(result.notes)


def test_a_lasting_rate_needs_a_table_for_the_closed_connections(golden: Golden) -> None:
    result = transact(closing(), gateway=simulated_lab.LINGERING)
    assert result.figures["lingering_entries"].median == 120 * result.median
    golden(result.notes)


@pytest.mark.parametrize("choices", [{"transport": "udp"}, {"frame_size": 128}])
def test_transactions_are_of_tcp_and_choose_their_frame_sizes(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        natgauge.measure("transaction-rate", "nftables-nat44", **choices)


def test_each_order_has_its_rate_and_its_connections(golden: Golden) -> None:
    result = enumerate_orders(Gateway(establishes=3e5))
    # As many draws as four tuples hit 63 %, and end with 37 % new ones.
    assert result.median == pytest.approx(63.2, abs=0.1)
    assert result.figures["ending_new_percent"].median == pytest.approx(100 * math.exp(-0.99), abs=0.5)
    for order in ("permutation", "increasing", "decreasing"):
        assert result.figures[f"created_percent_{order}"].median == 100
        assert result.figures[f"rate_{order}"].median == pytest.approx(3e5, rel=0.011)
    (rows,) = (one.series for one in result.repetitions)
    assert [row["order"] for row in rows] == ["permutation", "increasing", "decreasing", "with-replacement"]
    golden(result.notes)
    larger = enumerate_orders(Gateway(four_tuples=4 * N), destination_ports="1-8")
    assert larger.median == pytest.approx(88.5, abs=0.1)


def test_more_draws_than_four_tuples_open_nearly_all_of_them(golden: Golden) -> None:
    """The third column of Table 23 of Lencse, Shima, Cho: ten draws for each four tuple."""
    gateway = Gateway(establishes=3e5, table_size=N + 1000)
    result = enumerate_orders(gateway, draws=10 * N)
    (rows,) = (one.series for one in result.repetitions)
    named = {row["order"]: row for row in rows}
    figures = ("frames", "connections", "connections_expected")
    assert [named["permutation"][name] for name in figures] == [N, N, N]
    assert [named["with-replacement"][name] for name in figures] == pytest.approx([10 * N, 99_995, 99_995.46], abs=1)
    assert result.figures["rate_with_replacement"].median == pytest.approx(3e5, rel=0.011)
    assert result.figures["ending_new_percent"].median == pytest.approx(100 * math.exp(-9.9), abs=0.003)
    drawn = {plan.connections for plan in gateway.plans if plan.order == "with-replacement"}
    assert drawn == {10 * N, 10 * N - N // 5}
    golden(result.notes)


def test_orders_that_cannot_be_told_are_refused_in_one_line(golden: Golden) -> None:
    """A device that does not count, a table too small, and no draws."""
    with golden.raises(BrokenError):
        enumerate_orders(gateway=simulated_lab.ROUTING)
    with golden.raises(BrokenError):
        enumerate_orders(Gateway(table_size=N // 2))
    with golden.raises(UsageError):
        enumerate_orders(draws=0)


@pytest.mark.parametrize("metric", ["connection-rate", "throughput", "transaction-rate", "validated-connection-rate"])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_delay_beyond_the_limit_is_named_at_once_and_called_no_loss(
    metric: str, seconds: float, golden: Golden
) -> None:
    """It was called 'none of 5000 frames came back', and with no time limit the rate was 0 without a doubt."""
    gateway = Delaying(establishes=300_000, forwards=300_000)
    found = measured(metric, gateway, connections=10_000, most_seconds=seconds)
    assert found.median == 0
    (note,) = (note for note in found.result.notes if note.word == "late at every rate")
    assert note.grade == "answer"
    assert "--frame-timeout-seconds" in note.text
    assert "loss at every rate" not in {one.word for one in found.result.notes}
    golden(found.trials[0]["reason"])
    golden(note.text)
    assert gateway.clock() < 10


def test_a_longer_limit_measures_a_device_that_delays() -> None:
    result = measure(Delaying(establishes=300_000), connections=10_000, frame_timeout_seconds=0.1)
    assert result.median == pytest.approx(300_000, rel=0.01)


def test_a_share_that_is_late_at_every_rate_is_late_and_not_lost(golden: Golden) -> None:
    result = measure(Delaying(establishes=300_000, part=0.03), connections=10_000)
    (note,) = (note for note in result.notes if note.word == "late at every rate")
    golden(note.text)


@pytest.mark.parametrize("queue", [0, 512, 100_000])
@pytest.mark.parametrize("establishes", [200.0, 5_000.0, 300_000.0])
def test_an_overloaded_device_with_any_queue_is_not_taken_for_a_delay(queue: int, establishes: float) -> None:
    result = measure(Gateway(establishes=establishes, queue=queue), connections=10_000, most_seconds=0)
    assert "late at every rate" not in {note.word for note in result.notes}
    assert result.median > 0
