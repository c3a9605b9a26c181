# SPDX-License-Identifier: Apache-2.0
"""Broadcasts, management queries and groups of connections: what is asked of the engine, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.test_measurer_trials import measurer
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.errors import UsageError
from natgauge.procedures import get
from natgauge.procedures.throughput import PROCEDURE, ThroughputSettings


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


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_the_time_of_the_groups_is_added_once_and_makes_no_trial_short(search: Any) -> None:
    settings = ThroughputSettings(
        connections=1000,
        placement="isolated",
        trial_seconds=2.0,
        groups=10,
        group_seconds=5.0,
        connection_rate=1e5,
        search=search,
    )
    attempts = PROCEDURE.measure(Gateway(forwards=3e5), settings).measurements[0].attempts
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
        {"group_seconds": 3.0},
        {"modifiers": "broadcast", "group_seconds": 3.0},
    ],
)
def test_what_cannot_be_is_refused_in_one_line(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        check("throughput", "nftables-nat44", **choices)
