# SPDX-License-Identifier: Apache-2.0
"""Void rounds are noted, and three in a row end a measurement, for costs and comparisons alike."""

from __future__ import annotations

import pytest
from tests.unit.golden import Golden

from natgauge.errors import BrokenError
from natgauge.paired.ratios import PlaceKind
from natgauge.paired.rounds import Void, VoidRounds


def test_a_void_round_is_noted_with_its_gateway(golden: Golden) -> None:
    voids = VoidRounds("compare", "round", lambda _: "see")
    voids.judge("a", "")
    voids.judge("b", "up: 1 of 2 frames came back")
    golden(voids.notes)


def test_three_void_rounds_in_a_row_end_it_in_one_line(golden: Golden) -> None:
    voids = VoidRounds("compare", "search", lambda _: "see what it does")
    for _ in range(2):
        voids.judge("b (new)", "no rate passed")
    with golden.raises(BrokenError):
        voids.judge("b (new)", "no rate passed")


def test_a_valid_round_and_those_of_others_begin_the_count_again() -> None:
    voids = VoidRounds("cost", "round", lambda _: "see")
    for _ in range(5):
        voids.judge("a", "lost")
        voids.judge("b", "lost")
        voids.judge("a", "lost")
        voids.judge("a", "")
        voids.judge("b", "")
    assert len(voids.notes) == 15


def test_a_ratio_that_lacks_more_rounds_than_it_has_ends_it_with_the_remedy_of_the_place_without_a_gateway(
    golden: Golden,
) -> None:
    voids = VoidRounds("compare", "round", lambda _: "see the gateway")
    for _ in range(9):
        voids.judge_ratio("b", {})
        voids.judge_ratio("b", {"cable": Void("cable", "lost"), "a": Void("gateway", "late")})
    with golden.raises(BrokenError):
        voids.judge_ratio("b", {"a": Void("gateway", "late")})


def test_gateways_that_are_void_in_turn_end_it_with_the_remedy_of_gateways(golden: Golden) -> None:
    voids = VoidRounds("compare", "search", lambda _: "see what it does")
    for number in range(8):
        voids.judge_ratio("b (up)", {"ab"[number % 2]: Void("gateway", "no rate passed")})
    voids.judge_ratio("c (up)", {})
    with golden.raises(BrokenError):
        voids.judge_ratio("b (up)", {"a": Void("gateway", "no rate passed")})


def test_a_few_void_rounds_of_a_ratio_end_nothing() -> None:
    voids = VoidRounds("compare", "round", lambda _: "see")
    for _ in range(8):
        voids.judge_ratio("b", {"b": Void("gateway", "lost")})
    for _ in range(8):
        voids.judge_ratio("b", {})
    for _ in range(1000):
        voids.judge_ratio("b", {})
        voids.judge_ratio("b", {"b": Void("gateway", "lost")})


@pytest.mark.parametrize(("kind", "remedy"), [("cable", "natgauge selftest"), ("plain forwarding", "linux-ipv4")])
def test_a_place_without_a_gateway_has_a_remedy_of_its_own(kind: PlaceKind, remedy: str) -> None:
    voids = VoidRounds("cost", "round", lambda _: "see the gateway")
    for _ in range(2):
        voids.judge(kind, "lost", kind)
    with pytest.raises(BrokenError, match=remedy) as caught:
        voids.judge(kind, "lost", kind)
    assert "see the gateway" not in str(caught.value)
