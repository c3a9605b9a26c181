# SPDX-License-Identifier: Apache-2.0
"""What is counted has its noun in the singular where there is one of it, in all that natgauge says."""

from __future__ import annotations

import pytest

from natgauge.figure_text import with_noun
from natgauge.metrics import metrics


@pytest.mark.parametrize(
    ("number", "many", "said"),
    [
        (1, "frames", "1 frame"),
        (0, "frames", "0 frames"),
        (11, "frames", "11 frames"),
        ("1", "new connections/s", "1 new connection/s"),
        ("up to 1", "subscribers", "up to 1 subscriber"),
        ("at least 1", "connections/s", "at least 1 connection/s"),
        ("0 to 1", "subscribers", "0 to 1 subscribers"),
        ("1.0", "connections/s", "1.0 connections/s"),
        (1, "frames/s in each direction", "1 frame/s in each direction"),
        (1, "frames of established connections", "1 frame of established connections"),
        (1, "searches", "1 search"),
        (1, "queries/s", "1 query/s"),
        (1, "addresses", "1 address"),
        (1, "processes", "1 process"),
        (1, "sizes", "1 size"),
        (1, "Mbit/s", "1 Mbit/s"),
        (1, "us", "1 us"),
        (1, "%", "1 %"),
    ],
)
def test_one_of_a_thing_has_the_singular(number: object, many: str, said: str) -> None:
    assert with_noun(number, many) == said


def test_words_for_one_may_be_others() -> None:
    assert with_noun(1, "frames were lost", "frame was lost") == "1 frame was lost"
    assert with_noun(2, "frames were lost", "frame was lost") == "2 frames were lost"


def test_units_of_rates_and_of_counts_have_a_singular_and_those_of_times_have_none() -> None:
    units = {unit for metric in metrics().values() for unit in (metric.unit, *(one.unit for one in metric.figures))}
    said = {unit: with_noun(1, unit).removeprefix("1 ") for unit in units}
    assert {said[unit] for unit in ("connections/s", "frames/s", "connections")} == {
        "connection/s", "frame/s", "connection",
    }  # fmt: skip
    assert {unit for unit in units if unit in ("us", "ms", "ns", "s", "%") and said[unit] != unit} == set()
