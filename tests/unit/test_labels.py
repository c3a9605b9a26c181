# SPDX-License-Identifier: Apache-2.0
"""Results are named by what their records differ in, and stand at a glance in the place that this gives them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_campaign import rate
from tests.unit.made_results import made

from natgauge.records.measurement import Result
from natgauge.records.parameters import describe
from natgauge.reports.answers import answers
from natgauge.reports.html.metrics_table import Entry, metrics_tables
from natgauge.reports.labels import names_of, point_of


def of(gateway: str = "x", **parameters: Any) -> Result:
    return made([100.0], parameters={"gateway": gateway, "connections": 1000, **parameters})


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
    name: str, values: tuple[Any, Any], words: tuple[str, str]
) -> None:
    results = [of(**{name: value}) for value in values]
    for named, word in zip(names_of(results), words, strict=True):
        assert named.startswith("x, ")
        assert word in named
        assert "run" not in named
    sentences = " ".join(one.text for one in answers(results))
    assert all(word in sentences for word in words)


def test_results_that_differ_in_nothing_are_numbered_as_runs() -> None:
    results = [of(), of(), of("y")]
    assert names_of(results) == ["x, run 1", "x, run 2", "y"]
    assert [point_of(result, results) for result in results] == ["run 1", "run 2", ""]


def test_what_grows_with_an_axis_is_named_only_where_it_also_differs_without_it() -> None:
    grown = [of(connections=count, table_size=2 * count) for count in (1000, 2000)]
    assert names_of(grown) == ["x, 1,000 connections", "x, 2,000 connections"]
    both = [*grown, of(connections=2000, table_size=9000)]
    label = describe("table_size").label
    assert all(label in name for name in names_of(both)[1:])
    assert len(set(names_of(both))) == len(both)


def test_facts_of_the_host_name_results_only_where_no_input_does() -> None:
    assert "kernel" not in " ".join(names_of([of(kernel="6.1", alpha=1), of(kernel="6.2", alpha=2)]))
    assert "6.2" in names_of([of(kernel="6.1"), of(kernel="6.2")])[1]


def test_settings_of_different_gateways_are_not_named() -> None:
    assert names_of([of("x", hash_size=1), of("y", hash_size=2)]) == ["x", "y"]


SERIES = [
    rate(gateway, middle * cores, cores, connections)
    for gateway, middle in (("nat", 1e5), ("linux-ipv4", 3e5))
    for connections in (25_000, 100_000)
    for cores in (2, 1)
]


def test_each_result_stands_where_its_device_and_its_point_meet() -> None:
    (table,) = metrics_tables(SERIES)
    assert table.title == "New connections per second (connections/s)"
    assert table.head == (
        "25,000 connections, 1 core",
        "25,000 connections, 2 cores",
        "100,000 connections, 1 core",
        "100,000 connections, 2 cores",
    )
    assert [gateway for gateway, _ in table.rows] == ["nat", "linux-ipv4"]
    columns = [[[entry.column for entry in place] for place in places] for _, places in table.rows]
    assert columns == [[[2], [1], [4], [3]], [[6], [5], [8], [7]]]


def test_a_median_never_stands_without_its_doubt() -> None:
    wide = made([80.0, 100.0, 110.0], median=100.0, parameters={"gateway": "wide"}, error=1.0)
    coarse = made([99.0, 100.0, 101.0], median=100.0, parameters={"gateway": "coarse"}, error=7.0)
    lone = made([100.0], parameters={"gateway": "lone"}, doubts=[{"word": "drift", "text": "it rose"}])
    (table,) = metrics_tables([wide, coarse, lone, *([lone] * 6)])
    assert table.head == ("median",)
    found = {gateway: places[0] for gateway, places in table.rows}
    assert found["wide"] == (Entry(1, "100", "", "79 to 111 (3 repetitions and the search error)", ()),)
    assert found["coarse"] == (Entry(2, "100.0", "", "± 8.0 % (3 repetitions and the search error)", ()),)
    # Results that nothing tells apart stand beside each other: none is hidden.
    assert found["lone"] == tuple(
        Entry(column, "100", "†", "1 repetition, no interval", ("drift",), f"run {column - 2}")
        for column in range(3, 10)
    )


def test_frames_of_two_families_are_read_beside_each_other_and_sizes_of_one_device_are_not() -> None:
    sizes = [(gateway, size) for gateway in ("nat", "other") for size in (64, 128)]
    results = [made([1.0], parameters={"gateway": gateway, "frame_size": size}) for gateway, size in [*sizes, *sizes]]
    (table,) = metrics_tables(results)
    assert table.head == ("64 octets", "128 octets")
    families = [made([1.0], parameters={"gateway": f"nat-{size}", "frame_size": size}) for size in (64, 84) * 6]
    assert metrics_tables(families)[0].head == ("median",)
