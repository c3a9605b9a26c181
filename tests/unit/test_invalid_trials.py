# SPDX-License-Identifier: Apache-2.0
"""The one rule of how often a trial is repeated that says nothing about the device, and its limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError
from natgauge.procedures.kit.runner import (
    TESTER_REPEATS,
    Patience,
    Tried,
    at_one_load,
    in_search,
    until_decided,
)
from natgauge.words import LimitedBy, Verdict


def outcome(verdict: Verdict, limited_by: LimitedBy | None = None) -> OneTrial:
    return make_outcome(verdict, f"of the {limited_by}", make_counts(1, 1, 1), limited_by=limited_by)


PASS, FAIL = outcome(Verdict.PASS), outcome(Verdict.FAIL, "device")
GONE = outcome(Verdict.COLLAPSED, "device")
SLOW, DISTURBED = outcome(Verdict.INVALID, "tester"), outcome(Verdict.INVALID, "host")


def tried(outcomes: Iterable[OneTrial], patience: Patience) -> Tried:
    ended = iter(outcomes)
    return until_decided(lambda: next(ended), patience)


@pytest.mark.parametrize("decisive", [PASS, FAIL, GONE])
def test_the_first_trial_that_speaks_of_the_device_ends_it(decisive: OneTrial) -> None:
    assert tried([decisive], at_one_load(5)) == Tried(decisive, 1, decided=True)
    assert tried([DISTURBED, SLOW, decisive], at_one_load(5)) == Tried(decisive, 3, decided=True)


@pytest.mark.parametrize("allowed", [0, 1, 4])
def test_it_ends_after_the_repeats_that_are_allowed(allowed: int) -> None:
    for patience in (at_one_load(allowed), in_search(allowed)):
        assert tried(itertools.repeat(DISTURBED), patience) == Tried(DISTURBED, 1 + allowed, decided=False)
    assert tried([*[DISTURBED] * allowed, PASS], at_one_load(allowed)).decided


@pytest.mark.parametrize("allowed", [0, 1, 4])
def test_a_search_gives_a_load_up_early_when_the_tester_is_too_slow_for_it(allowed: int) -> None:
    assert tried(itertools.repeat(SLOW), in_search(allowed)).trials == 1 + min(allowed, TESTER_REPEATS)
    assert tried(itertools.repeat(SLOW), at_one_load(allowed)).trials == 1 + allowed


def test_the_last_cause_decides_how_many_repeats_there_are() -> None:
    assert tried([DISTURBED, DISTURBED, DISTURBED, SLOW, PASS], in_search(10)).trials == 4
    assert tried([SLOW, SLOW, DISTURBED, DISTURBED, PASS], in_search(10)) == Tried(PASS, 5, decided=True)


def test_what_decides_may_be_another_rule() -> None:
    ended = iter([FAIL, FAIL, PASS])
    found = until_decided(lambda: next(ended), at_one_load(9), lambda one: one.verdict is Verdict.PASS)
    assert found == Tried(PASS, 3, decided=True)


def test_how_often_and_why_is_told(golden: Golden) -> None:
    found = tried(itertools.repeat(SLOW), at_one_load(2))
    golden(found.sentence())
    assert found.sentence(" and count as lost").startswith("3 trials were INVALID and count as lost, the last one")


def test_a_load_that_must_be_answered_for_is_tried_in_full_by_a_slow_tester_too(golden: Golden) -> None:
    """The same tester would be given up after two repeats in a search."""
    slow = Gateway(real_ceiling=1e4)
    with golden.raises(BrokenError):
        alone("latency", slow, connection_rate=1e4, throughput_rate=1e6, invalid_repeats=5)
    assert len(slow.plans) == 6


class _DisturbedAt(Gateway):
    """Its host disturbs every trial at one rate."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        self.disturbed = float(plan.phase2 is not None and plan.phase2.initiator_rate == 8e5)
        return super().measure(plan)


def test_a_load_that_stays_undecided_is_left_out_where_another_one_is_the_value(golden: Golden) -> None:
    gateway = _DisturbedAt(forwards=5e5)
    result = alone("frame-loss", gateway, connection_rate=1e5, full_rate=1e6, invalid_repeats=1)
    rows = result.measurements[0].series
    assert [row["offered_percent"] for row in rows] == [100, 90, 70, 60, 50, 40]
    golden(result.notes)


def test_a_capacity_without_a_decision_is_none(golden: Golden) -> None:
    with golden.raises(BrokenError):
        alone("table-capacity", Gateway(disturbed=1.0), connections=6400, invalid_repeats=3)
