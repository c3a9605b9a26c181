# SPDX-License-Identifier: Apache-2.0
"""Void rounds are noted, and three in a row end a measurement, for costs and comparisons alike."""

from __future__ import annotations

import pytest

from natgauge.errors import BrokenError
from natgauge.notes import Note
from natgauge.paired.rounds import VoidRounds


def test_a_void_round_is_noted_with_its_gateway() -> None:
    voids = VoidRounds("compare", "round", "see")
    voids.judge("a", "")
    voids.judge("b", "up: 1 of 2 frames came back")
    assert voids.notes == [Note("trials", "a round of b is void: up: 1 of 2 frames came back")]


def test_three_void_rounds_in_a_row_end_it_in_one_line() -> None:
    voids = VoidRounds("compare", "search", "see what it does")
    for _ in range(2):
        voids.judge("b (new)", "no rate passed")
    with pytest.raises(BrokenError, match=r"^compare: b \(new\): no rate passed, in 3 searches in a row; see what"):
        voids.judge("b (new)", "no rate passed")


def test_a_valid_round_and_those_of_others_begin_the_count_again() -> None:
    voids = VoidRounds("cost", "round", "see")
    for _ in range(5):
        voids.judge("a", "lost")
        voids.judge("b", "lost")
        voids.judge("a", "lost")
        voids.judge("a", "")
        voids.judge("b", "")
    assert len(voids.notes) == 15
