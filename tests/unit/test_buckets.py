# SPDX-License-Identifier: Apache-2.0
"""A token bucket raises a rate of connections that are few; the result says so, and what lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from tests import simulated_lab
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway, in_slices, reading
from tests.unit.simulated_kinds import Forgetful, Logging, Policed

from natgauge import Result
from natgauge.errors import NatgaugeError

#: The search begins where slices foretell the rate of the device without its log.
FORETOLD: Final[Mapping[str, Any]] = {
    "establishes": 300_000.0,
    "placement": "shared",
    "abilities": in_slices().abilities,
    "ceiling": 2e6,
}


def measure(gateway: Gateway, connections: int = 10_000, metric: str = "connection-rate") -> Result:
    return simulated_lab.measure(metric, gateway, connections=connections).result


@pytest.mark.parametrize("metric", ["connection-rate", "transaction-rate"])
@pytest.mark.parametrize("burst", [2_000, 5_000])
def test_what_a_bucket_adds_is_told_with_what_lasts(burst: int, metric: str) -> None:
    """20,000/s with a burst of 5,000 was 38,750/s without a doubt."""
    gateway = Policed(burst=burst)
    result = measure(gateway, metric=metric)
    truth = 20_000 * 10_000 / (10_000 - burst)
    assert result.median == pytest.approx(truth, rel=0.011)
    (note,) = (note for note in result.notes if note.word == "bucket")
    assert note.grade == "answer"
    assert note.value == pytest.approx(truth / 20_000 - 1, rel=0.15)
    assert gateway.plans[-1].connections == 2_500
    assert "bucket" in {doubt.word for doubt in result.doubts}


@pytest.mark.parametrize("burst", [200, 2000, 5000])
def test_what_lasts_is_known_better_than_the_answer_of_a_coarse_search(burst: int, golden: Golden) -> None:
    """With an error of 10 % it was 11 to 20 % too low: the lower bound was taken for the answer."""
    gateway = Policed(burst=burst)
    connections = 1500 if burst == 200 else 10_000
    result = simulated_lab.measure("connection-rate", gateway, connections=connections, error="10%", repeat=1).result
    (note,) = (note for note in result.notes if note.word == "bucket")
    assert note.value == pytest.approx(result.median / 20_000 - 1, abs=0.03)
    golden(note.text)


def measure_log(gateway: Gateway) -> Any:
    """Measure the rate with a complete log; a simulated lab has none."""
    return alone("connection-rate", gateway, connections=10_000, error="0.5%")


def test_a_log_that_lacks_the_same_share_at_every_rate_ends_the_search(golden: Golden) -> None:
    """It went on down to N/600 connections/s, and advised more time."""
    result = measure_log(Logging(lasting=1e9, lacks=0.01))
    assert (result.summary.median, result.limited_by) == (0, "log")
    (note,) = (note for note in result.measurements[0].notes if note.word == "loss at every rate")
    golden(note.text)
    # What to do is no fact for the reader of a paper.
    assert "--" not in note.text


@pytest.mark.parametrize("burst", [2_000, 5_000])
def test_what_the_buffer_of_a_log_adds_is_told_with_what_lasts(burst: int) -> None:
    """A log that is complete at 40,000/s for a quarter of a second is not for an hour."""
    gateway = Logging(burst=burst)
    result = measure_log(gateway)
    truth = 20_000 * 10_000 / (10_000 - burst)
    assert result.summary.median == pytest.approx(truth, rel=0.011)
    assert result.limited_by == "log"
    (note,) = (note for note in result.measurements[0].notes if note.word == "bucket")
    assert note.value == pytest.approx(truth / 20_000 - 1, rel=0.15)
    assert note.text.startswith("the buffer of the device's log holds about ")
    assert gateway.plans[-1].connections == 2_500


@pytest.mark.parametrize("kind", [Logging, Policed])
@pytest.mark.parametrize(("lasting", "burst"), [(1000.0, 50), (1000.0, 200), (100.0, 2000), (25.0, 50), (20.0, 100)])
def test_a_rate_far_below_all_that_were_tried_is_no_share_that_every_rate_loses(
    kind: type[Logging | Policed], lasting: float, burst: int
) -> None:
    """From 248,000/s on, a log of 1,000 records/s lacked the same 98.6 % of 5,000 connections: its rate was 0."""
    result = alone("connection-rate", kind(lasting=lasting, burst=burst, **FORETOLD), connections=5_000, error="2%")
    assert result.summary.median == pytest.approx(lasting * 5_000 / (5_000 - burst), rel=0.03)
    assert result.limited_by == ("log" if kind is Logging else "device")


def test_a_bucket_that_nobody_had_the_time_to_try_is_a_doubt_all_the_same() -> None:
    """336/s with the least time were printed as ± 5 %; 233/s last."""
    gateway = Policed(lasting=232.5, burst=1321, **FORETOLD)
    result = simulated_lab.measure("connection-rate", gateway, connections=4158, repeat=1, profile="quick").result
    assert all(plan.connections == 4158 for plan in gateway.plans)
    (note,) = (note for note in result.notes if note.word == "bucket")
    assert note.value == pytest.approx(result.median / 232.5 - 1, rel=0.05)


def test_a_rate_that_opens_connections_is_one_where_they_are_used_afterwards_too() -> None:
    gateway = Logging(lasting=60.0, burst=1818)
    result = alone("validated-connection-rate", gateway, connections=8559, error="2%")
    assert result.summary.median == pytest.approx(60 * 8559 / (8559 - 1818), rel=0.03)


def test_a_device_that_forgets_connections_before_a_bucket_shows_loses_a_share_at_every_rate() -> None:
    """Its search ended with an error: a slower trial outlasts the device's time-out."""
    result = alone("connection-rate", Forgetful(loses_share=0.5, forgets_after=0.5, **FORETOLD), connections=5_000)
    assert result.summary.median == 0
    assert "loss at every rate" in {note.word for note in result.measurements[0].notes}


def test_frames_that_came_back_say_nothing_of_the_rate_of_a_log() -> None:
    """The search went down six times by 1 % of the rate that the device forwarded, in trials of three seconds."""
    gateway = Logging(lasting=1000.0, burst=50, **FORETOLD)
    assert alone("connection-rate", gateway, connections=5_000, error="2%").limited_by == "log"
    assert len(gateway.plans) <= 18


def test_frames_that_a_device_lost_say_nothing_of_the_buffer_of_its_log() -> None:
    """The device's own rate is 2.4 times that of the log, and the fastest trials fail for its frames."""
    found = measure_log(Logging(establishes=60_000.0, burst=2_000))
    (note,) = (note for note in found.measurements[0].notes if note.word == "bucket")
    assert note.value == pytest.approx(0.25, rel=0.15)
    found = measure_log(Logging(establishes=60_000.0, burst=0))
    assert "bucket" not in {note.word for note in found.measurements[0].notes}


def test_trials_longer_than_a_second_need_no_such_trial() -> None:
    gateway = Policed()
    result = measure(gateway, 100_000)
    assert result.median == pytest.approx(20_000 / 0.95, rel=0.011)
    assert "bucket" not in {note.word for note in result.notes}
    assert {plan.connections for plan in gateway.plans} == {100_000}


class Hesitating(Gateway):
    """A gateway that loses some frames from `establishes` on, and forwards 1.2 times as many under any overload."""

    __slots__ = ()

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Gateway._trial(self, plan)
        if plan.phase1_rate <= self.establishes:
            return trial
        counts = trial.phase1
        kept = min(counts.offered_frames - 3, int(1.2 * self.establishes * counts.offered_frames / plan.phase1_rate))
        changed = change_trial(trial, phase1=change_counts(counts, received=kept), stored=kept)
        return reading(changed, count_after=kept)


class Sleeping(Gateway):
    """A gateway that loses connections from a third of its rate on, until it once got more than half of it."""

    __slots__ = ()

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Gateway._trial(self, plan)
        least = self.establishes / 3
        if plan.phase1_rate <= least or max(each.phase1_rate for each in [*self.plans, plan]) > self.establishes / 2:
            return trial
        counts = trial.phase1
        kept = counts.received_frames - max(3, int(counts.received_frames * (1 - least / plan.phase1_rate) / 2))
        changed = change_trial(trial, phase1=change_counts(counts, received=kept), stored=kept)
        return reading(changed, count_after=kept)


@pytest.mark.parametrize("confirm", [True, False])
def test_a_trial_at_twice_the_answer_that_passes_opens_the_search_again(*, confirm: bool) -> None:
    """In 3 of 24 repetitions on a busy machine it passed, and the answer stayed half of the truth."""
    gateway = Sleeping(establishes=100_000)
    result = simulated_lab.measure("connection-rate", gateway, connections=50_000, repeat=1, confirm=confirm).result
    assert result.median == pytest.approx(100_000, rel=0.02)
    assert "bucket" not in {note.word for note in result.notes}
    assert "contradictions" in {note.word for note in result.notes}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("queue", [0, 512])
def test_a_device_without_a_bucket_has_no_such_doubt(seed: int, queue: int) -> None:
    for gateway in (
        Gateway(establishes=200_000, queue=queue, noise=0.02, seed=seed),
        Gateway(establishes=20_000, queue=queue, seed=seed),
        Gateway(establishes=200_000, rare_loss=0.2, seed=seed),
        Hesitating(establishes=100_000, seed=seed),
    ):
        assert "bucket" not in {note.word for note in measure(gateway, 50_000).notes}


def test_the_size_of_a_bucket_is_seen_far_above_the_answer() -> None:
    """A trial 1.2 times as fast as the answer showed 6,165 connections of a bucket of 5,000, of which 15,116/s last."""
    for seed in range(8):
        result = measure(Policed(establishes=1e6, noise=0.01, seed=seed))
        (note,) = (note for note in result.notes if note.word == "bucket")
        assert note.value == pytest.approx(1.0, rel=0.1)


def test_a_search_that_no_time_was_left_for_names_the_cause_that_was_seen() -> None:
    """The error advised more time where every trial had found no outside port free."""
    lost = Gateway(establishes=1e6, table_size=2_000)
    with pytest.raises(NatgaugeError, match="cause: the device's connection tracking table, which was full"):
        simulated_lab.measure(
            "connection-rate", lost, gateway=simulated_lab.LIMITED, connections=10_000, most_seconds=2.0
        )
