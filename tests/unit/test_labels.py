# SPDX-License-Identifier: Apache-2.0
"""Results are named by what their records differ in, and stand at a glance in the place that this gives them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.conftest import Reported
from tests.unit.made_campaign import rate
from tests.unit.made_results import made, searched
from tests.unit.pages import tables_of, words_of

from natgauge import Result

GLANCE = "Frames per second without loss (frames/s in each direction) at a glance"


def of(gateway: str = "x", **parameters: Any) -> Result:
    return made([100.0], parameters={"gateway": gateway, "connections": 1000, **parameters})


def names_of(results: list[Result], reported: Reported) -> list[str]:
    names: list[str] = reported(*results)["table"]["columns"]
    return names


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("device_cores", (1, 2), ("1 core", "2 cores")),
        ("order", ("permutation", "increasing"), ("permutation", "increasing")),
        ("source_address_count", (1, 64), ("1", "64")),
        ("frame_size", (64, 1518), ("64 octets", "1,518 octets")),
        ("down_share", (0.5, 0.25), ("50 %", "25 %")),
        ("an_input_of_tomorrow", ("old", "new"), ("old", "new")),
    ],
)
def test_any_input_in_which_results_differ_names_them(
    name: str, values: tuple[Any, Any], words: tuple[str, str], reported: Reported
) -> None:
    said = reported(*(of(**{name: value}) for value in values))
    for named, word in zip(said["table"]["columns"], words, strict=True):
        assert named.startswith("x, ")
        assert word in named
        assert "run" not in named
    sentences = " ".join(one["text"] for one in said["answers"])
    assert all(word in sentences for word in words)


def test_results_that_differ_in_nothing_are_numbered_as_runs(reported: Reported) -> None:
    assert names_of([of(), of(), of("y")], reported) == ["x, run 1", "x, run 2", "y"]
    ports = {"a": 1, "b": 2, "c": 3, "d": 4}
    runs = [of(name, source_port_count=ports[name]) for name in ("a", "a", "b", "c", "d")]
    first, *_ = reported(*runs)["answers"]
    assert "equal are a (run 1), a (run 2), b and 2 more" in first["text"]


def test_what_grows_with_an_axis_is_named_only_where_it_also_differs_without_it(reported: Reported) -> None:
    grown = [of(connections=count, table_size=2 * count) for count in (1000, 2000)]
    assert names_of(grown, reported) == ["x, 1,000 connections", "x, 2,000 connections"]
    both = names_of([*grown, of(connections=2000, table_size=9000)], reported)
    assert all("connection table limit" in name for name in both[1:])
    assert len(set(both)) == 3


def test_facts_of_the_host_name_results_only_where_no_input_does(reported: Reported) -> None:
    inputs = names_of([of(kernel="6.1", hash_size=1), of(kernel="6.2", hash_size=2)], reported)
    assert inputs == ["x, hash table size = 1 buckets", "x, hash table size = 2 buckets"]
    assert "6.2" in names_of([of(kernel="6.1"), of(kernel="6.2")], reported)[1]


def test_settings_of_different_gateways_are_not_named(reported: Reported) -> None:
    assert names_of([of("x", hash_size=1), of("y", hash_size=2)], reported) == ["x", "y"]


SERIES = [
    rate(gateway, middle * cores, cores, connections)
    for gateway, middle in (("nat", 1e5), ("linux-ipv4", 3e5))
    for connections in (25_000, 100_000)
    for cores in (2, 1)
]


def test_each_result_stands_where_its_device_and_its_point_meet(reported: Reported) -> None:
    ((head, *rows),) = tables_of(reported(*SERIES, html=True), "New connections per second (connections/s) at a glance")
    assert head[1:] == [
        "25,000 connections, 1 core",
        "25,000 connections, 2 cores",
        "100,000 connections, 1 core",
        "100,000 connections, 2 cores",
    ]
    assert [words_of(row[0]) for row in rows] == ["nat", "linux-ipv4"]
    columns = [[re.findall(r'"#result-(\d+)"', cell) for cell in row[1:]] for row in rows]
    assert columns == [[["2"], ["1"], ["4"], ["3"]], [["6"], ["5"], ["8"], ["7"]]]


def test_a_median_never_stands_without_its_doubt(reported: Reported) -> None:
    wide = searched([80.0, 100.0, 110.0], 1.0, parameters={"gateway": "wide"})
    coarse = searched([99.0, 100.0, 101.0], 7.0, parameters={"gateway": "coarse"})
    lone = made([100.0], parameters={"gateway": "lone"}, doubts=[{"word": "drift", "text": "it rose"}])
    ((head, *rows),) = tables_of(reported(wide, coarse, *([lone] * 7), html=True), GLANCE)
    assert head == ["gateway", "median"]
    # Results that nothing tells apart stand beside each other: none is hidden.
    assert [[words_of(cell) for cell in row] for row in rows] == [
        ["wide", "100 * 79 to 111 (3 repetitions and the search error)"],
        ["coarse", "100.0 ± 8.0 % (3 repetitions and the search error)"],
        ["lone", " ".join(f"run {at}: 100 † 1 repetition, no interval drift" for at in range(1, 8))],
    ]


def test_frames_of_two_families_are_read_beside_each_other_and_sizes_of_one_device_are_not(reported: Reported) -> None:
    sizes = [(gateway, size) for gateway in ("nat", "other") for size in (64, 128)]
    results = [made([1.0], parameters={"gateway": gateway, "frame_size": size}) for gateway, size in [*sizes, *sizes]]
    ((head, *_),) = tables_of(reported(*results, html=True), GLANCE)
    assert head == ["gateway", "64 octets", "128 octets"]
    families = [made([1.0], parameters={"gateway": f"nat-{size}", "frame_size": size}) for size in (64, 84) * 2]
    ((head, *_),) = tables_of(reported(*families, html=True), GLANCE)
    assert head == ["gateway", "median"]
