# SPDX-License-Identifier: Apache-2.0
"""Broadcasts, management queries and groups of connections: what is asked of the engine, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.counted import make_counts, make_trial
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway
from tests.unit.test_measurer_trials import measurer
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.errors import UsageError
from natgauge.procedures import get
from natgauge.procedures.kit.result.results import Attempt
from natgauge.procedures.kit.search.rare_loss import rare_loss_note
from natgauge.procedures.throughput import ThroughputSettings
from natgauge.trials import Direction
from natgauge.words import Verdict


def asked(**choices: Any) -> Any:
    """Return the engine's request of a throughput trial of 2 s at 1000 frames/s."""
    settings = get("throughput").settings(connections=1000, placement="isolated", trial_seconds=2.0, **choices)
    engine = FakeEngine()
    measurer(engine).measure(settings.plan(1000.0, 1000.0, 2.0))
    return engine.requests[-1]


@pytest.mark.parametrize(
    ("modifiers", "every", "query"),
    [("broadcast", 100, None), ("management", None, 1000), ("both", 100, 1000)],
)
def test_one_frame_in_a_hundred_is_a_broadcast_and_each_second_has_a_query(
    modifiers: str, every: int | None, query: int | None
) -> None:
    conditions = asked(modifiers=modifiers).phase2.modifiers
    assert (conditions.broadcast_every, conditions.query_ms, conditions.groups) == (every, query, None)
    assert asked().phase2.modifiers is None


def test_all_groups_have_begun_before_the_time_of_the_trial() -> None:
    phase2 = asked(groups=4, group_seconds=5.0).phase2
    groups = phase2.modifiers.groups
    assert (groups.number, groups.seconds) == (4, 5.0)
    assert phase2.initiator.frames == phase2.responder.frames == 1000 * (15 + 2)


def test_the_time_of_the_groups_is_added_once_and_makes_no_trial_short() -> None:
    settings = ThroughputSettings(connections=1000, placement="isolated", trial_seconds=2.0, groups=10, group_seconds=5)
    given = {"trial_seconds": 2.0, "groups": 10, "group_seconds": 5.0, "connection_rate": 1e5}
    attempts = alone("throughput", Gateway(forwards=3e5), **given).measurements[0].attempts
    tried = {(each.outcome.plan.phase2.seconds, each.short) for each in attempts if each.outcome.plan.phase2}
    assert {length for length, short in tried if not short} == {45 + 2.0}
    assert all(45 < length < 45 + 2.0 for length, short in tried if short)
    assert settings.sent_seconds == 45 + 2.0, "a device must keep its connections for so long"


@pytest.mark.parametrize(
    "choices",
    [
        {"modifiers": "filters"},
        {"modifiers": "broadcast", "transport": "tcp"},
        {"modifiers": "both", **WIRE, "initiator_gateway": "02:00:00:00:00:01", "device_timeout": 10},
        {"groups": 0},
        {"groups": 20, "connections": 10},
        {"groups": 4, "reading_order": "increasing"},
        {"modifiers": "broadcast", "reading_order": "increasing"},
        {"groups": 4, "group_seconds": 0},
        # The engine refused them after the connection rate had been measured, in words of its own.
        {"groups": 30, "group_seconds": 600.0},
        {"foreground_share": 0.9995},
        # Shares of a whole trial's frames are far less than those of the time in which all groups send.
        {"groups": 4, "loss_tolerance": 0.01},
        {"groups": 4, "search": "mlrsearch"},
        {"modifiers": "management", "logging": "conntrack-events"},
        {"foreground_share": 0.5, "logging": "conntrack-events"},
        {"metric": "mixed-load", "flood_share": 0.5, "logging": "conntrack-events"},
        {"metric": "reset", "foreground_share": 0.5},
        {"group_seconds": 3.0},
        {"modifiers": "broadcast", "group_seconds": 3.0},
    ],
)
def test_what_cannot_be_is_refused_in_one_line(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        check(
            choices.get("metric", "throughput"),
            "nftables-nat44",
            **{name: value for name, value in choices.items() if name != "metric"},
        )


def test_an_overload_that_only_the_last_group_causes_is_no_rare_loss() -> None:
    """All groups send for 2 s of 47 s: a quarter of those frames is 2 % of all, which was called too few."""
    settings = ThroughputSettings(connections=1000, placement="isolated", trial_seconds=2.0, groups=10)
    upper, load = 30_000.0, 40_000.0
    plan = settings.plan(1000.0, load, 2.0)
    assert plan.phase2 is not None
    assert plan.phase2.modifiers is not None
    offered = round(load * (2 + plan.phase2.modifiers.ramp_seconds / 2))
    for lost, words in ((round((load - upper) * 2), []), (3, ["rare loss"])):
        counts = make_counts(offered, offered, offered - lost)
        trial = make_trial(plan, phase2={Direction.INITIATOR: counts})
        failed = replace(trial, verdict=Verdict.FAIL, limited_by="device", failed_phase=2)
        assert [
            note.word for note in rare_loss_note([Attempt(load, short=False, outcome=failed)], upper, "frames/s")
        ] == words


@pytest.mark.parametrize(("modifiers", "sent"), [("broadcast", 1000.0), ("both", 1000.0), ("management", 990.0)])
def test_a_rate_counts_the_test_frames_and_broadcasts_are_sent_in_addition(modifiers: str, sent: float) -> None:
    """The rate was that of all frames that were sent: 1 % of them never came back, and no trial had lost them."""
    settings = get("throughput").settings(connections=1000, placement="isolated", modifiers=modifiers)
    plan = settings.plan(1000.0, 990.0, 2.0).phase2
    assert plan is not None
    assert plan.initiator_rate == plan.responder_rate == pytest.approx(sent)


def test_the_tester_sends_no_more_with_broadcasts_than_without() -> None:
    gateway = Gateway(ceiling=2e6, forwards=1e9)
    found = alone("throughput", gateway, connection_rate=1e5, modifiers="broadcast", trial_seconds=2.0)
    assert max(plan.phase2.initiator_rate for plan in gateway.plans if plan.phase2) == pytest.approx(1e6)
    assert found.summary.median == pytest.approx(0.99e6)
    assert found.figures["frames_per_second_total"].median == pytest.approx(1.98e6)
