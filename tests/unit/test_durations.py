# SPDX-License-Identifier: Apache-2.0
"""Durations in words, and what is foretold of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from natgauge.audits.request import LONG_WAIT_SECONDS, audit_request
from natgauge.campaigns import estimate as estimates
from natgauge.campaigns.cells import points
from natgauge.campaigns.estimate import CELL_RUN_SECONDS, estimate, likely_of, of_question, repetitions
from natgauge.campaigns.plan import parse
from natgauge.figure_text import duration, likely
from natgauge.host.machine import as_if
from natgauge.procedures import procedures
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trial.server import ALONE_SECONDS


@pytest.mark.parametrize(("seconds", "words"), [(5.4, "5 s"), (125, "2 min 05 s"), (7260, "2 h 01 min")])
def test_durations_are_said_as_people_do(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("estimated", "words"),
    [
        (0.2, "1 s"),
        (18, "18 to 45 s"),
        (36, "36 to 90 s"),
        (40, "1 to 2 min"),
        (68, "1 to 3 min"),
        (107, "2 to 5 min"),
        (3600, "1 to 3 h"),
        (42 * 3600, "42 to 105 h"),
    ],
)
def test_what_is_likely_is_a_range_in_one_unit(estimated: float, words: str) -> None:
    assert likely(estimated) == words


def test_a_single_measurement_is_foretold_like_that_of_a_plan() -> None:
    choices = {"connections": 1000, "profile": "quick", "repeat": 2}
    alone = of_question(ask("throughput", "linux-ipv4", choices))
    plan = {"name": "x", "gateways": ["linux-ipv4"], "profile": "quick", "repetitions": 2}
    of_plan = points(parse({**plan, "traffic": {"connections": 1000}, "measure": [{"metric": "throughput"}]}, "x"))
    assert alone.seconds == pytest.approx(estimate(of_plan).seconds)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The simulated devices that estimates make from now on; nothing is known of earlier ones."""
    made: list[object] = []

    def make(*known: Any) -> object:
        made.append(known)
        return device(*known)

    device = estimates._Assumed
    monkeypatch.setattr(estimates, "_Assumed", make)
    estimates._simulated.cache_clear()
    yield made
    estimates._simulated.cache_clear()


def test_cells_that_ask_for_the_same_trials_are_simulated_once(counted: list[object]) -> None:
    plan = {
        "name": "x",
        "gateways": ["nftables-nat44"],
        "measure": [{"metric": "throughput"}],
        "series": {"hash_size": [1024, 65536]},
    }
    cells = points(parse({**plan, "traffic": {"connections": 1000}}, "x"))
    alone, simulated = estimate(cells[:1]), len(counted)
    both = estimate(cells)
    assert (len(cells), len(counted)) == (2, simulated)
    assert both.trials == 2 * alone.trials
    more = estimate(points(parse({**plan, "traffic": {"connections": 2000}}, "x")))
    assert (len(counted), more.seconds != both.seconds) == (2 * simulated, True)


class NoError(Exception):
    """What nothing raises."""


@pytest.fixture
def no_error(monkeypatch: pytest.MonkeyPatch, counted: list[object]) -> list[object]:
    """An error of a procedure on a simulated device is raised, where it would be an estimate."""
    monkeypatch.setattr(estimates, "NatgaugeError", NoError)
    return counted


@pytest.mark.parametrize("metric", procedures())
@pytest.mark.usefixtures("no_error")
def test_no_procedure_ends_on_the_simulated_device_in_an_error(metric: str) -> None:
    """`reset` and `system-recovery` did, so 10 to 11 min were foretold of a measurement of 10 s."""
    gateway = "knot-dns" if metric == "resolution-rate" else "nftables-nat44"
    placement = "shared" if metric == "cost" else "isolated"
    assert of_question(ask(metric, gateway, {"placement": placement, "repeat": 1})).seconds > 0


@pytest.mark.parametrize(
    "others",
    [
        {"trial_seconds": 2.0, "before_seconds": 1.0},
        {"reset_kind": "failover", "reset_command": "true", "loss_tolerance": "1%"},
        {
            "reset_kind": "power",
            "reset_command": "true",
            "power_off_seconds": 15.0,
            "trial_seconds": 40.0,
            "before_seconds": 15.0,
        },
    ],
)
@pytest.mark.usefixtures("no_error")
def test_each_kind_of_reset_is_foretold_by_its_trials(others: dict[str, object]) -> None:
    given = {"connections": 100, "connection_rate": 1000.0, "throughput_rate": 2000.0, "repeat": 1, **others}
    assert of_question(ask("reset", "nftables-nat44", given)).seconds < 60


@pytest.mark.parametrize(
    ("most", "words"), [(60, "60 s"), (80, "60 to 80 s"), (90, "60 to 90 s"), (math.inf, "1 to 3 min")]
)
def test_what_is_likely_ends_where_the_time_ends(most: float, words: str) -> None:
    assert likely(60, most) == words


def test_a_limit_of_the_time_is_that_of_all_repetitions_of_a_measurement_and_of_each_of_a_campaign() -> None:
    choices = {"connections": 1000, "profile": "quick", "repeat": 4, "most_seconds": 5.0}
    alone = of_question(ask("throughput", "linux-ipv4", choices))
    assert alone.likely == "9 s"
    plan = {"name": "x", "gateways": ["linux-ipv4"], "profile": "quick", "repetitions": 4}
    measured = [{"metric": "throughput", "most_seconds": 5.0}]
    of_plan = estimate(points(parse({**plan, "traffic": {"connections": 1000}, "measure": measured}, "x")))
    assert 20 <= of_plan.most_seconds <= 40
    assert of_plan.seconds <= of_plan.most_seconds


@pytest.mark.parametrize(
    ("metric", "choices", "seconds"),
    [
        ("tear-down-rate", {"connections": 100_000}, 60),
        ("tear-down-rate", {"connections": 640_000}, 384),
        ("throughput", {"connections": 200_000, "trial_seconds": 1.0}, 180),
        ("tear-down-rate", {"connections": 200_000, "repeat": 3}, 360),
        ("tear-down-rate", {"connections": 640_000, "most_seconds": 60.0}, 60),
    ],
)
def test_more_connections_get_more_of_the_time_of_a_profile(
    metric: str, choices: dict[str, float], seconds: float
) -> None:
    asked = ask(metric, "nftables-nat44", {"profile": "quick", **choices})
    assert Bench(asked.cell).plan(asked.metric, asked.settings).settings.most_seconds == seconds


def test_more_connections_and_slower_devices_take_longer() -> None:
    def seconds(gateway: str, connections: int) -> float:
        return of_question(ask("connection-rate", gateway, {"connections": connections})).seconds

    assert seconds("nftables-nat44", 1_000_000) > seconds("nftables-nat44", 10_000)
    assert seconds("tayga-nat64", 50_000) > 1.5 * seconds("nftables-nat44", 50_000)


def test_a_server_is_measured_alone_once_for_all_repetitions() -> None:
    plan: dict[str, Any] = {
        "name": "x", "gateways": ["nftables-nat44"], "lab": {"placement": "shared"}, "profile": "quick",
        "repetitions": 4, "traffic": {"connections": 1000},
        "measure": [{"metric": "resolution-rate", "most_seconds": 600, "far_side": "knot"}],
    }  # fmt: skip
    with as_if(2):
        (point,) = points(parse(plan, "x"))
        once = repetitions(point)["resolution-rate"].seconds
    assert 0 < once < ALONE_SECONDS
    assert estimate([point]).seconds == pytest.approx(4 * (once + CELL_RUN_SECONDS) + once)


def test_the_wait_of_an_audit_that_is_longer_than_long_stays() -> None:
    waits = [audit_request("nftables-nat44", {"long": True, **chosen})[1].wait for chosen in ({}, {"wait": 9000.0})]
    assert waits == [LONG_WAIT_SECONDS, 9000.0]


def test_of_a_wrong_question_nothing_is_foretold() -> None:
    assert likely_of(ask("connection-rate", "nftables-nat44", {"connections": 1000, "source_ports": "5-4"})) == ""
