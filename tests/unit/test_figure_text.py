# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them: as many digits as their interval resolves, and a printed interval that is true."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natgauge import figure_text, interval_text
from natgauge.inputs.input import Number
from natgauge.metrics import metrics
from natgauge.reports import csv_table

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NUMBER = r"(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)(?: ([kMGT])\b)?"
_FIGURES = st.floats(min_value=1e-6, max_value=1e15) | st.integers(min_value=1, max_value=10**9).map(float)


def stored(value: float) -> Fraction:
    """A number as records have it."""
    return Fraction(repr(float(value)))


def read(text: str) -> Fraction:
    """The number that a text names."""
    found = re.fullmatch(_NUMBER, text)
    assert found, text
    return Fraction(found[1].replace(",", "")) * _UNITS[found[2] or ""]


def read_interval(text: str) -> tuple[Fraction, Fraction]:
    """The ends of the interval that `within` names."""
    if "±" not in text:
        inner = re.search(r"\((.*)\)", text)
        first, _, last = (inner[1] if inner else text).partition(" to ")
        return read(first), read(last or first)
    value, _, percent = text.partition(" ± ")
    share = Fraction(percent.removeprefix("less than ").removesuffix(" %").replace(",", "")) / 100
    return read(value) * (1 - share), read(value) * (1 + share)


@given(_FIGURES, st.floats(0, 3), st.floats(0, 3))
def test_the_printed_interval_contains_the_stored_one(value: float, below: float, above: float) -> None:
    low, high = value * (1 - below), value * (1 + above)
    text = interval_text.within(value, low, high)
    if low == high:
        # Nothing is said of an interval, and a value that all share is rounded as any other.
        assert not re.search("[±(]", text)
        return
    first, last = read_interval(text)
    assert first <= stored(low)
    assert stored(high) <= last


@given(_FIGURES, st.floats(0, 0.5), st.floats(0, 0.5))
def test_the_printed_interval_is_hardly_wider(value: float, below: float, above: float) -> None:
    low, high = value * (1 - below), value * (1 + above)
    first, last = read_interval(interval_text.within(value, low, high))
    # Below a tenth of a percent the text only says that it is less, and four digits are the most.
    assert last - first <= Fraction(7, 5) * (Fraction(high) - Fraction(low)) + Fraction(value) / 250


@given(_FIGURES)
def test_a_figure_without_an_interval_has_at_most_four_digits(value: float) -> None:
    text = figure_text.number(value)
    digits = re.sub(r"e.*|[^\d]", "", text).lstrip("0")
    assert len(digits) <= 4
    assert abs(read(text) / Fraction(value) - 1) <= Fraction(1, 200)


@given(st.floats(min_value=1e-6, max_value=1e15))
def test_bounds_stay_on_their_side(value: float) -> None:
    assert read(figure_text.at_least(value)) <= stored(value) <= read(figure_text.at_most(value))


@given(st.integers(min_value=2**53, max_value=2**80))
def test_large_integers_keep_their_digits_and_their_bounds(value: int) -> None:
    assert figure_text.in_full(value) == f"{value:,}"
    assert read(figure_text.at_least(value)) <= value <= read(figure_text.at_most(value))


def test_a_bound_of_an_integer_that_no_float_holds_stays_on_its_side() -> None:
    value = 9 * 10**17 - 1
    assert read(figure_text.at_least(value)) <= value


@given(st.floats(min_value=2**53, max_value=1e300))
def test_large_floats_have_no_digits_that_are_not_theirs(value: float) -> None:
    digits = figure_text.in_full(value).replace(",", "")
    assert Fraction(digits) == stored(value)
    assert Number().write(value) == digits
    assert csv_table.written([[interval_text.Written("x", value)]]) == digits


@given(_FIGURES, st.floats(0, 1), st.floats(0, 1))
def test_the_figure_lies_in_what_is_printed_of_it(value: float, below: float, above: float) -> None:
    text = interval_text.resolved(value, value * (1 - below), value * (1 + above))
    half = Fraction(value) * (Fraction(below) + Fraction(above)) / 2
    assert abs(read(text) - Fraction(value)) <= max(half / 10, Fraction(value) / 1000)


@given(_FIGURES | _FIGURES.map(lambda value: -value), st.floats(0, 1e6), st.floats(0, 1e6))
def test_no_figure_that_is_not_0_is_written_as_0(value: float, below: float, above: float) -> None:
    low, high = value - below * abs(value), value + above * abs(value)
    texts = [
        interval_text.resolved(value, low, high),
        interval_text.with_ends(value, low, high).partition(" (")[0],
        interval_text.decimals(value, 2),
        interval_text.significant(value),
        interval_text.percent(max(value, 1e-9, key=abs)).removesuffix(" %"),
        interval_text.percent(value, width=high - low).removesuffix(" %"),
    ]
    if low != 0 != high:
        texts += interval_text.span(low, high).split(" to ")
    for text in texts:
        # Rounded to two digits at least, it is the figure and not ten times as much.
        assert re.search("[1-9]", text), (value, text)
    assert abs(read(texts[0]) / Fraction(value) - 1) <= Fraction(1, 20)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ((465_296, 417_836, 512_756), "465 k ± 11 %"),
        ((465_296, 464_000, 466_500), "465.3 k ± 0.3 %"),
        ((43_124, 23_749, 62_500), "43 k ± 46 %"),
        ((465_296, 417_836, 467_000), "465 k (417 k to 467 k)"),
        ((262_144, 262_143, 262_145), "262,144 ± less than 0.1 %"),
        ((366_354, 366_354, 366_354), "366,354"),
        ((0, 0, 0.4), "0.0 (0.00 to 0.40)"),
        ((1.5, 1.2, 6), "1.5 (1.2 to 6.0)"),
        ((5_000, 4_000, math.inf), "5,000 (4,000 or more)"),
        ((9_460.69, 9_000, 2_400_000), "9,461 (9,000 to 2.4 M)"),
        ((60_000, 50_000, 4_000_000), "60.0 k (50.0 k to 4.0 M)"),
    ],
)
def test_known_figures(figure: tuple[float, float, float], text: str) -> None:
    assert interval_text.within(*figure) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((616, 620, 630, 517), ["616", "620", "630", "517"]),
        ((195_914, 198_060, 205_004), ["195.9 k", "198.1 k", "205.0 k"]),
        ((7, 7), ["7", "7"]),
    ],
)
def test_each_reading_has_the_digits_that_all_resolve_and_of_a_figure_at_least(
    values: tuple[float, ...], texts: list[str]
) -> None:
    """Seen: 620, 620, 630 and 520 in a chart, 616, 620, 630 and 517 in the doubt beside it."""
    assert interval_text.readings_of(values) == texts


@pytest.mark.parametrize(
    ("low", "high", "whole", "text"),
    [
        (508, 708, math.inf, "508 to 708"),
        (58.29, 93.61, math.inf, "58.3 to 93.6"),
        (398_940, 400_000, math.inf, "398.9 k to 400 k"),
        (400_010, 400_020, math.inf, "400.01 k to 400.02 k"),
        (0, 36_000, math.inf, "0 to 36 k"),
        (50, 99.97, 100, "50 to 99.97"),
        (50, 100, 100, "50 to 100"),
        (7, 7, math.inf, "7"),
    ],
)
def test_ends_of_what_was_read_are_written_as_read(low: float, high: float, whole: float, text: str) -> None:
    assert interval_text.readings(low, high, whole) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (465_296.4, "465 k"),
        (99_999, "100 k"),
        (1_945.3, "1,945"),
        (46.53, "46.5"),
        (12.0, "12"),
        (0, "0"),
        (None, "None"),
    ],
)
def test_figures_without_an_interval(value: float | None, text: str) -> None:
    assert figure_text.number(value) == text


@pytest.mark.parametrize(
    ("value", "whole", "text"),
    [
        (99.96, 100, "99.96"),
        (99.99999, 100, "99.99999"),
        (99.94, 100, "99.9"),
        (100.0, 100, "100"),
        (0.9996, 1, "0.9996"),
        (0.9999, 1, "0.9999"),
        (1.0, 1, "1"),
        (1.0004, 1, "1"),
        (None, 1, "None"),
    ],
)
def test_only_all_is_written_as_all(value: float | None, whole: float, text: str) -> None:
    assert figure_text.of_whole(value, whole) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (639.4e6, 742.1e6, "639 and 743 Mbit/s"),
        (967.9e6, 1.021e9, "0.967 and 1.03 Gbit/s"),
        (9876.0, 12_000.0, "9.876 and 12.0 kbit/s"),
        (5.0, 7.0, "5 and 7 bit/s"),
    ],
)
def test_both_bounds_of_bits_have_one_prefix(low: float, high: float, text: str) -> None:
    """Seen: "between 639 M and 743 Mbit/s"."""
    assert interval_text.between_bits(low, high) == text


def test_bounds_of_published_tables_are_rounded_outward() -> None:
    assert interval_text.decimals(0.9449, 2) == "0.94"
    assert interval_text.decimals(0.9449, 2, "up") == "0.95"
    assert interval_text.decimals(0.9451, 2, "down") == "0.94"
    assert interval_text.significant(465_160.4) == "465,200"
    assert interval_text.significant(465_160.4, "down") == "465,100"
    assert interval_text.significant(465_120.4, "up") == "465,200"


def test_no_text_claims_that_there_is_no_doubt_at_all() -> None:
    assert "0.0 %" not in interval_text.within(1e6, 1e6 - 1e-3, 1e6)


# What is counted has its noun in the singular where there is one of it


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
    assert figure_text.with_noun(number, many) == said


def test_words_for_one_may_be_others() -> None:
    assert figure_text.with_noun(1, "frames were lost", "frame was lost") == "1 frame was lost"
    assert figure_text.with_noun(2, "frames were lost", "frame was lost") == "2 frames were lost"


def test_units_of_rates_and_of_counts_have_a_singular_and_those_of_times_have_none() -> None:
    units = {unit for metric in metrics().values() for unit in (metric.unit, *(one.unit for one in metric.figures))}
    said = {unit: figure_text.with_noun(1, unit).removeprefix("1 ") for unit in units}
    assert {said[unit] for unit in ("connections/s", "frames/s", "connections")} == {
        "connection/s", "frame/s", "connection",
    }  # fmt: skip
    assert {unit for unit in units if unit in ("us", "ms", "ns", "s", "%") and said[unit] != unit} == set()
