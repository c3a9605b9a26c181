# SPDX-License-Identifier: Apache-2.0
"""Throughput (RFC 9693 section 4.7) of known gateways: with and without state, with queues, with rare losses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests import simulated_lab
from tests.simulated_lab import Measured
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_settings import alone, stored_alone
from tests.unit.simulated import Gateway

from natgauge import Result
from natgauge.errors import BrokenError, UsageError

N = 10_000


def measure(gateway: Gateway | None = None, **others: Any) -> Measured:
    return simulated_lab.measure("throughput", gateway, **{"connections": N, **others})


@given(st.floats(1e3, 7e6), st.sampled_from(["both", "up", "down"]))
@settings(max_examples=6)
def test_a_hard_cliff_is_found_within_the_error(cliff: float, directions: str) -> None:
    found = measure(Gateway(forwards=cliff), directions=directions, connection_rate=1e5)
    low, high = found.bounds
    assert high is not None
    assert low <= cliff < high
    assert high - low <= 0.01 * high * (1 + 1e-9)
    assert found.limited_by == "device"
    up, down = directions != "down", directions != "up"
    for trial in found.trials:
        phase2 = trial["plan"]["phase2"]
        assert (phase2["initiator_rate"] > 0, phase2["responder_rate"] > 0) == (up, down)
    assert found.figure("frames_per_second_each_direction") == found.median == low
    assert found.figure("frames_per_second_total") == low * (up + down)


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_unequal_directions_have_their_share_of_the_frames(search: str) -> None:
    """The Responder sends four fifths; its direction fails at 500,000 frames/s, so the mean is 312,500."""
    found = measure(Gateway(forwards=5e5), down_share=0.8, search=search, connection_rate=1e5)
    assert found.median == pytest.approx(312_500, rel=0.011)
    assert found.figure("frames_per_second_from_responder") == pytest.approx(1.6 * found.median)
    assert found.figure("frames_per_second_from_initiator") == pytest.approx(0.4 * found.median)
    assert found.figure("frames_per_second_total") == 2 * found.median
    for phase2 in (trial["plan"]["phase2"] for trial in found.trials):
        assert phase2["responder_rate"] == pytest.approx(4 * phase2["initiator_rate"])
    assert found.notes("0.8 of the frames from outside")


def test_the_answer_passed_a_trial_of_full_length_and_probes_are_short() -> None:
    found = measure(Gateway(forwards=300_000), trial_seconds=60, connection_rate=1e5)
    passed = [trial["plan"]["phase2"] for trial in found.trials if trial["verdict"] == "PASS"]
    assert {each["seconds"] for each in passed if each["initiator_rate"] == found.median} >= {60.0}
    assert found.plans("phase2.seconds") == {6.0, 60.0}
    assert "RFC 2544" not in str(found.document["notes"])
    assert measure().notes("RFC 2544 section 24 requires 60 s")


def test_trials_as_short_as_probes_are_not_made_twice() -> None:
    found = measure(Gateway(forwards=300_000), trial_seconds=0.25, connection_rate=1e5, confirm=False)
    rates = [trial["plan"]["phase2"]["initiator_rate"] for trial in found.trials]
    assert len(rates) == len({*rates})
    assert found.median == pytest.approx(300_000, rel=0.01)


@pytest.mark.parametrize(("directions", "highest"), [("both", 2e6), ("up", 4e6)])
def test_all_directions_share_the_testers_highest_rate(directions: str, highest: float) -> None:
    found = measure(Gateway(forwards=1e9, ceiling=4e6), connection_rate=1e5, directions=directions)
    assert (found.median, found.limited_by) == (highest, "tester")


@pytest.mark.parametrize(
    "case",
    [
        "both-fast-binary", "up-fast-binary", "unequal-fast-mlrsearch", "up-losing-binary", "unequal-losing-binary",
        "both-losing-mlrsearch", "up-losing-mlrsearch",
    ],
)  # fmt: skip
def test_the_rates_in_notes_name_the_directions_that_they_are_of(case: str, golden: Golden) -> None:
    """Seen: notes wrote "frames/s" where the answer wrote "frames/s in each direction"."""
    sent, gateway, search = case.split("-")
    chosen: Any = {"both": {}, "up": {"directions": "up"}, "unequal": {"down_share": 0.8}}[sent]
    truth: Any = {"fast": {"forwards": 1e9, "ceiling": 4e6}, "losing": {"forwards": 1e6, "rare_loss": 0.7}}[gateway]
    found = measure(Gateway(**truth), connection_rate=1e5, search=search, **chosen)
    golden([note for note in found.result.notes if " frames/s" in note.text])


def test_phase_1_runs_at_half_of_the_connection_rate_which_is_measured_once_where_it_is_not_given() -> None:
    told = measure(Gateway(establishes=200_000, forwards=300_000), connection_rate=200_000)
    assert told.plans("phase1_rate") == {100_000}
    assert told.notes("phase 1 at 100 k connections/s, 0.5 of")
    found = measure(Gateway(establishes=200_000, forwards=300_000), repeat=2)
    rates = {trial["plan"]["phase1_rate"] for trial in found.trials if trial["plan"]["phase2"]}
    assert len(rates) == 1
    assert 90_000 <= rates.pop() <= 100_000
    alone = [trial["plan"]["phase2"] is None for trial in found.trials]
    assert alone == sorted(alone, reverse=True)


def test_a_phase_1_that_was_too_fast_gets_slower_and_counts_for_nothing() -> None:
    """The connection rate given is four times too high: the first two trials say nothing about phase 2."""
    found = measure(Gateway(establishes=100_000, forwards=300_000), connection_rate=800_000)
    rates = [trial["plan"]["phase1_rate"] for trial in found.trials]
    assert rates[:4] == [400_000, 200_000, 100_000, 100_000]
    assert found.document["trials"]["INVALID"] == 2
    assert found.median == pytest.approx(300_000, rel=0.01)
    assert found.limited_by == "device"


def test_a_table_too_small_is_told_and_no_rate_is_claimed(golden: Golden) -> None:
    found = measure(Gateway(table_size=N // 2))
    assert (found.median, found.limited_by) == (0, "table")
    assert found.notes("phase 1 established all connections at no rate")
    with golden.raises(BrokenError):
        measure(Gateway(table_size=N // 2), connection_rate=1e5)


def test_a_phase_1_that_never_works_is_no_rate_of_0(golden: Golden) -> None:
    gateway = Gateway(establishes=110.0)
    with golden.raises(BrokenError):
        measure(gateway, connection_rate=800_000)
    assert len(gateway.plans) == 5


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_a_phase_1_that_fails_for_a_while_leaves_the_other_repetitions_their_rate(search: str) -> None:
    def losing(number: int, trial: Any) -> Any:
        if not 16 <= number <= 26:
            return trial
        counts = change_counts(trial.phase1, received=trial.phase1.received_frames - 1)
        return change_trial(trial, phase1=counts, stored=trial.stored - 1)

    found = measure(Gateway(forwards=300_000, alters=losing), connection_rate=400_000, repeat=3, search=search)
    assert min(one["value"] for one in found.repetitions) == pytest.approx(300_000, rel=0.02)
    assert "ended early" in found.words()


def test_only_failures_of_phase_1_in_a_row_end_the_measurement() -> None:
    def stumbling(number: int, trial: Any) -> Any:
        counts = change_counts(trial.phase1, received=trial.phase1.received_frames // 2)
        return trial if number % 2 else change_trial(trial, phase1=counts, stored=counts.received_frames)

    found = measure(Gateway(forwards=300_000, alters=stumbling), connection_rate=1e6)
    assert found.document["trials"]["INVALID"] > 5
    assert found.median == pytest.approx(300_000, rel=0.01)


def test_repetitions_on_a_disturbed_host_and_on_a_noisy_device_stay_together() -> None:
    gateway = Gateway(forwards=300_000, disturbed=0.4)
    found = measure(gateway, connection_rate=1e5, repeat=3, invalid_repeats=50)
    assert found.document["maximum"] - found.document["minimum"] <= 0.012 * found.median
    assert found.notes("were disturbed")
    noisy = measure(Gateway(forwards=300_000, noise=0.03), connection_rate=1e5, repeat=5)
    assert noisy.median == pytest.approx(300_000, rel=0.06)
    assert noisy.document["minimum"] >= 0.85 * noisy.median


def test_lateness_is_the_cliff_in_shared_placement_and_overshooting_costs_at_most_twice_the_devices_rate() -> None:
    """In `shared` placement a trial at k times the device's rate takes k times as long: probes only double."""
    found = measure(Gateway(forwards=300_000, placement="shared"), connection_rate=1e5)
    assert found.median == pytest.approx(300_000, rel=0.011)
    assert "frames were lost" not in str([trial["reason"] for trial in found.trials])
    assert max(found.plans("phase2.initiator_rate")) < 2 * 300_000


def test_a_non_monotonic_device_gets_an_answer_that_passed() -> None:
    def passes(rate: float) -> bool:
        return not 200_000 < rate < 250_000 and rate < 400_000

    low, high = measure(Gateway(passes=passes), connection_rate=1e5).bounds
    assert high is not None
    assert (passes(low), passes(high)) == (True, False)


def test_a_measurer_that_breaks_is_not_hidden(golden: Golden) -> None:
    def breaking(number: int, trial: Any) -> Any:
        if number == 2:
            raise BrokenError("the lab is gone")
        return trial

    with golden.raises(BrokenError):
        measure(Gateway(alters=breaking), connection_rate=1e5)


@pytest.mark.parametrize("metric", ["throughput", "frame-loss", "latency"])
def test_sizes_of_frames_that_nobody_sends_are_refused_in_one_line(metric: str, golden: Golden) -> None:
    sizes: dict[str, Any] = {"frame_sizes": "64:1", "down_frame_sizes": "1518:1", "connection_rate": 1e5}
    with golden.raises(UsageError):
        simulated_lab.measure(metric, connections=N, directions="up", **sizes)
    assert simulated_lab.measure(metric, connections=N, directions="down", **sizes).trials


def routed(metric: str, truth: Gateway, **choices: Any) -> Measured:
    return simulated_lab.measure(metric, truth, connections=1000, stateless=True, **choices)


@pytest.mark.parametrize("metric", ["throughput", "latency", "frame-loss", "pdv"])
def test_no_trial_of_a_stateless_measurement_has_a_phase_1_and_a_nat_needs_its_state(
    metric: str, golden: Golden
) -> None:
    truth = Gateway(establishes=1.0, forwards=300_000, placement="shared")
    found = routed(metric, truth, gateway=simulated_lab.ROUTING)
    assert found.plans("stateless") == {True}
    assert all(trial["result"].get("phase1") is None and trial["plan"]["phase2"] for trial in found.trials)
    if metric == "throughput":
        assert found.median == pytest.approx(300_000, rel=0.012)
        assert found.notes("there was no phase 1")
    refused = Gateway()
    with golden.raises(UsageError):
        routed(metric, refused)
    assert not refused.plans


#: A card's ring, a VPP's, a qdisc's; frames.
RINGS = (512, 2_048, 16_384, 100_000)


def assert_no_higher_than_told(result: Result, truth: float) -> None:
    """A result says by how much it may be too high; where it says nothing, that is its error."""
    limit = result.number("frame_timeout_seconds")
    assert limit is not None
    most = limit / result.figures["trial_seconds"].median
    noted = re.findall(r"may be too high by up to ([\d.,]+) %", str(result.notes))
    assert [float(each.replace(",", "")) for each in noted] == [pytest.approx(100 * most, rel=0.005)] * len(noted)
    assert bool(noted) is ("queues" in {doubt.word for doubt in result.doubts}) is (most > 0.01)
    assert 0.975 * truth <= result.median <= truth * (1 + max(most, 0.01)) * 1.001


@given(st.sampled_from(["connection-rate", "validated-connection-rate"]), st.floats(5e3, 1e6), st.sampled_from(RINGS))
@example("validated-connection-rate", 250_000.0, 16_384)  # seen: a million
@example("connection-rate", 909_356.0, 100_000)  # the ring takes all: up to 1,003 % too high
@settings(max_examples=20)
def test_a_rate_of_connections_is_never_higher_than_its_result_says(metric: str, truth: float, ring: int) -> None:
    gateway = Gateway(establishes=truth, forwards=1e8, queue=ring, knows_limit=False)
    assert_no_higher_than_told(stored_alone(metric, gateway, connections=20_000), truth)
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {0.02}


@given(
    st.floats(5e3, 1e6),
    st.sampled_from(RINGS),
    st.sampled_from([0.5, 1.0, 2.0, 10.0]),
    st.sampled_from(["binary", "mlrsearch"]),
)
@settings(max_examples=20)
def test_a_throughput_is_never_higher_than_its_result_says(truth: float, ring: int, seconds: float, way: str) -> None:
    chosen: dict[str, Any] = {"trial_seconds": seconds, "connection_rate": 1e5, "search": way}
    result = stored_alone("throughput", Gateway(forwards=truth, queue=ring), connections=20_000, **chosen)
    assert_no_higher_than_told(result, truth)


@pytest.mark.parametrize(
    ("placement", "asked", "limit"), [("isolated", 0.5, 0.5), ("shared", None, None), ("external", None, 0.02)]
)
def test_a_limit_asked_for_is_kept_and_shared_placement_has_none(
    placement: Any, asked: float | None, limit: float | None
) -> None:
    gateway = Gateway(forwards=1e5, placement=placement)
    alone("throughput", gateway, frame_timeout_seconds=asked, connection_rate=1e5)
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {limit}


def test_a_queue_as_long_as_n_before_a_process_on_the_senders_core_makes_it_no_faster() -> None:
    # Seen: tayga, shared, N = 10,000 = its queue: 880,000/s told of a device of 5,000.
    gateway = Gateway(establishes=5_000, forwards=1e7, queue=10_000, knows_limit=False, placement="shared")
    result = alone("connection-rate", gateway, connections=10_000, own_processes=True)
    assert 0.98 * 5_000 <= result.summary.median <= 5_000 * 1.02
    assert {plan.frame_timeout_seconds for plan in gateway.plans} == {0.02}
    assert "own_processes" not in result.parameters
