# SPDX-License-Identifier: Apache-2.0
"""Broadcasts, management queries and groups of connections: what is asked of the engine, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import with_trials
from tests.simulated_lab import Measured, simulated
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.test_measurer_verbs import WIRE

import natgauge
from natgauge.errors import UsageError


def measured(truth: Gateway | None = None, **choices: Any) -> Measured:
    """A throughput of trials of 2 s."""
    given = {"connections": 1000, "connection_rate": 1e5, "trial_seconds": 2.0, **choices}
    return simulated_lab.measure("throughput", Gateway(forwards=3e5) if truth is None else truth, **given)


def asked(**choices: Any) -> list[Any]:
    """Return phase 2 as each trial requests it of the engine."""
    return [trial["request"]["phase2"] for trial in measured(**choices).trials]


@pytest.mark.parametrize(
    ("modifiers", "every", "query"),
    [("broadcast", 100, None), ("management", None, 1000), ("both", 100, 1000)],
)
def test_one_frame_in_a_hundred_is_a_broadcast_and_each_second_has_a_query(
    modifiers: str, every: int | None, query: int | None
) -> None:
    conditions = {"broadcast_every": every, "query_ms": query}
    wanted = {name: value for name, value in conditions.items() if value is not None}
    assert {str(phase2["modifiers"]) for phase2 in asked(modifiers=modifiers)} == {str(wanted)}
    assert not any("modifiers" in phase2 for phase2 in asked())


def test_all_groups_have_begun_before_the_time_of_the_trial() -> None:
    """The time of the groups is added once, and makes no trial short."""
    found = measured(groups=4, group_seconds=5.0)
    (repetition,) = with_trials(found.result)
    lengths = []
    for trial, attempt in zip(found.trials, repetition.attempts, strict=True):
        phase2, seconds = trial["request"]["phase2"], trial["plan"]["phase2"]["seconds"]
        assert phase2["modifiers"]["groups"] == {"number": 4, "seconds": 5.0}
        assert phase2["initiator"]["frames"] == phase2["responder"]["frames"]
        assert phase2["initiator"]["frames"] == pytest.approx(seconds * phase2["initiator"]["rate"], abs=1)
        lengths.append((seconds, attempt.short))
    assert {seconds for seconds, short in lengths if not short} == {15 + 2.0}
    shorter = [seconds for seconds, short in lengths if short]
    assert shorter
    assert all(15 < seconds < 15 + 2.0 for seconds in shorter)


@pytest.mark.parametrize(("timeout", "told"), [(53, "is not longer than phase 1"), (54, "interface one")])
def test_a_device_must_keep_its_connections_until_all_groups_have_sent(timeout: int, told: str, tmp_path: Path) -> None:
    """They send for 47 s, beside phase 1 of 2 s and the gap; where that is long enough, there is no such port."""
    given: dict[str, Any] = {
        **WIRE,
        "trial_seconds": 2.0,
        "groups": 10,
        "group_seconds": 5.0,
        "device_timeout": timeout,
    }
    with simulated(), pytest.raises(UsageError, match=told):
        natgauge.measure("throughput", "nftables-nat44", results=tmp_path, **given)


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
def test_what_cannot_be_is_refused_in_one_line(choices: dict[str, Any], tmp_path: Path, golden: Golden) -> None:
    # What is not refused finds no folder for its results, and touches nothing.
    (tmp_path / "file").touch()
    with golden.raises(UsageError) as caught:
        natgauge.measure(gateway="nftables-nat44", results=tmp_path / "file", **{"metric": "throughput", **choices})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("few", [False, True])
def test_an_overload_that_only_the_last_group_causes_is_no_rare_loss(*, few: bool) -> None:
    """All groups send for 2 s of 47 s: a quarter of those frames is 2 % of all, which was called too few."""

    def alters(_number: int, trial: Any) -> Any:
        rate, seconds = trial.plan.phase2.initiator_rate, trial.plan.phase2.seconds - 45
        lost = 0 if rate <= 3e5 else 3 if few else round((rate - 3e5) * seconds)
        phase2 = {
            who: change_counts(one, received=one.offered_frames - lost * (who == "initiator"))
            for who, one in trial.phase2.items()
        }
        return change_trial(trial, phase2=phase2)

    found = measured(Gateway(alters=alters), groups=10)
    assert found.bounds[0] == pytest.approx(3e5, rel=0.01)
    assert ("rare loss" in found.words()) == few


@pytest.mark.parametrize(("modifiers", "share"), [("broadcast", 0.99), ("both", 0.99), ("management", 1.0)])
def test_a_rate_counts_the_test_frames_and_broadcasts_are_sent_in_addition(modifiers: str, share: float) -> None:
    """The rate was that of all frames that were sent: 1 % of them never came back, and no trial had lost them."""
    found = measured(modifiers=modifiers)
    passed = [trial["plan"]["phase2"] for trial in found.trials if trial["verdict"] == "PASS"]
    assert found.median == pytest.approx(share * max(phase2["initiator_rate"] for phase2 in passed))
    assert all(phase2["initiator_rate"] == phase2["responder_rate"] for phase2 in passed)


def test_the_tester_sends_no_more_with_broadcasts_than_without() -> None:
    gateway = Gateway(ceiling=2e6, forwards=1e9)
    found = measured(gateway, modifiers="broadcast")
    assert max(plan.phase2.initiator_rate for plan in gateway.plans if plan.phase2) == pytest.approx(1e6)
    assert found.median == pytest.approx(0.99e6)
    assert found.figure("frames_per_second_total") == pytest.approx(1.98e6)
