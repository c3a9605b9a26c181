# SPDX-License-Identifier: Apache-2.0
"""The connection rate (RFC 9693 section 4.5) against simulated gateways of known truth."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import simulated_lab
from tests.unit.counted import arrivals, change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError
from natgauge.figure_text import in_percent

N = 100_000
#: N four tuples.
SPACE = {"source_ports": "1024-51023", "destination_ports": "1-2"}
#: Longest wait of a frame in a queue, in s, where the user gives none.
LONGEST_WAIT_SECONDS = 0.02


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return simulated_lab.measure("connection-rate", truth, **{"connections": N, **others}).result


def supported_by_a_pass(result: Any) -> bool:
    return all(
        one.value == 0 or any(a.load == one.value and not a.short and a.outcome.verdict == "PASS" for a in one.attempts)
        for one in result.repetitions
    )


@given(st.floats(1e3, 1e7), st.sampled_from([0.001, 0.01, 0.1]))
@settings(max_examples=6)
def test_a_hard_cliff_is_found_within_the_error(cliff: float, share: float) -> None:
    result = measure(Gateway(establishes=cliff), error=f"{share:%}", repeat=2, most_seconds=86_400)
    for one in result.repetitions:
        assert one.upper is not None
        assert one.value <= cliff < one.upper
        assert one.upper - one.value <= share * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"
    assert supported_by_a_pass(result)


def test_draws_have_their_expected_and_their_counted_connections() -> None:
    gateway = Gateway(establishes=3e5, four_tuples=N)
    result = measure(gateway, order="with-replacement", draws=10 * N, **SPACE)
    assert {plan.connections for plan in gateway.plans} == {10 * N}
    assert result.median == pytest.approx(3e5, rel=0.011)
    assert result.figures["connections_expected"].median == pytest.approx(N * (1 - math.exp(-10)), rel=1e-5)
    assert result.figures["connections_counted"].median == round(N * (1 - math.exp(-10)))
    uncounted = measure(Gateway(), gateway=simulated_lab.ROUTING, order="with-replacement", **SPACE)
    assert uncounted.figures["connections_expected"].median == pytest.approx(N * (1 - math.exp(-1)), rel=1e-4)
    assert "connections_counted" not in uncounted.figures


def handshaking(answers: float, **truth: Any) -> Gateway:
    """A gateway that loses third messages alone; the Initiator gets all answers up to `answers` connections/s."""

    def messages(_number: int, trial: Any) -> Any:
        counts = trial.phase1
        answered = counts.offered_frames if trial.plan.phase1_rate <= answers else counts.received_frames
        arrived = (arrivals("syn", answered), arrivals("syn-ack", answered), arrivals("ack", counts.received_frames))
        return change_trial(trial, phase1=change_counts(counts, messages=arrived))

    return Gateway(left_open=N, alters=messages, **truth)


def test_a_rate_of_handshakes_is_strict_and_has_the_established_connections_with_it() -> None:
    result = measure(handshaking(5e5, establishes=3e5), transport="tcp")
    assert result.median == pytest.approx(3e5, rel=0.011)
    assert result.figures["established"].median == N


def test_a_load_that_the_search_happened_to_try_is_no_rate_of_half_open_connections() -> None:
    """The largest load with all SYN-ACKs was reported: 0.19 to 1.00 of the rate at which a gateway answers."""
    assert set(measure(handshaking(9e5, establishes=3e5), transport="tcp").figures) == {"established", "trial_seconds"}


def test_draws_in_another_order_are_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        measure(order="increasing", draws=5)


def test_lateness_is_the_cliff_in_shared_placement() -> None:
    """Nothing is ever lost there; the answer is where the schedule cannot be held (0.1 % or 200 us are tolerated)."""
    result = measure(Gateway(establishes=400_000, placement="shared"))
    assert result.median == pytest.approx(400_000, rel=0.012)


def test_every_trial_sends_n_frames_and_nothing_else() -> None:
    gateway = Gateway(establishes=400_000)
    measure(gateway, order="increasing")
    assert {(plan.connections, plan.phase2, plan.order) for plan in gateway.plans} == {(N, None, "increasing")}


@pytest.mark.parametrize("seed", range(2))
def test_a_noisy_cliff_is_found_near_its_middle(seed: int) -> None:
    result = measure(Gateway(establishes=500_000, noise=0.02, seed=seed), repeat=5)
    assert result.median == pytest.approx(500_000, rel=0.05)
    assert supported_by_a_pass(result)


@pytest.mark.parametrize("seed", range(2))
def test_rare_random_loss_is_ridden_out_with_loss_verification(seed: int) -> None:
    gateway = Gateway(establishes=500_000, rare_loss=0.1, seed=seed)
    assert measure(gateway, loss_verifications=3).median == pytest.approx(500_000, rel=0.01)


@pytest.mark.parametrize("seed", range(2))
def test_disturbed_trials_are_repeated_counted_and_do_not_move_the_answer(seed: int) -> None:
    result = measure(Gateway(establishes=500_000, disturbed=0.4, seed=seed), invalid_repeats=50)
    assert result.median == measure(Gateway(establishes=500_000, seed=seed)).median
    assert result.trials["INVALID"] > 0
    assert result.disturbed >= result.trials["INVALID"]
    assert any("were disturbed" in note.text for note in result.notes)


def test_a_table_that_refuses_is_named_as_the_limit() -> None:
    result = measure(Gateway(table_size=65_536))
    assert (result.median, result.limited_by) == (0, "table")
    assert len(result.repetitions[0].attempts) <= 5


def test_a_table_that_evicts_is_caught_by_the_devices_own_count() -> None:
    """Every frame is forwarded, yet connections are missing: RFC 9693 section 4.6's assumption does not hold."""
    gateway = Gateway(table_size=65_536, when_full="evict")
    result = measure(gateway)
    assert (result.median, result.limited_by) == (0, "table")
    assert all(attempt.outcome.phase1.lost == 0 for attempt in result.repetitions[0].attempts)
    unaware = measure(gateway, gateway=simulated_lab.ROUTING)
    assert unaware.median > 0


def test_a_slow_tester_is_named() -> None:
    result = measure(Gateway(establishes=1e6, real_ceiling=600_000))
    assert result.limited_by == "tester"
    assert result.median == pytest.approx(600_000, rel=0.01)
    assert result.trials["FAIL"] == 0


def test_a_device_faster_than_the_tester() -> None:
    result = measure(Gateway(establishes=1e9, ceiling=2e6))
    assert (result.median, result.limited_by, result.error) == (2e6, "tester", None)


def test_a_device_that_dies_is_reported() -> None:
    result = measure(Gateway(establishes=1e6, collapses_above=300_000))
    assert 0 < result.median <= 300_000
    # The bounds may be near enough before the third collapse, which ends the search.
    assert result.trials["COLLAPSED"] in (2, 3)


def test_queues_get_a_time_limit_for_each_frame_and_short_trials_a_warning() -> None:
    gateway = Gateway(establishes=500_000)
    result = measure(gateway)
    assert all(plan.frame_timeout_seconds == LONGEST_WAIT_SECONDS for plan in gateway.plans)
    shortest = N / result.median
    assert any(f"N/R = {shortest:.3f} s" in note.text for note in result.notes)
    assert any(in_percent(LONGEST_WAIT_SECONDS / shortest) in note.text for note in result.notes)
    assert result.figures["trial_seconds"].median == pytest.approx(shortest)


def test_long_trials_and_shared_placement_get_no_such_warning() -> None:
    assert not any("N/R" in note.text for note in measure(Gateway(establishes=40_000)).notes)
    gateway = Gateway(establishes=500_000, placement="shared")
    assert not any("N/R" in note.text for note in measure(gateway).notes)
    assert all(plan.frame_timeout_seconds is None for plan in gateway.plans)


def test_a_limit_asked_for_is_kept() -> None:
    gateway = Gateway(establishes=500_000)
    measure(gateway, frame_timeout_seconds=0.5)
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {0.5}


def test_a_loss_tolerance_reaches_the_trials_and_the_notes() -> None:
    truth = Gateway(establishes=500_000)
    found = simulated_lab.measure("connection-rate", truth, connections=N, loss_tolerance="1%")
    assert found.plans("loss_tolerance") == {0.01}
    assert found.median > 500_000
    assert found.notes("1 %")


def test_repetitions_are_measured_anew_and_summarized() -> None:
    gateway = Gateway(establishes=500_000, noise=0.01, seed=3)
    result = measure(gateway, repeat=4)
    assert len(result.values) == 4
    assert len(set(result.values)) > 1
    assert sum(result.trials.values()) == len(gateway.plans)


def test_the_document_holds_what_the_command_line_prints() -> None:
    document = simulated_lab.measure("connection-rate", Gateway(establishes=500_000), connections=N, repeat=3).document
    wanted = {"metric", "unit", "median", "p1", "p99", "minimum", "maximum", "repetitions", "error", "limited_by"}
    assert wanted | {"schema", "doubts", "parameters", "trials"} <= set(document)
    assert (document["metric"], document["unit"]) == ("connection-rate", "connections/s")
    assert document["parameters"]["place"]["placement"] == "isolated"
    assert document["parameters"]["settings"]["error"] == "1%"
    assert set(document["trials"]) == {"PASS", "FAIL", "INVALID", "COLLAPSED"}
    assert json.loads(json.dumps(document)) == document


class Observed:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.event = self.events.append

    def stage(self, text: str) -> None: ...

    def running(self, progress: object) -> None: ...


def test_the_observer_sees_each_trial_begin_and_end() -> None:
    observed, gateway = Observed(), Gateway(establishes=500_000)
    measure(gateway, repeat=2, observe=observed)
    events = observed.events
    assert [event.outcome is None for event in events] == [True, False] * len(gateway.plans)
    assert [event.trial for event in events[::2]] == list(range(1, len(gateway.plans) + 1))
    assert {(event.repetition, event.repetitions) for event in events} == {(1, 2), (2, 2)}
    assert events[0].seconds_left is None
    assert events[-1].seconds_left >= 0
